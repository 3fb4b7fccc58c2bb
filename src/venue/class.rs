//! What a message turned out to be: small enumerations, each value with a stable label and index.
//!
//! Counters are plain arrays of [`Class::COUNT`] and [`Oddity::ALL`]`.len()`, indexed without a
//! hash. The labels appear in metrics and reports and do not change.

/// An enumeration whose values have a label, an index, and a list of all.
macro_rules! labelled {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $variant:ident = $label:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$what])* $variant,)+ }

        impl $name {
            /// Every value, in the order of the indices.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The place in [`ALL`](Self::ALL).
            #[must_use]
            pub const fn index(self) -> usize {
                self as usize
            }

            /// The stable name, in snake case.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }
        }
    };
}

labelled! {
    /// A known message that makes neither a quote nor a fill.
    Unused {
        /// A change of the order book, or its top levels.
        Depth = "depth",
        /// A whole order book, as a request answers it.
        Snapshot = "snapshot",
        /// Statistics of a time window.
        Ticker = "ticker",
        /// A candle.
        Kline = "kline",
        /// A mark or index price.
        MarkPrice = "mark_price",
        /// A liquidation order in the market.
        Liquidation = "liquidation",
        /// Facts about contracts and indices.
        Reference = "reference",
        /// An order of the account that was not executed by this message.
        Order = "order",
        /// An execution that the venue calculated itself (liquidation, deleveraging, settlement):
        /// not a trade of the account's own, so not folded into its volume, but counted apart.
        Calculated = "calculated",
        /// Anything else about the account: balances, positions, lists.
        Account = "account",
        /// A known quote sent again while nothing changes, to show that the connection lives.
        Repeat = "repeat",
        /// A message of rows without any.
        Empty = "empty",
    }
}

labelled! {
    /// A message about the connection itself.
    Control {
        /// The answer to a request.
        Ack = "ack",
        /// The venue reports an error; its text is the codec's latest problem.
        Error = "error",
        /// A ping, a pong or a heartbeat in the text of the feed.
        Heartbeat = "heartbeat",
        /// The venue is about to close the connection.
        Shutdown = "shutdown",
        /// The account's stream has ended or its key has expired.
        Expired = "expired",
    }
}

labelled! {
    /// Why a message was refused. Nothing of it was used.
    Refusal {
        /// Not JSON.
        Malformed = "malformed",
        /// Longer than [`MAX_MESSAGE_BYTES`](super::codec::MAX_MESSAGE_BYTES), or nested deeper
        /// than 128 levels.
        TooLarge = "too_large",
        /// A member that this kind of message must have is missing, or has no value.
        MissingField = "missing_field",
        /// A member that is used occurs twice.
        DuplicateField = "duplicate_field",
        /// A value of another JSON type than it can be.
        WrongType = "wrong_type",
        /// Not a finite number.
        BadNumber = "bad_number",
        /// A number with more digits than can be kept exactly.
        NumberTooLong = "number_too_long",
        /// An id that is negative or needs more than 64 bits.
        IdOutOfRange = "id_out_of_range",
        /// A negative size or quantity.
        NegativeSize = "negative_size",
        /// The symbol cannot name an instrument.
        BadSymbol = "bad_symbol",
        /// As many instruments are known as the configuration allows.
        InstrumentsFull = "instruments_full",
        /// Another feed owns the instrument.
        NotOwner = "not_owner",
        /// A quote with a lower update id than the one held.
        LateQuote = "late_quote",
        /// A change of something whose whole has not been told yet.
        NoSnapshot = "no_snapshot",
        /// A trade with a lower id than the one held of the same stream.
        LateTrade = "late_trade",
        /// A trade that has been counted before.
        DuplicateTrade = "duplicate_trade",
        /// A fill that has been counted before.
        DuplicateFill = "duplicate_fill",
        /// A fill so much older than the newest that it can no longer be told from a duplicate.
        OldFill = "old_fill",
        /// Neither the message nor the feed's configuration names an account.
        NoAccount = "no_account",
        /// The account's name is not one.
        BadAccount = "bad_account",
        /// As many accounts, or pairs of account and instrument, as there may be.
        AccountsFull = "accounts_full",
        /// A fill that is neither bought nor sold.
        BadSide = "bad_side",
        /// Price times quantity has no exact form.
        Overflow = "overflow",
    }
}

