//! What is the same in every codec: damage, refusals, the latest problem, and rows of a batch.
//!
//! A venue brings a [`Reader`]: where the members of a message stand, and what they mean. The
//! [`Shell`] around it is the [`Codec`].

use std::fmt::Write as _;

use super::class::{Class, Control, Oddities, Oddity, Refusal};
use super::codec::{Codec, Decoded, Event, MAX_MESSAGE_BYTES};
use super::json::{Fault, Scanner};
use crate::market::{Fill, InstrumentId, Quote};

/// A venue's own part of its codec.
pub(super) trait Reader: Send {
    /// One pass over a message, to its end: keeps where the members stand that mean something.
    /// Nothing else may be touched, as the message may be damaged further on.
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault>;

    /// What the message means, by what the pass has found.
    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble>;

    /// See [`Codec::new_session`].
    fn new_session(&mut self);
}

/// Why a message or a row is refused, and the member that is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) reason: Refusal,
    pub(super) member: &'static str,
}

/// Names the member that a reading is of.
pub(super) trait Of<T> {
    fn of(self, member: &'static str) -> Result<T, Trouble>;
}

impl<T> Of<T> for Result<T, Refusal> {
    #[inline]
    fn of(self, member: &'static str) -> Result<T, Trouble> {
        self.map_err(|reason| Trouble { reason, member })
    }
}

/// Where a reader puts what a message means.
pub(super) struct Output<'a> {
    /// When the message was received.
    pub(super) receive_time: i64,
    /// What was odd about it.
    pub(super) oddities: Oddities,
    events: &'a mut Vec<Event>,
    /// The first row that was refused.
    refused: Option<Trouble>,
    made: bool,
}

impl Output<'_> {
    /// One tick.
    #[inline]
    pub(super) fn quote(&mut self, instrument: InstrumentId, quote: &Quote) {
        self.events.push(Event::Quote { instrument, quote: *quote });
    }

    /// An account's execution.
    #[inline]
    pub(super) fn fill(&mut self, fill: Fill) {
        self.events.push(Event::Fill(fill));
    }

    /// One of the rows of a message was read, or refused alone: a batch is not thrown away for one
    /// of its rows. A repeated row is told apart from a bad one, since a venue repeats rows after
    /// each reconnect.
    #[inline]
    pub(super) fn row(&mut self, result: Result<(), Trouble>) {
        match result {
            Ok(()) => self.made = true,
            Err(trouble) => self.refuse_row(trouble),
        }
    }

    /// A row that is one tick, or is refused.
    #[inline]
    pub(super) fn quote_row(&mut self, result: Result<(InstrumentId, Quote), Trouble>) {
        if let Ok((instrument, quote)) = &result {
            self.quote(*instrument, quote);
        }
        self.row(result.map(drop));
    }

    /// A row that is one fill, or is refused.
    #[inline]
    pub(super) fn fill_row(&mut self, result: Result<Fill, Trouble>) {
        if let Ok(fill) = &result {
            self.fill(*fill);
        }
        self.row(result.map(drop));
    }

    #[cold]
    fn refuse_row(&mut self, trouble: Trouble) {
        use Refusal::{DuplicateFill, DuplicateTrade, LateQuote, LateTrade};
        let told_before =
            |reason| matches!(reason, DuplicateFill | DuplicateTrade | LateQuote | LateTrade);
        let odd =
            if told_before(trouble.reason) { Oddity::RepeatedRow } else { Oddity::RefusedRow };
        self.oddities.insert(odd);
        // A bad row is the greater problem.
        if self.refused.is_none_or(|held| told_before(held.reason)) {
            self.refused = Some(trouble);
        }
    }

    /// The class of a message of rows: `made` if one was used, else why the first was refused, else
    /// `empty`.
    #[inline]
    pub(super) fn rows(&self, made: Class, empty: Class) -> Result<Class, Trouble> {
        match self.refused {
            _ if self.made => Ok(made),
            Some(trouble) => Err(trouble),
            None => Ok(empty),
        }
    }
}

/// A codec: a venue's reader, and what every codec does.
pub(super) struct Shell<R> {
    reader: R,
    problem: Option<Problem>,
    /// The start of the message that was the problem.
    excerpt: Vec<u8>,
}

/// The latest problem, put into words only when somebody asks.
struct Problem {
    what: &'static str,
    member: &'static str,
    /// The excerpt is not the whole message.
    cut: bool,
}

impl<R: Reader> Shell<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, problem: None, excerpt: Vec::new() }
    }

    /// What the reader could not scan: the text of a heartbeat, or not for us.
    #[cold]
    fn unreadable(&mut self, fault: Fault, message: &[u8]) -> Class {
        let text = message.trim_ascii();
        if text.eq_ignore_ascii_case(b"pong") || text.eq_ignore_ascii_case(b"ping") {
            return Class::Control(Control::Heartbeat);
        }
        let mut scanner = Scanner::new(message);
        let whole = match fault {
            Fault::TooLarge => Err(fault),
            Fault::Malformed => scanner.value().and_then(|_| scanner.finish()),
        };
        let reason = match whole {
            Ok(()) => Refusal::WrongType,
            Err(Fault::Malformed) => Refusal::Malformed,
            Err(Fault::TooLarge) => Refusal::TooLarge,
        };
        self.refuse(Trouble { reason, member: "" }, message)
    }

    #[cold]
    fn refuse(&mut self, trouble: Trouble, message: &[u8]) -> Class {
        self.tell(trouble.reason.label(), trouble.member, message);
        Class::Refused(trouble.reason)
    }

    #[cold]
    fn tell(&mut self, what: &'static str, member: &'static str, message: &[u8]) {
        const MOST: usize = 160;
        self.excerpt.clear();
        self.excerpt.extend_from_slice(&message[..message.len().min(MOST)]);
        self.problem = Some(Problem { what, member, cut: message.len() > MOST });
    }
}

impl<R: Reader> Codec for Shell<R> {
    fn decode(&mut self, message: &[u8], receive_time: i64, events: &mut Vec<Event>) -> Decoded {
        let scanned = if message.len() > MAX_MESSAGE_BYTES {
            Err(Fault::TooLarge)
        } else {
            self.reader.scan(message)
        };
        if let Err(fault) = scanned {
            let class = self.unreadable(fault, message);
            return Decoded { class, oddities: Oddities::default() };
        }
        let mut output = Output {
            receive_time,
            oddities: Oddities::default(),
            events,
            refused: None,
            made: false,
        };
        let (class, oddities) = match self.reader.interpret(message, &mut output) {
            Ok(class) => {
                let (oddities, refused) = (output.oddities, output.refused);
                match class {
                    Class::Unknown => self.tell("unknown stream or event", "", message),
                    Class::Control(Control::Error) => {
                        self.tell("the venue reports an error", "", message);
                    }
                    _ => {}
                }
                if let Some(Trouble { reason, member }) = refused {
                    self.tell(reason.label(), member, message);
                }
                (class, oddities)
            }
            Err(trouble) => (self.refuse(trouble, message), Oddities::default()),
        };
        Decoded { class, oddities }
    }

    fn new_session(&mut self) {
        self.reader.new_session();
    }

    fn last_problem(&self) -> Option<String> {
        let Problem { what, member, cut } = self.problem.as_ref()?;
        let mut text = (*what).to_owned();
        if !member.is_empty() {
            let _ = write!(text, " (member \"{member}\")");
        }
        let more = if *cut { "…" } else { "" };
        let _ = write!(text, " in {}{more}", self.excerpt.escape_ascii());
        Some(text)
    }
}
