//! A codec under test, and edits of messages as text.

use std::sync::Arc;

use tidegate::market::{Accounts, Decimal, FeedId, Fill, Instruments, Quote};
use tidegate::venue::{Class, Codec, Context, Event, Oddity, Refusal, codec};

pub(crate) const RECEIVED: i64 = 1_723_161_256_000_000_000;

/// A codec with registries of its own.
pub(crate) struct Subject {
    pub(crate) codec: Box<dyn Codec>,
    pub(crate) instruments: Arc<Instruments>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) oddities: Vec<Oddity>,
    pub(crate) events: Vec<Event>,
}

impl Subject {
    pub(crate) fn new(venue: &str) -> Self {
        Self::with(venue, Some("desk-1"), 1_000)
    }

    pub(crate) fn with(venue: &str, account: Option<&str>, limit: usize) -> Self {
        let instruments = Arc::new(Instruments::new(limit));
        let accounts = Arc::new(Accounts::new(limit));
        let context = Context {
            instruments: Arc::clone(&instruments),
            accounts: Arc::clone(&accounts),
            feed: FeedId(0),
            account: account.map(str::to_owned),
        };
        let codec = codec(venue, context).unwrap();
        Self { codec, instruments, accounts, oddities: Vec::new(), events: Vec::new() }
    }

    /// Reads one message; its events are in `events`, and only its own.
    pub(crate) fn read(&mut self, message: impl AsRef<[u8]>) -> Class {
        self.events.clear();
        let message = message.as_ref();
        let decoded = self.codec.decode(message, RECEIVED, &mut self.events);
        self.oddities = decoded.oddities.iter().collect();
        let expected = usize::from(matches!(decoded.class, Class::Quote | Class::Fill));
        assert_eq!(self.events.len(), expected, "{}", String::from_utf8_lossy(message));
        decoded.class
    }

    /// Reads a message that must make a quote.
    pub(crate) fn quote(&mut self, message: &str) -> Quote {
        let class = self.read(message);
        assert_eq!(class, Class::Quote, "{message}: {:?}", self.codec.last_problem());
        let Event::Quote { quote, .. } = self.events[0] else { panic!("no quote: {message}") };
        quote
    }

    /// Reads a message that must make a fill.
    pub(crate) fn fill(&mut self, message: &str) -> Fill {
        let class = self.read(message);
        assert_eq!(class, Class::Fill, "{message}: {:?}", self.codec.last_problem());
        let Event::Fill(fill) = self.events[0] else { panic!("no fill: {message}") };
        fill
    }

    /// Reads a message that must be refused.
    pub(crate) fn refused(&mut self, message: &str) -> Refusal {
        match self.read(message) {
            Class::Refused(refusal) => {
                let problem = self.codec.last_problem().unwrap();
                assert!(problem.starts_with(refusal.label()), "{problem}");
                assert!(self.oddities.is_empty());
                refusal
            }
            class => panic!("{class:?}, not refused: {message}"),
        }
    }

    /// The name of the instrument of the latest event.
    pub(crate) fn name(&self) -> &str {
        match self.events[0] {
            Event::Quote { instrument, .. } | Event::Fill(Fill { instrument, .. }) => {
                self.instruments.name(instrument)
            }
        }
    }
}

/// A decimal, from text that is surely one.
pub(crate) fn decimal(text: &str) -> Decimal {
    tidegate::market::decimal::parse(text.as_bytes()).unwrap()
}

/// Where the value of `"key":` stands: the last such key, which is the innermost.
fn place(message: &str, key: &str) -> std::ops::Range<usize> {
    let key = format!("\"{key}\":");
    let start = message.rfind(&key).unwrap_or_else(|| panic!("no {key} in {message}")) + key.len();
    let length = match message.as_bytes()[start] {
        b'"' => message[start + 1..].find('"').unwrap() + 2,
        _ => message[start..].find([',', '}']).unwrap(),
    };
    start..start + length
}

/// The value of a member as it is written.
pub(crate) fn get<'a>(message: &'a str, key: &str) -> &'a str {
    &message[place(message, key)]
}

/// The message with another value of a member.
pub(crate) fn set(message: &str, key: &str, value: &str) -> String {
    let mut message = message.to_owned();
    message.replace_range(place(&message, key), value);
    message
}

/// The message without a member.
pub(crate) fn remove(message: &str, key: &str) -> String {
    let value = place(message, key);
    let start = value.start - key.len() - 3;
    let (before, after) = (&message[..start], &message[value.end..]);
    match after.strip_prefix(',') {
        Some(after) => format!("{before}{after}"),
        None => format!("{}{after}", before.trim_end_matches(',')),
    }
}

/// The message with one more member before `key`.
pub(crate) fn insert(message: &str, key: &str, member: &str) -> String {
    let at = place(message, key).start - key.len() - 3;
    format!("{}{member},{}", &message[..at], &message[at..])
}
