//! What the fuzz targets have in common: a codec that may be given anything.

use std::sync::Arc;

use tidegate::market::{Accounts, FeedId, Instruments};
use tidegate::venue::{Class, Context, Event, codec};

/// Instruments and accounts that a run may name before it is refused.
const LIMIT: usize = 64;

/// Gives the venue's codec the lines of `data`, one message each, and holds it to what is promised of
/// every message: one class, events only of those that make some, ticks that rise by one, and all of
/// the same again by a second codec.
///
/// # Panics
///
/// If a promise is broken, or there is no such venue.
pub fn messages(venue: &str, data: &[u8]) {
    let context = || Context {
        instruments: Arc::new(Instruments::new(LIMIT)),
        accounts: Arc::new(Accounts::new(LIMIT)),
        feed: FeedId(0),
        account: Some("desk-1".to_owned()),
    };
    let mut first = codec(venue, context()).expect("a known venue");
    let mut second = codec(venue, context()).expect("a known venue");
    let mut ticks = [0_u64; LIMIT];
    let (mut events, mut again) = (Vec::new(), Vec::new());
    for message in data.split(|&byte| byte == b'\n') {
        let decoded = first.decode(message, 7, &mut events);
        assert_eq!(decoded, second.decode(message, 7, &mut again), "two codecs differ");
        assert_eq!(events, again, "two codecs differ");
        let makes = matches!(decoded.class, Class::Quote | Class::Fill);
        assert_eq!(makes, !events.is_empty(), "{:?}", decoded.class);
        for event in events.drain(..) {
            match event {
                Event::Quote { instrument, quote } => {
                    let tick = &mut ticks[instrument.index()];
                    *tick += 1;
                    assert_eq!(quote.tick, *tick, "ticks rise by one");
                    for size in [quote.bid_size, quote.ask_size, quote.last_size] {
                        assert!(size.is_none_or(|size| !size.is_sign_negative()));
                    }
                }
                Event::Fill(fill) => {
                    assert!(!fill.quantity.is_sign_negative() && !fill.quantity.is_zero());
                }
            }
        }
        again.clear();
        if matches!(decoded.class, Class::Refused(_) | Class::Unknown) {
            assert!(first.last_problem().is_some_and(|problem| problem.len() <= 1_000));
        }
        if let Some(venue) = tidegate::venue::find(venue) {
            let _ = venue.answers(message);
        }
    }
    first.new_session();
    second.new_session();
}