labelled! {
    /// What was odd about a message that was accepted nevertheless.
    Oddity {
        /// A number was `null` or empty: that side or size is withdrawn.
        Absent = "absent",
        /// A time that cannot be: not a number, or outside the years 2000 to 2100. It is treated
        /// as absent.
        ImplausibleTime = "implausible_time",
        /// A member that is not known.
        UnknownField = "unknown_field",
        /// A value that is not known, in a member that is not used.
        UnknownValue = "unknown_value",
        /// A row of a message with several was one that had been told before, or was older than what
        /// is held; the other rows were used.
        RepeatedRow = "repeated_row",
        /// A row of a message with several was refused for another reason, which the codec's latest
        /// problem says; the other rows were used.
        RefusedRow = "refused_row",
    }
}

/// The class of a message: exactly one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// One tick or, of a message with several rows, several: each of one instrument.
    Quote,
    /// One fill, or several.
    Fill,
    /// A stream or event that is not known.
    Unknown,
    /// Known, and of no use here.
    Unused(Unused),
    /// About the connection.
    Control(Control),
    /// Not used, for a reason.
    Refused(Refusal),
}

const UNUSED: usize = 3;
const CONTROL: usize = UNUSED + Unused::ALL.len();
const REFUSED: usize = CONTROL + Control::ALL.len();

impl Class {
    /// How many classes there are; every index is below it.
    pub const COUNT: usize = REFUSED + Refusal::ALL.len();

    /// Every class, in the order of the indices.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Quote, Self::Fill, Self::Unknown]
            .into_iter()
            .chain(Unused::ALL.iter().copied().map(Self::Unused))
            .chain(Control::ALL.iter().copied().map(Self::Control))
            .chain(Refusal::ALL.iter().copied().map(Self::Refused))
    }

    /// The place of the class in an array of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Quote => 0,
            Self::Fill => 1,
            Self::Unknown => 2,
            Self::Unused(unused) => UNUSED + unused.index(),
            Self::Control(control) => CONTROL + control.index(),
            Self::Refused(refusal) => REFUSED + refusal.index(),
        }
    }

    /// The kind of class: `quote`, `fill`, `unknown`, `unused`, `control` or `refused`.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::Quote => "quote",
            Self::Fill => "fill",
            Self::Unknown => "unknown",
            Self::Unused(_) => "unused",
            Self::Control(_) => "control",
            Self::Refused(_) => "refused",
        }
    }

    /// The class within its group; the group's own name where it is the only one.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Quote | Self::Fill | Self::Unknown => self.group(),
            Self::Unused(unused) => unused.label(),
            Self::Control(control) => control.label(),
            Self::Refused(refusal) => refusal.label(),
        }
    }
}

/// The oddities of one message: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Oddities(u8);

impl Oddities {
    /// Whether nothing was odd, as nearly always.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `oddity` was seen.
    #[must_use]
    pub const fn contains(self, oddity: Oddity) -> bool {
        self.0 & (1 << oddity.index()) != 0
    }

    /// What was seen.
    pub fn iter(self) -> impl Iterator<Item = Oddity> {
        Oddity::ALL.iter().copied().filter(move |&oddity| self.contains(oddity))
    }

    /// Notes that `oddity` was seen.
    pub(super) const fn insert(&mut self, oddity: Oddity) {
        self.0 |= 1 << oddity.index();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_class_has_its_own_index_and_its_own_pair_of_labels() {
        let all: Vec<Class> = Class::all().collect();
        assert_eq!(all.len(), Class::COUNT);
        for (index, class) in all.iter().enumerate() {
            assert_eq!(class.index(), index);
        }
        let labels: HashSet<_> = all.iter().map(|c| (c.group(), c.label())).collect();
        assert_eq!(labels.len(), Class::COUNT);
    }

    #[test]
    fn a_set_of_oddities_gives_back_what_was_put_in() {
        let mut set = Oddities::default();
        assert!(set.is_empty());
        set.insert(Oddity::UnknownField);
        set.insert(Oddity::Absent);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Oddity::Absent, Oddity::UnknownField]);
        assert!(!set.contains(Oddity::ImplausibleTime));
    }
}
