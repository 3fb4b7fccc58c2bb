//! Members and elements, found in one pass by name and place.
//!
//! A message is read once, whatever the order of its members: the spans of those that mean
//! something are kept, the rest is checked and passed over. Objects and arrays that mean something
//! are stepped into where they stand, to a fixed depth.

use super::json::{Fault, Kind, Scanner, Span, unescape};

/// What a member's name means to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Its value is kept, in this place.
    Used(u8),
    /// It is known, and of no use here.
    Known,
    /// It is not known.
    Unknown,
}

/// The members of one object that mean something: at most 32, each in its place.
#[derive(Clone, Copy)]
pub(super) struct Members<const N: usize> {
    filled: u32,
    spans: [Span; N],
    /// A member that means something occurs twice.
    pub(super) duplicate: bool,
    /// There is a member that is not known.
    pub(super) unknown: bool,
}

impl<const N: usize> Members<N> {
    pub(super) const fn new() -> Self {
        Self { filled: 0, spans: [Span::NONE; N], duplicate: false, unknown: false }
    }

    /// Forgets all; the spans are left as they are, unread.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.filled = 0;
        self.duplicate = false;
        self.unknown = false;
    }

    /// The member in `place`, if there is one.
    #[inline]
    pub(super) fn get(&self, place: u8) -> Option<Span> {
        let spans = self.spans.get(place as usize)?;
        (self.filled & 1 << place != 0).then_some(*spans)
    }

    /// Whether there is such a member, and it is not `null`.
    #[inline]
    pub(super) fn has(&self, place: u8) -> bool {
        self.get(place).is_some_and(|span| span.kind != Kind::Null)
    }

    /// Whether no member means anything.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    #[inline]
    pub(super) fn put(&mut self, place: u8, span: Span) {
        let bit = 1 << place;
        self.duplicate |= self.filled & bit != 0;
        self.filled |= bit;
        if let Some(slot) = self.spans.get_mut(place as usize) {
            *slot = span;
        }
    }

    /// Passes the next value, which is the one of a member called so.
    #[inline]
    pub(super) fn pass(&mut self, name: Name, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        let span = scanner.value()?;
        match name {
            Name::Used(place) => self.put(place, span),
            Name::Known => {}
            Name::Unknown => self.unknown = true,
        }
        Ok(())
    }

    /// Passes the next value, which goes to `place`, and answers it if it is a text without escapes.
    #[inline]
    pub(super) fn text<'m>(
        &mut self,
        place: u8,
        scanner: &mut Scanner<'_>,
        message: &'m [u8],
    ) -> Result<Option<&'m [u8]>, Fault> {
        let span = scanner.value()?;
        self.put(place, span);
        Ok((span.kind == Kind::Text).then(|| span.of(message)))
    }

    /// Passes the next value: an object whose members `names` tells, or anything else as it is.
    #[inline]
    pub(super) fn object(
        &mut self,
        scanner: &mut Scanner<'_>,
        bytes: &[u8],
        names: impl Fn(&[u8]) -> Name,
    ) -> Result<Span, Fault> {
        if scanner.next_byte() != b'{' {
            return scanner.value();
        }
        each_member(scanner, bytes, |scanner, key| self.pass(names(key), scanner))
    }
}

