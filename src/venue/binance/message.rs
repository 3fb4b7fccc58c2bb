//! One pass over a message: where its members stand, whatever their order and wrapper.
//!
//! Nearly every member of an event is one letter, so a slot is found by the letter itself and one
//! word tells which slots are filled. Spans of earlier messages stay in the others, unread.

use super::names;
use crate::venue::class::Class;
use crate::venue::json::{Fault, Kind, Scanner, Span, unescape};

/// The one-letter members of an event.
pub(super) struct Letters {
    filled: u64,
    spans: [Span; 64],
}

impl Letters {
    const fn new() -> Self {
        Self { filled: 0, spans: [Span::NONE; 64] }
    }

    /// The member called `letter`, if the message has it.
    #[inline]
    pub(super) fn get(&self, letter: u8) -> Option<Span> {
        let slot = letter & 63;
        (self.filled & 1 << slot != 0).then(|| self.spans[slot as usize])
    }

    /// Whether there is a member besides `known`.
    #[inline]
    pub(super) fn any_beside(&self, known: u64) -> bool {
        self.filled & !known != 0
    }

    /// Fills the slot; `false` if it was filled.
    #[inline]
    fn put(&mut self, letter: u8, span: Span) -> bool {
        let bit = 1 << (letter & 63);
        let free = self.filled & bit == 0;
        self.filled |= bit;
        self.spans[(letter & 63) as usize] = span;
        free
    }
}

/// The set of `letters`, for [`Letters::any_beside`].
pub(super) const fn set(letters: &[u8]) -> u64 {
    let mut set = 0;
    let mut index = 0;
    while index < letters.len() {
        set |= 1 << (letters[index] & 63);
        index += 1;
    }
    set
}

/// The longer members that mean something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    Stream,
    Payload,
    Account,
    Result,
    Error,
    Code,
    Status,
    Beat,
    Word,
    LastUpdateId,
}

const MEMBERS: usize = Member::LastUpdateId as usize + 1;

impl Member {
    fn of(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"stream" => Self::Stream,
            b"data" | b"event" => Self::Payload,
            b"account" => Self::Account,
            b"result" => Self::Result,
            b"error" => Self::Error,
            b"code" => Self::Code,
            b"status" => Self::Status,
            b"ping" | b"pong" => Self::Beat,
            b"op" | b"method" | b"type" => Self::Word,
            b"lastUpdateId" => Self::LastUpdateId,
            _ => return None,
        })
    }
}

/// Members that come with an event and say nothing of use here, or nothing at this level.
fn is_known(key: &[u8]) -> bool {
    matches!(key, b"ps" | b"st" | b"nq" | b"subscriptionId" | b"id" | b"msg")
}

/// Where the members of the latest message stand.
pub(super) struct Message {
    /// Of the event, wrapped or not.
    pub(super) event: Letters,
    /// Of the order within the event (`"o":{…}`).
    pub(super) order: Letters,
    /// The class that the stream's name alone decides: the payload is checked and not read.
    pub(super) unread: Option<Class>,
    /// A member that is used occurs twice.
    pub(super) duplicate: bool,
    /// A longer member that is not known.
    pub(super) unknown_member: bool,
    members: [Span; MEMBERS],
    filled: u32,
    key: Vec<u8>,
}

/// Which object the members belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Top,
    Payload,
    Order,
}

impl Message {
    pub(super) const fn new() -> Self {
        Self {
            event: Letters::new(),
            order: Letters::new(),
            unread: None,
            duplicate: false,
            unknown_member: false,
            members: [Span::NONE; MEMBERS],
            filled: 0,
            key: Vec::new(),
        }
    }

    /// The longer member, if the message has it.
    #[inline]
    pub(super) fn get(&self, member: Member) -> Option<Span> {
        (self.filled & 1 << member as u32 != 0).then(|| self.members[member as usize])
    }

