//! One pass over a message of either interface.

use crate::venue::json::{Fault, Kind, Scanner, Span};
use crate::venue::members::{Members, Name, Rows, each_element, each_member, elements};

// Of a row.
pub(super) const SYMBOL: u8 = 0;
pub(super) const BID: u8 = 1;
pub(super) const BID_SIZE: u8 = 2;
pub(super) const ASK: u8 = 3;
pub(super) const ASK_SIZE: u8 = 4;
pub(super) const PRICE: u8 = 5;
pub(super) const SIZE: u8 = 6;
pub(super) const TRADE_ID: u8 = 7;
pub(super) const TIME: u8 = 8;
pub(super) const SIDE: u8 = 9;
pub(super) const ORDER_TYPE: u8 = 10;
pub(super) const LAST: u8 = 11;
pub(super) const ROW: usize = 12;

// Of an object around the rows, or without any.
pub(super) const CHANNEL: u8 = 0;
pub(super) const DATA: u8 = 1;
pub(super) const EVENT: u8 = 2;
pub(super) const METHOD: u8 = 3;
pub(super) const SUCCESS: u8 = 4;
pub(super) const STATUS: u8 = 5;
pub(super) const ERROR: u8 = 6;
pub(super) const TOP: usize = 7;

/// What a pass has found.
pub(super) struct Found {
    /// An array, as the first interface sends data.
    pub(super) array: bool,
    pub(super) top: Members<TOP>,
    pub(super) rows: Rows<ROW>,
    /// The second element of the array, if it is neither an object nor an array.
    pub(super) second: Span,
    /// The third to fifth, and how many elements it has.
    pub(super) tail: [Span; 3],
    pub(super) elements: usize,
}

impl Found {
    pub(super) const fn new() -> Self {
        Self {
            array: false,
            top: Members::new(),
            rows: Rows::new(),
            second: Span::NONE,
            tail: [Span::NONE; 3],
            elements: 0,
        }
    }

    /// Reads a message to its end.
    #[inline]
    pub(super) fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.top.clear();
        self.rows.clear();
        let mut scanner = Scanner::new(message);
        self.array = scanner.next_byte() == b'[';
        if self.array {
            self.array(&mut scanner, message)?;
        } else {
            self.object(&mut scanner, message)?;
        }
        scanner.finish()
    }

    #[inline]
    fn object(&mut self, scanner: &mut Scanner<'_>, message: &[u8]) -> Result<(), Fault> {
        let mut read = true;
        each_member(scanner, message, |scanner, key| {
            let place = match key {
                b"channel" => CHANNEL,
                b"data" if read && scanner.next_byte() == b'[' => {
                    let span = each_element(scanner, |scanner, _| {
                        let row = self.rows.add();
                        row.object(scanner, message, row_name).map(drop)
                    })?;
                    self.top.put(DATA, span);
                    return Ok(());
                }
                b"data" => DATA,
                b"event" => EVENT,
                b"method" => METHOD,
                b"success" => SUCCESS,
                b"status" => STATUS,
                b"error" => ERROR,
                b"type" => return scanner.value().map(drop),
                _ => return self.top.pass(Name::Unknown, scanner),
            };
            let span = scanner.value()?;
            if place == CHANNEL {
                // Order books are most of what is sent: they are checked, and not read.
                read = matches!(span.of(message), b"ticker" | b"trade");
            }
            self.top.put(place, span);
            Ok(())
        })
        .map(drop)
    }

    /// `[channel id, payload, "ticker", "XBT/USD"]`; a payload may be in two parts.
    #[inline]
    fn array(&mut self, scanner: &mut Scanner<'_>, message: &[u8]) -> Result<(), Fault> {
        self.elements = 0;
        self.second = Span::NONE;
        each_element(scanner, |scanner, index| {
            self.elements = index + 1;
            if index == 1 {
                return match scanner.next_byte() {
                    b'{' => self.ticker(scanner, message),
                    b'[' => self.trades(scanner),
                    _ => {
                        self.second = scanner.value()?;
                        Ok(())
                    }
                };
            }
            let span = scanner.value()?;
            if let Some(slot) = index.checked_sub(2).and_then(|index| self.tail.get_mut(index)) {
                *slot = span;
            }
            Ok(())
        })
        .map(drop)
    }

    /// `{"a":[price,whole lots,lots],"b":[…],"c":[price,lots],…}`.
    #[inline]
    fn ticker(&mut self, scanner: &mut Scanner<'_>, message: &[u8]) -> Result<(), Fault> {
        let row = self.rows.add();
        each_member(scanner, message, |scanner, key| {
            let (places, blank): (&[Option<u8>], _) = match key {
                b"a" => (&[Some(ASK), None, Some(ASK_SIZE)], [ASK, ASK_SIZE]),
                b"b" => (&[Some(BID), None, Some(BID_SIZE)], [BID, BID_SIZE]),
                b"c" => (&[Some(LAST), Some(SIZE)], [LAST, SIZE]),
                b"v" | b"p" | b"t" | b"l" | b"h" | b"o" => return scanner.value().map(drop),
                // A change of the book, whose name comes later.
                b"as" | b"bs" => return scanner.value().map(drop),
                _ => return row.pass(Name::Unknown, scanner),
            };
            let span = elements(scanner, row, places)?;
            if span.kind != Kind::Array {
                row.put(blank[0], span);
                row.put(blank[1], Span { kind: Kind::Null, ..Span::NONE });
            }
            Ok(())
        })
        .map(drop)
    }

    /// `[[price,volume,time,side,order type,miscellaneous],…]`.
    #[inline]
    fn trades(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        const PLACES: &[Option<u8>] =
            &[Some(PRICE), Some(SIZE), Some(TIME), Some(SIDE), Some(ORDER_TYPE)];
        each_element(scanner, |scanner, _| elements(scanner, self.rows.add(), PLACES).map(drop))
            .map(drop)
    }
}

fn row_name(key: &[u8]) -> Name {
    Name::Used(match key {
        b"symbol" => SYMBOL,
        b"bid" => BID,
        b"bid_qty" => BID_SIZE,
        b"ask" => ASK,
        b"ask_qty" => ASK_SIZE,
        b"last" => LAST,
        b"timestamp" => TIME,
        b"price" => PRICE,
        b"qty" => SIZE,
        b"trade_id" => TRADE_ID,
        b"side" => SIDE,
        b"ord_type" => ORDER_TYPE,
        b"volume" | b"vwap" | b"low" | b"high" | b"change" | b"change_pct" | b"volume_usd" => {
            return Name::Known;
        }
        _ => return Name::Unknown,
    })
}
