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
    /// The message is an array, and its members are those of its first element.
    pub(super) array: bool,
    /// A member that is used occurs twice.
    pub(super) duplicate: bool,
    /// A longer member that is not known.
    pub(super) unknown_member: bool,
    members: [Span; MEMBERS],
    filled: u32,
    key: Vec<u8>,
}

/// Which object the members belong to: a constant, so that each level has code of its own.
type Level = u8;
const TOP: Level = 0;
const PAYLOAD: Level = 1;
const ORDER: Level = 2;

impl Message {
    pub(super) const fn new() -> Self {
        Self {
            event: Letters::new(),
            order: Letters::new(),
            unread: None,
            array: false,
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
        // The way that nearly all messages of a combined connection begin.
        if scanner.pass(b"{\"stream\":") {
            self.member(&mut scanner, bytes, Member::Stream)?;
            if scanner.pass(b",\"data\":") {
                self.member(&mut scanner, bytes, Member::Payload)?;
            }
            self.members::<TOP>(&mut scanner, bytes, false)?;
        } else {
            self.object::<TOP>(&mut scanner, bytes)?;
        }
        scanner.finish()
    }

    /// Reads an array: of its elements, the first if it is an object.
    pub(super) fn read_array(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.forget();
        self.array = true;
        let mut scanner = Scanner::new(bytes);
        let array = scanner.value()?;
        scanner.finish()?;
        let mut first = Scanner::from(bytes, array.start + 1);
        if first.next_byte() == b'{' {
            self.object::<PAYLOAD>(&mut first, bytes)?;
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.event.filled = 0;
        self.order.filled = 0;
        self.unread = None;
        self.array = false;
        self.duplicate = false;
        self.unknown_member = false;
        self.filled = 0;
    }

    #[inline]
    fn object<const LEVEL: Level>(
        &mut self,
        scanner: &mut Scanner<'_>,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        scanner.enter()?;
        self.members::<LEVEL>(scanner, bytes, true)
    }

    /// The members of the object stepped into, to its end; `first` if none has been read.
    #[inline]
    fn members<const LEVEL: Level>(
        &mut self,
        scanner: &mut Scanner<'_>,
        bytes: &[u8],
        mut first: bool,
    ) -> Result<(), Fault> {
        loop {
            if let Some(letter) = scanner.letter_key(first) {
                first = false;
                self.letter::<LEVEL>(scanner, bytes, letter)?;
                continue;
            }
            let Some(key) = scanner.key(first)? else { return Ok(()) };
            first = false;
            self.longer::<LEVEL>(scanner, bytes, key)?;
        }
    }

    /// The member called `letter`, its key passed.
    #[inline]
    fn letter<const LEVEL: Level>(
        &mut self,
        scanner: &mut Scanner<'_>,
        bytes: &[u8],
        letter: u8,
    ) -> Result<(), Fault> {
        let span = if LEVEL != ORDER && letter == b'o' && scanner.next_byte() == b'{' {
            // Twice is a duplicate, told by the letter's own slot below.
            self.order(scanner, bytes)?
        } else {
            scanner.value()?
        };
        // Letters at the top beside a payload would mix two events: whichever comes second is told.
        let beside = LEVEL == TOP && self.get(Member::Payload).is_some();
        let letters = if LEVEL == ORDER { &mut self.order } else { &mut self.event };
        self.duplicate |= !letters.put(letter, span) | beside;
        Ok(())
    }

    fn order(&mut self, scanner: &mut Scanner<'_>, bytes: &[u8]) -> Result<Span, Fault> {
        self.object::<ORDER>(scanner, bytes)?;
        Ok(Span { kind: Kind::Object, ..Span::NONE })
    }

    /// A member whose key was not passed as a letter: longer, or spaced out, or escaped.
    fn longer<const LEVEL: Level>(
        &mut self,
        scanner: &mut Scanner<'_>,
        bytes: &[u8],
        key: Span,
    ) -> Result<(), Fault> {
        let mut name = key.of(bytes);
        if key.kind == Kind::Escaped {
            self.key.clear();
            if unescape(name, &mut self.key).is_some() {
                name = &self.key;
            }
        }
        if let &[letter] = name
            && letter.is_ascii_alphabetic()
        {
            return self.letter::<LEVEL>(scanner, bytes, letter);
        }
        let member = Member::of(name).filter(|member| match LEVEL {
            TOP => true,
            PAYLOAD => matches!(member, Member::Account | Member::LastUpdateId),
            _ => false,
        });
        if let Some(member) = member {
            return self.member(scanner, bytes, member);
        }
        self.unknown_member |= LEVEL != ORDER && !is_known(name);
        scanner.value().map(drop)
    }

    /// A member that means something, its key passed.
    fn member(
        &mut self,
        scanner: &mut Scanner<'_>,
        bytes: &[u8],
        member: Member,
    ) -> Result<(), Fault> {
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
        self.object::<PAYLOAD>(scanner, bytes)?;
        Ok(Span { kind: Kind::Object, ..Span::NONE })
    }
}
