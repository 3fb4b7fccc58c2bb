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
        let expected = matches!(decoded.class, Class::Quote | Class::Fill);
        assert_eq!(!self.events.is_empty(), expected, "{}", String::from_utf8_lossy(message));
        decoded.class
    }

    /// Reads a message that must make a quote.
    pub(crate) fn quote(&mut self, message: &str) -> Quote {
        let class = self.read(message);
        assert_eq!(class, Class::Quote, "{message}: {:?}", self.codec.last_problem());
        assert_eq!(self.events.len(), 1, "{message}");
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

/// Where the value of a member stands. A path is the member's name (the last of that name, which is
/// the innermost), then places in arrays: `bids.0.1`. A path that begins with `$` starts at the
/// whole message.
fn place(message: &str, path: &str) -> std::ops::Range<usize> {
    let mut steps = path.split('.');
    let head = steps.next().unwrap();
    let start = if head == "$" {
        0
    } else {
        let key = format!("\"{head}\":");
        message.rfind(&key).unwrap_or_else(|| panic!("no {path} in {message}")) + key.len()
    };
    let mut at = skip_space(message, start);
    for step in steps {
        let element: usize = step.parse().unwrap();
        assert_eq!(message.as_bytes()[at], b'[', "{path} in {message}");
        at = skip_space(message, at + 1);
        for _ in 0..element {
            at = skip_space(message, end_of_value(message, at));
            assert_eq!(message.as_bytes()[at], b',', "{path} in {message}");
            at = skip_space(message, at + 1);
        }
    }
    at..end_of_value(message, at)
}

fn skip_space(message: &str, at: usize) -> usize {
    at + message[at..].find(|c: char| !c.is_whitespace()).unwrap()
}

/// Where the value that starts at `at` ends.
pub(crate) fn end_of_value(message: &str, at: usize) -> usize {
    let bytes = message.as_bytes();
    let (mut depth, mut position) = (0, at);
    loop {
        match bytes[position] {
            b'"' => {
                position += 1;
                while bytes[position] != b'"' {
                    position += if bytes[position] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return position,
            b'}' | b']' => depth -= 1,
            b',' | b' ' | b'\n' if depth == 0 => return position,
            _ => {}
        }
        position += 1;
        if depth == 0
            && (position == bytes.len() || matches!(bytes[position - 1], b'"' | b'}' | b']'))
        {
            return position;
        }
    }
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