/// Reads the object that comes next: `member` is told each key and passes its value. The span says
/// no more than that it was an object.
#[inline]
pub(super) fn each_member(
    scanner: &mut Scanner<'_>,
    bytes: &[u8],
    mut member: impl FnMut(&mut Scanner<'_>, &[u8]) -> Result<(), Fault>,
) -> Result<Span, Fault> {
    scanner.enter()?;
    let mut first = true;
    while let Some(key) = scanner.key(first)? {
        first = false;
        if key.kind == Kind::Text {
            member(scanner, key.of(bytes))?;
        } else {
            escaped(scanner, key.of(bytes), &mut member)?;
        }
    }
    Ok(Span { kind: Kind::Object, ..Span::NONE })
}

/// A member whose key has escapes: rare, so that it may allocate.
#[cold]
fn escaped(
    scanner: &mut Scanner<'_>,
    raw: &[u8],
    member: &mut impl FnMut(&mut Scanner<'_>, &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut key = Vec::with_capacity(raw.len());
    let known = unescape(raw, &mut key).is_some();
    member(scanner, if known { &key } else { raw })
}

/// Reads the array that comes next: `element` is told each place, from 0, and passes its value. The
/// span says no more than that it was an array.
#[inline]
pub(super) fn each_element(
    scanner: &mut Scanner<'_>,
    mut element: impl FnMut(&mut Scanner<'_>, usize) -> Result<(), Fault>,
) -> Result<Span, Fault> {
    scanner.enter_array()?;
    let mut place = 0;
    while scanner.element(place == 0)? {
        element(scanner, place)?;
        place += 1;
    }
    Ok(Span { kind: Kind::Array, ..Span::NONE })
}

/// Puts the elements of the array that comes next into `places`, in order, and passes those that have
/// none; anything but an array is passed as it is.
#[inline]
pub(super) fn elements<const N: usize>(
    scanner: &mut Scanner<'_>,
    into: &mut Members<N>,
    places: &[Option<u8>],
) -> Result<Span, Fault> {
    if scanner.next_byte() != b'[' {
        return scanner.value();
    }
    each_element(scanner, |scanner, index| {
        let span = scanner.value()?;
        if let Some(&Some(place)) = places.get(index) {
            into.put(place, span);
        }
        Ok(())
    })
}

/// Rows of one message, kept between messages so that nothing is allocated in steady state.
pub(super) struct Rows<const N: usize> {
    rows: Vec<Members<N>>,
    used: usize,
    /// An array of them had something else than objects.
    pub(super) strange: bool,
    /// An id and a place of each row, if they were put in order.
    order: Vec<(u64, usize)>,
}

impl<const N: usize> Rows<N> {
    pub(super) const fn new() -> Self {
        Self { rows: Vec::new(), used: 0, strange: false, order: Vec::new() }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.strange = false;
        self.order.clear();
        // One huge message is no reason to hold its room for ever.
        if self.rows.len() > 10_000 {
            (self.rows, self.order) = (Vec::new(), Vec::new());
        }
    }

    /// Passes the next value: an array, each object of which becomes a row whose members `names`
    /// tells, or anything else as it is.
    #[inline]
    pub(super) fn objects(
        &mut self,
        scanner: &mut Scanner<'_>,
        message: &[u8],
        names: impl Fn(&[u8]) -> Name,
    ) -> Result<Span, Fault> {
        if scanner.next_byte() != b'[' {
            return scanner.value();
        }
        each_element(scanner, |scanner, _| {
            if scanner.next_byte() == b'{' {
                return self.add().object(scanner, message, &names).map(drop);
            }
            self.strange = true;
            scanner.value().map(drop)
        })
    }

    /// The next row, empty.
    #[inline]
    pub(super) fn add(&mut self) -> &mut Members<N> {
        if self.used == self.rows.len() {
            self.rows.push(Members::new());
        }
        self.used += 1;
        let row = &mut self.rows[self.used - 1];
        row.clear();
        row
    }

    /// How many rows the message has.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// The row that is to be read as number `index`, empty past the last.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Members<N> {
        let place = self.order.get(index).map_or(index, |&(_, place)| place);
        self.rows[..self.used].get(place).copied().unwrap_or(Members::new())
    }

    /// Puts the rows in the order of their ids, which are in `place`: venues are seen to send the
    /// newest trade of a message first. A row without an id can be refused at any time.
    #[inline]
    pub(super) fn sort_by_id(&mut self, place: u8, message: &[u8]) {
        if self.used > 1 {
            self.sort(place, message);
        }
    }

    fn sort(&mut self, place: u8, message: &[u8]) {
        let id = |row: &Members<N>| {
            let digits = row.get(place).map_or(&[][..], |span| span.of(message));
            digits.iter().fold(0_u64, |id, byte| {
                id.saturating_mul(10).saturating_add(u64::from(byte.wrapping_sub(b'0') & 15))
            })
        };
        self.order.extend(self.rows[..self.used].iter().enumerate().map(|(at, row)| (id(row), at)));
        self.order.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Members<2>, Result<Span, Fault>) {
        let mut members = Members::new();
        let mut scanner = Scanner::new(text.as_bytes());
        let span = members.object(&mut scanner, text.as_bytes(), |key| match key {
            b"a" => Name::Used(0),
            b"b" => Name::Used(1),
            b"c" => Name::Known,
            _ => Name::Unknown,
        });
        (members, span)
    }

    #[test]
    fn members_are_found_whatever_their_order_and_spelling() {
        for text in [r#"{"a":1,"b":[2]}"#, r#"{ "b" : [2], "c":{"a":3}, "\u0061" : 1 }"#] {
            let (members, span) = read(text);
            assert_eq!(span.map(|span| span.kind), Ok(Kind::Object));
            assert_eq!(members.get(0).unwrap().of(text.as_bytes()), b"1");
            assert_eq!(members.get(1).unwrap().of(text.as_bytes()), b"[2]");
            assert!(!members.duplicate && !members.unknown);
        }
    }

    #[test]
    fn a_member_twice_and_one_that_is_not_known_are_told() {
        assert!(read(r#"{"a":1,"\u0061":1}"#).0.duplicate);
        let (members, _) = read(r#"{"c":1,"c":1,"d":null}"#);
        assert!(members.unknown && !members.duplicate && members.filled == 0);
        assert_eq!(read("null").1.map(|span| span.kind), Ok(Kind::Null));
        assert_eq!(read(r#"{"a":1"#).1, Err(Fault::Malformed));
    }

    #[test]
    fn rows_are_used_again_and_empty() {
        let mut rows: Rows<2> = Rows::new();
        rows.add().put(0, Span::NONE);
        rows.add();
        assert_eq!(rows.len(), 2);
        rows.clear();
        assert_eq!(rows.len(), 0);
        assert!(rows.add().get(0).is_none());
        assert!(rows.get(7).get(0).is_none());
    }

    #[test]
    fn rows_are_read_in_the_order_of_their_ids_and_equal_ones_as_they_came() {
        let text = br#"[["9"],[10],["9"],["7"],[null]]"#;
        let mut rows: Rows<1> = Rows::new();
        let mut scanner = Scanner::new(text);
        each_element(&mut scanner, |scanner, _| {
            elements(scanner, rows.add(), &[Some(0)]).map(drop)
        })
        .unwrap();
        rows.sort_by_id(0, text);
        let starts = |index: usize| rows.get(index).get(0).unwrap().start;
        let ids: Vec<_> = (0..4).map(|i| rows.get(i).get(0).unwrap().of(text)).collect();
        assert_eq!(ids, [&b"7"[..], b"9", b"9", b"10"]);
        assert!(starts(1) < starts(2));
    }

    #[test]
    fn elements_go_to_their_places_and_the_rest_is_passed() {
        let text = br#"["1",2,[3]] "#;
        let mut members = Members::<2>::new();
        let mut scanner = Scanner::new(text);
        elements(&mut scanner, &mut members, &[None, Some(1)]).unwrap();
        scanner.finish().unwrap();
        assert_eq!(members.get(1).unwrap().of(text), b"2");
        assert!(members.get(0).is_none());
    }
}
