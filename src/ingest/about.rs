//! Which messages of a recording are about an instrument: its venue's codec tells.

use std::sync::{Arc, Mutex, PoisonError};

use crate::feed::{Keep, Record, RecordKind, Selection};
use crate::market::{Accounts, FeedId, Instruments};
use crate::venue::{Class, Codec, Context, Event, codec};

/// Instruments and accounts that are told apart, at most; a codec refuses more.
const MAX_KNOWN: usize = 1_000_000;

/// What a recording is to be played of: a range of receive times (ns since the Unix epoch), and what
/// is about one of `only`, as [`keeping`] judges, if any are named.
///
/// # Errors
///
/// As [`keeping`].
pub fn selection(
    venue: &str,
    from: Option<i64>,
    to: Option<i64>,
    only: &[String],
) -> Result<Selection, KeepError> {
    let selection = Selection::default().between(from, to);
    Ok(if only.is_empty() { selection } else { selection.keeping(keeping(venue, only)?) })
}

/// A judgement that keeps what is about one of `names`: symbols (`BTCUSDT`), or instruments with
/// their venue (`binance:BTCUSDT`); a `*` at the end stands for anything.
///
/// Kept are quotes and fills of these instruments; marks; and what is of no instrument: answers to
/// requests, errors, what the codec does not know. Left out is all else, also messages that the
/// codec has no use for or refuses, because it does not tell whose they are.
///
/// # Errors
///
/// A venue without a codec, or an instrument of another venue.
pub fn keeping(venue: &str, names: &[String]) -> Result<Keep, KeepError> {
    let mut symbols = Vec::with_capacity(names.len());
    for name in names {
        let symbol = match name.split_once(':') {
            Some((of, symbol)) if of == venue => symbol,
            Some(_) => {
                return Err(KeepError::OtherVenue { name: name.clone(), venue: venue.to_owned() });
            }
            None => name.as_str(),
        };
        symbols.push(symbol.to_owned());
    }
    let instruments = Arc::new(Instruments::new(MAX_KNOWN));
    let context = Context {
        instruments: instruments.clone(),
        accounts: Arc::new(Accounts::new(MAX_KNOWN)),
        feed: FeedId(0),
        account: Some("anybody".to_owned()),
    };
    let codec = codec(venue, context).ok_or_else(|| KeepError::NoCodec(venue.to_owned()))?;
    let judge = Mutex::new(Judge { codec, events: Vec::new(), instruments, symbols });
    Ok(Arc::new(move |record: Record<'_>| {
        judge.lock().unwrap_or_else(PoisonError::into_inner).keeps(record)
    }))
}

/// Why instruments cannot be told apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    /// Nothing reads the venue's messages.
    #[error("no codec for the venue {0:?}")]
    NoCodec(String),
    /// An instrument is named that the recording cannot have.
    #[error("{name} is of another venue: the recording is read as {venue}'s")]
    OtherVenue {
        /// The instrument, as it was named.
        name: String,
        /// The recording's venue.
        venue: String,
    },
}

struct Judge {
    codec: Box<dyn Codec>,
    events: Vec<Event>,
    instruments: Arc<Instruments>,
    symbols: Vec<String>,
}

impl Judge {
    fn keeps(&mut self, record: Record<'_>) -> bool {
        if let RecordKind::Mark(_) = record.kind {
            return true;
        }
        self.events.clear();
        let time = record.receive_time.unwrap_or(0);
        let decoded = self.codec.decode(record.text, time, &mut self.events);
        if self.events.is_empty() {
            return matches!(decoded.class, Class::Control(_) | Class::Unknown);
        }
        self.events.iter().any(|event| {
            let id = match event {
                Event::Quote { instrument, .. } => *instrument,
                Event::Fill(fill) => fill.instrument,
            };
            let name = self.instruments.name(id);
            let symbol = name.split_once(':').map_or(name, |(_, symbol)| symbol);
            self.symbols.iter().any(|wanted| matches(wanted, symbol))
        })
    }
}

fn matches(wanted: &str, symbol: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(start) => symbol.starts_with(start),
        None => symbol == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_kept_by_its_instrument_and_what_has_none_is_kept_too() {
        let keep = keeping("binance", &["BTCUSDT".to_owned(), "binance:ET*".to_owned()]).unwrap();
        let quote =
            |symbol: &str| format!(r#"{{"u":1,"s":"{symbol}","b":"1","B":"1","a":"2","A":"1"}}"#);
        let kept = |text: &str| {
            let kind = RecordKind::Message;
            keep(Record { receive_time: Some(1), kind, text: text.as_bytes() })
        };
        assert!(kept(&quote("BTCUSDT")) && kept(&quote("ETHUSDT")));
        assert!(!kept(&quote("BTCUSD")) && !kept(&quote("SOLUSDT")));
        assert!(kept(r#"{"result":null,"id":1}"#));
        assert!(keeping("binance", &["kraken:XBT".to_owned()]).is_err());
    }
}
