//! A row of a message, read member by member: what is blank or implausible is noted on the way.

use super::book::{Last, Side, Trade, TradeStream};
use super::class::{Oddities, Oddity, Refusal};
use super::json::{Kind, Scanner, Span};
use super::members::{Members, each_element, elements};
use super::read::{self, Reading, Time, TimeUnits};
use super::shell::{Of as _, Trouble};
use crate::market::Decimal;

/// A price and its size.
pub(super) type Pair<T> = [T; 2];

/// The members of one object, and what is needed to read them.
pub(super) struct Row<'a, const N: usize> {
    pub(super) members: &'a Members<N>,
    pub(super) message: &'a [u8],
    pub(super) scratch: &'a mut Vec<u8>,
    pub(super) oddities: &'a mut Oddities,
}

impl<const N: usize> Row<'_, N> {
    /// Refuses what occurs twice, and notes what is not known.
    #[inline]
    pub(super) fn check(&mut self) -> Result<(), Trouble> {
        if self.members.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        if self.members.unknown {
            self.oddities.insert(Oddity::UnknownField);
        }
        Ok(())
    }

    /// A decimal that must be there.
    #[inline]
    pub(super) fn price(&mut self, place: u8, name: &'static str) -> Result<Decimal, Trouble> {
        let price = read::decimal(self.members.get(place), self.message, self.scratch);
        price.and_then(Reading::required).of(name)
    }

    /// A size that must be there, but may be blank.
    #[inline]
    pub(super) fn size(
        &mut self,
        place: u8,
        name: &'static str,
    ) -> Result<Option<Decimal>, Trouble> {
        match read::size(self.members.get(place), self.message, self.scratch).of(name)? {
            Reading::Value(size) => Ok(Some(size)),
            Reading::Blank => {
                self.oddities.insert(Oddity::Absent);
                Ok(None)
            }
            Reading::Missing => Err(Trouble { reason: Refusal::MissingField, member: name }),
        }
    }

    /// A size that must be there and say something.
    #[inline]
    pub(super) fn quantity(&mut self, place: u8, name: &'static str) -> Result<Decimal, Trouble> {
        let size = read::size(self.members.get(place), self.message, self.scratch);
        size.and_then(Reading::required).of(name)
    }

    /// An id of 64 bits that must be there.
    #[inline]
    pub(super) fn id(&mut self, place: u8, name: &'static str) -> Result<u64, Trouble> {
        read::id(self.members.get(place), self.message, self.scratch).of(name)
    }

    /// An id of 64 bits that may be left out.
    #[inline]
    pub(super) fn optional_id(
        &mut self,
        place: u8,
        name: &'static str,
    ) -> Result<Option<u64>, Trouble> {
        if self.members.get(place).is_none() { Ok(None) } else { self.id(place, name).map(Some) }
    }

    /// A text that must be there.
    #[inline]
    pub(super) fn text(&mut self, place: u8, name: &'static str) -> Result<&[u8], Trouble> {
        let span = self.members.get(place).ok_or(Refusal::MissingField).of(name)?;
        read::text(span, self.message, self.scratch).of(name)
    }

    /// A text or number that may be left out or blank.
    #[inline]
    pub(super) fn word(&mut self, place: u8, name: &'static str) -> Result<Option<&[u8]>, Trouble> {
        word(self.members.get(place), self.message, self.scratch).of(name)
    }

    /// A time of the venue.
    #[inline]
    pub(super) fn time(&mut self, place: u8, units: TimeUnits) -> Option<i64> {
        match read::time(self.members.get(place), units, self.message, self.scratch) {
            Time::At(time) => Some(time),
            Time::Missing => None,
            Time::Implausible => {
                self.oddities.insert(Oddity::ImplausibleTime);
                None
            }
        }
    }

    /// A side told whole: see [`read::side`].
    #[inline]
    pub(super) fn side(
        &mut self,
        places: Pair<u8>,
        names: Pair<&'static str>,
    ) -> Result<Side, Trouble> {
        self.side_of(places.map(|place| self.members.get(place)), names)
    }

    /// A side from its price and size, wherever they stand.
    #[inline]
    pub(super) fn side_of(
        &mut self,
        spans: Pair<Option<Span>>,
        names: Pair<&'static str>,
    ) -> Result<Side, Trouble> {
        let mut absent = false;
        let side = read::side(spans, names, self.message, self.scratch, &mut absent);
        if absent {
            self.oddities.insert(Oddity::Absent);
        }
        side
    }

    /// What changes of a side: a price or a size that is left out is the one held.
    #[inline]
    pub(super) fn change(
        &mut self,
        places: Pair<u8>,
        names: Pair<&'static str>,
        held: Pair<Option<Decimal>>,
    ) -> Result<Side, Trouble> {
        let [price, size] = places.map(|place| self.members.get(place));
        if price.is_some() == size.is_some() {
            return self.side_of([price, size], names);
        }
        let price = read::decimal(price, self.message, self.scratch).of(names[0])?;
        let size = read::size(size, self.message, self.scratch).of(names[1])?;
        if matches!((price, size), (Reading::Blank, _) | (_, Reading::Blank)) {
            self.oddities.insert(Oddity::Absent);
        }
        Ok(match (price, size, held[0]) {
            (Reading::Blank, ..) => Side::Withdrawn,
            (Reading::Value(price), ..) => Side::At(price, held[1]),
            (_, Reading::Value(size), Some(price)) => Side::At(price, Some(size)),
            (_, Reading::Blank, Some(price)) => Side::At(price, None),
            // The size of no offer.
            _ => Side::Kept,
        })
    }

    /// The last price beside a quote, with its size if the venue tells it there.
    #[inline]
    pub(super) fn last(
        &mut self,
        [price, size]: Pair<Option<u8>>,
        names: Pair<&'static str>,
        time: Option<i64>,
    ) -> Result<Last, Trouble> {
        let span = |place: Option<u8>| place.and_then(|place| self.members.get(place));
        let [price, size] = [span(price), span(size)];
        let price = read::decimal(price, self.message, self.scratch).of(names[0])?;
        let size = read::size(size, self.message, self.scratch).of(names[1])?;
        let size = match size {
            Reading::Value(size) => Some(size),
            Reading::Missing => None,
            Reading::Blank => {
                self.oddities.insert(Oddity::Absent);
                None
            }
        };
        Ok(match price {
            Reading::Missing => Last::Kept,
            Reading::Blank => {
                self.oddities.insert(Oddity::Absent);
                Last::Withdrawn
            }
            Reading::Value(price) => {
                Last::Trade(Trade { stream: TradeStream::Ticker, id: None, price, size, time })
            }
        })
    }

    /// The best level of a side that is told as a list of levels: the first, as the venue sorts them.
    /// A list without levels is a side that nobody offers.
    pub(super) fn best(&mut self, place: u8, name: &'static str) -> Result<Side, Trouble> {
        let Some(levels) = self.members.get(place) else { return Ok(Side::Kept) };
        match levels.kind {
            Kind::Null => {
                self.oddities.insert(Oddity::Absent);
                Ok(Side::Withdrawn)
            }
            Kind::Array => {
                let mut best = Side::Withdrawn;
                self.each_level(levels, name, |row, count, spans| {
                    if count == 0 {
                        best = row.level(spans, name)?;
                    }
                    Ok(())
                })?;
                Ok(best)
            }
            _ => Err(Trouble { reason: Refusal::WrongType, member: name }),
        }
    }

    /// A price and size of a level, both of which must be there.
    pub(super) fn level(
        &mut self,
        spans: Pair<Option<Span>>,
        name: &'static str,
    ) -> Result<Side, Trouble> {
        if spans == [None, None] {
            return Err(Trouble { reason: Refusal::MissingField, member: name });
        }
        self.side_of(spans, [name, name])
    }

    /// Tells each level of a list its place, from 0, and the spans of its price and size.
    pub(super) fn each_level(
        &mut self,
        levels: Span,
        name: &'static str,
        mut level: impl FnMut(&mut Self, usize, Pair<Option<Span>>) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let mut scanner = Scanner::from(self.message, levels.start);
        let mut found = Ok(());
        // The list has been scanned once, so that its grammar is right.
        let scanned = each_element(&mut scanner, |scanner, count| {
            let mut pair = Members::<2>::new();
            let span = elements(scanner, &mut pair, &[Some(0), Some(1)])?;
            if found.is_ok() {
                found = if span.kind == Kind::Array {
                    level(self, count, [pair.get(0), pair.get(1)])
                } else {
                    Err(Trouble { reason: Refusal::WrongType, member: name })
                };
            }
            Ok(())
        });
        scanned.map_err(|_| Refusal::Malformed).of(name)?;
        found
    }
}

/// A text or the digits of a number; `None` if it is left out or blank.
#[inline]
pub(super) fn word<'a>(
    span: Option<Span>,
    message: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<Option<&'a [u8]>, Refusal> {
    let Some(span) = span else { return Ok(None) };
    let text = match span.kind {
        Kind::Null => return Ok(None),
        Kind::Number => span.of(message),
        _ => read::text(span, message, scratch)?,
    };
    Ok((!text.is_empty()).then_some(text))
}
