//! Scenario f: what conflation saves, on a bursty feed.
//!
//! The feed has the shape of the sample recording that the project ships, twenty times as fast:
//! when which instrument has a quote. A hundred subscribers want all instruments; ours are limited
//! to ten batches a second, the peers forward every quote.

use std::path::Path;
use std::sync::Arc;

use tidegate::feed::Reader;
use tidegate::market::{Accounts, FeedId, InstrumentId, Instruments};
use tidegate::venue::{self, Context, Event};

use super::case::{Case, Contender};
use super::delivery::{Load, Recorded};
use super::harness::Role;
use super::publisher::{Schedule, Shape};
use super::scenario_a::Effort;
use super::servers::{Peers, Tidegate};

pub const CASE: &str = "f";

const SPEED: u64 = 20;

/// Runs the case; answers it with its closing lines.
pub fn run(effort: Effort, peers: &Peers) -> (Case, Vec<String>) {
    let (shape, instruments) = shape();
    let a_second = shape.quotes.len() as f64 / (shape.length as f64 / 1e9);
    println!("\nf: {a_second:.0} ticks a second on average, {instruments} instruments");
    let shape = Arc::new(shape);
    let load = Load {
        subscribers: 100,
        instruments,
        own: None,
        slow: None,
        every_age: false,
        schedule: Schedule { shape: Some(shape), ..Schedule::steady(0, instruments) },
        warm_up: effort.warm_up,
        window: 3 * effort.window,
    };
    let settings = Tidegate { subscriber: "max_hz = 10".to_owned(), ..Tidegate::default() };
    let before = settings.before();
    let ours = || load.ours(&settings, &mut Recorded::default());
    let mut contenders = vec![Contender { name: "ours", role: Role::Ours, run: Box::new(ours) }];
    if let Some(before) = &before {
        let run = Box::new(|| load.ours(before, &mut Recorded::default()));
        contenders.push(Contender { name: "before", role: Role::Peer, run });
    }
    if peers.has_bun {
        let run = Box::new(|| load.bun(peers));
        contenders.push(Contender { name: "bun", role: Role::Peer, run });
    }
    if peers.has_nats {
        let run = Box::new(|| load.nats(peers));
        contenders.push(Contender { name: "nats", role: Role::Peer, run });
    }
    let case = Case::run(CASE, effort.rounds, contenders);
    case.print();
    let mut closing = Vec::new();
    if let Some(ours) = case.row("ours") {
        for row in case.rows.iter().filter(|row| row.role == Role::Peer) {
            // The same seconds of the same feed: what each had of its core.
            let ratio = row.median(|o| o.busy) / ours.median(|o| o.busy);
            closing.push(format!("ratio fanout/f/{} {ratio:.2}", row.name));
        }
    }
    (case, closing)
}

/// When which instrument of the sample has a quote, faster.
fn shape() -> (Shape, u32) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("feeds/sample.jsonl.zst");
    let mut reader = Reader::open(&path).expect("the shipped sample");
    let context = Context {
        instruments: Arc::new(Instruments::new(1000)),
        accounts: Arc::new(Accounts::new(100)),
        feed: FeedId(0),
        account: None,
    };
    let mut codec = venue::codec("binance", context).expect("the sample's venue");
    let (mut events, mut quotes, mut known) = (Vec::new(), Vec::new(), Vec::<InstrumentId>::new());
    let (mut first, mut last) = (None, 0);
    while let Some(record) = reader.read_next() {
        let Some(time) = record.receive_time else { continue };
        codec.decode(record.text, time, &mut events);
        for event in events.drain(..) {
            if let Event::Quote { instrument, .. } = event {
                let at = u64::try_from(time - *first.get_or_insert(time)).unwrap_or(0) / SPEED;
                let known_as = known.iter().position(|&other| other == instrument);
                let index = known_as.unwrap_or_else(|| {
                    known.push(instrument);
                    known.len() - 1
                });
                last = at.max(last);
                quotes.push((last, u32::try_from(index).unwrap_or(0)));
            }
        }
    }
    assert!(quotes.len() > 10_000, "the sample holds {} quotes", quotes.len());
    (Shape { quotes, length: last + 1_000_000 }, u32::try_from(known.len()).unwrap_or(1))
}