    /// Reads an object.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.forget();
        let mut scanner = Scanner::new(bytes);
        self.object(&mut scanner, bytes, Level::Top)?;
        scanner.finish()
    }

    /// Reads an array: of its elements, the first if it is an object.
    pub(super) fn read_array(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.forget();
        let mut scanner = Scanner::new(bytes);
        let array = scanner.value()?;
        scanner.finish()?;
        let mut first = Scanner::from(bytes, array.start + 1);
        if first.next_byte() == b'{' {
            self.object(&mut first, bytes, Level::Payload)?;
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.event.filled = 0;
        self.order.filled = 0;
        self.unread = None;
        self.duplicate = false;
        self.unknown_member = false;
        self.filled = 0;
    }

    fn object(
        &mut self,
        scanner: &mut Scanner<'_>,
        bytes: &[u8],
        level: Level,
    ) -> Result<(), Fault> {
        scanner.enter()?;
        let mut first = true;
        loop {
            if let Some(letter) = scanner.letter_key(first) {
                first = false;
                self.letter(scanner, bytes, level, letter)?;
                continue;
            }
            let Some(key) = scanner.key(first)? else { break };
            first = false;
            if let (Kind::Text, &[letter]) = (key.kind, key.of(bytes)) {
                self.letter(scanner, bytes, level, letter)?;
            } else {
                self.longer(scanner, bytes, level, key)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn letter(
        &mut self,
        scanner: &mut Scanner<'_>,
        bytes: &[u8],
        level: Level,
        letter: u8,
    ) -> Result<(), Fault> {
        if !letter.is_ascii_alphabetic() {
            self.unknown_member = true;
            return scanner.value().map(drop);
        }
        let opens_order = letter == b'o' && level != Level::Order && scanner.next_byte() == b'{';
        let span = if opens_order {
            // Twice is a duplicate, told by the letter's own slot below.
            self.object(scanner, bytes, Level::Order)?;
            Span { kind: Kind::Object, ..Span::NONE }
        } else {
            scanner.value()?
        };
        // Letters at the top beside a payload would mix two events: whichever comes second is told.
        let beside = level == Level::Top && self.get(Member::Payload).is_some();
        let letters = if level == Level::Order { &mut self.order } else { &mut self.event };
        self.duplicate |= !letters.put(letter, span) | beside;
        Ok(())
    }

    #[inline]
    fn longer(
        &mut self,
        scanner: &mut Scanner<'_>,
        bytes: &[u8],
        level: Level,
        key: Span,
    ) -> Result<(), Fault> {
        let mut name = key.of(bytes);
        if key.kind == Kind::Escaped {
            let mut unescaped = std::mem::take(&mut self.key);
            unescaped.clear();
            let meant = unescape(name, &mut unescaped);
            self.key = unescaped;
            if meant.is_some()
                && let &[letter] = self.key.as_slice()
            {
                return self.letter(scanner, bytes, level, letter);
            }
            name = &self.key;
        }
        let member = Member::of(name).filter(|member| match level {
            Level::Top => true,
            Level::Payload => matches!(member, Member::Account | Member::LastUpdateId),
            Level::Order => false,
        });
        let Some(member) = member else {
            self.unknown_member |= level != Level::Order && !is_known(name);
            return scanner.value().map(drop);
        };
        let span = if member == Member::Payload && scanner.next_byte() == b'{' {
            self.payload(scanner, bytes)?
        } else {
            scanner.value()?
        };
        if member == Member::Stream && span.kind == Kind::Text {
            self.unread = names::unused_stream(span.of(bytes));
        }
        let bit = 1 << member as u32;
        self.duplicate |= self.filled & bit != 0;
        self.filled |= bit;
        self.members[member as usize] = span;
        Ok(())
    }

    fn payload(&mut self, scanner: &mut Scanner<'_>, bytes: &[u8]) -> Result<Span, Fault> {
        if self.unread.is_some() {
            return scanner.value();
        }
        self.duplicate |= self.event.filled != 0;
        self.object(scanner, bytes, Level::Payload)?;
        Ok(Span { kind: Kind::Object, ..Span::NONE })
    }
}
