//! One simulated instrument: its book's top, its last trade, its ids.
//!
//! Prices are counted in the instrument's own smallest step, quantities in its smallest lot; both
//! are written with the venue's eight places. Step times lot is a whole number of 10⁻⁸, so a
//! trade's value is exact in eight places too.

use super::super::seeded::Seeded;

/// 10⁻⁸s in one.
pub(super) const ONE: u64 = 100_000_000;

/// Base asset, quote asset, first price, price step, lot; the last three in 10⁻⁸s.
type Terms = (&'static str, &'static str, u64, u64, u64);

/// Busiest first. The last eight are made up; one of them is not ASCII.
const KNOWN: [Terms; 24] = [
    ("BTC", "USDT", 9_183_763_000_000, 1_000_000, 1_000),
    ("ETH", "USDT", 314_512_000_000, 1_000_000, 10_000),
    ("SOL", "USDT", 13_427_000_000, 1_000_000, 100_000),
    ("XRP", "USDT", 214_320_000, 10_000, 10_000_000),
    ("BNB", "USDT", 89_240_000_000, 1_000_000, 100_000),
    ("DOGE", "USDT", 14_789_000, 1_000, ONE),
    ("潮汐", "USDT", 31_415_900, 100, ONE),
    ("ADA", "USDT", 38_910_000, 10_000, 10_000_000),
    ("LINK", "USDT", 1_342_000_000, 1_000_000, 1_000_000),
    ("AVAX", "USDT", 1_387_000_000, 1_000_000, 1_000_000),
    ("LTC", "USDT", 8_212_000_000, 1_000_000, 100_000),
    ("DOT", "USDT", 214_100_000, 100_000, 1_000_000),
    ("BCH", "USDT", 64_190_000_000, 10_000_000, 100_000),
    ("ETH", "BTC", 3_425_000, 1_000, 100_000),
    ("BNB", "BTC", 971_700, 100, 1_000_000),
    ("1000SATS", "USDT", 22_310, 10, ONE),
    ("AE", "BTC", 1_240, 1, ONE),
    ("TIDE", "USDT", 271_828_000, 1_000, 100_000_000),
    ("SHOAL", "USDT", 1_618_000, 1_000, ONE),
    ("KELP", "BTC", 57_721, 1, ONE),
    ("REEF9", "ETH", 141_400, 100, 10_000_000),
    ("BRINE", "USDT", 17_320_500_000, 100_000, 10_000),
    ("EBB", "USDT", 693_100_000, 100_000, 1_000_000),
    ("SURGE", "BNB", 1_202_000, 1_000, 1_000_000),
];

/// Which side the taker of a trade is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taker {
    /// At the ask; the resting side sells.
    Buys,
    /// At the bid; the resting side buys.
    Sells,
}

/// See the module.
pub(super) struct Instrument {
    symbol: String,
    /// The symbol as stream names spell it.
    pub(super) lower_case: String,
    pub(super) base: String,
    pub(super) quote: String,
    step: u64,
    lot: u64,
    /// Price that the walk keeps near to, in steps.
    home: u64,
    /// In steps.
    pub(super) bid: u64,
    spread: u64,
    /// In lots.
    pub(super) bid_size: u64,
    pub(super) ask_size: u64,
    pub(super) update_id: u64,
    /// First update id of the last depth update, and its level's distance and size.
    pub(super) depth: Depth,
    pub(super) trade: Trade,
    pub(super) aggregate_id: u64,
    /// Messages so far that make a quote.
    pub(super) ticks: u64,
}

/// A change deeper in the book.
#[derive(Clone, Copy, Default)]
pub(super) struct Depth {
    pub(super) first_id: u64,
    pub(super) bid: u64,
    pub(super) bid_size: u64,
    pub(super) ask: u64,
    pub(super) ask_size: u64,
}

/// The last trade.
#[derive(Clone, Copy)]
pub(super) struct Trade {
    pub(super) id: u64,
    /// In steps.
    pub(super) price: u64,
    /// In lots.
    pub(super) size: u64,
    pub(super) taker: Taker,
}

impl Instrument {
    pub(super) fn new(index: usize, seeded: &mut Seeded) -> Self {
        let made_up = format!("SIM{index:05}");
        let (base, quote, price, step, lot) = match KNOWN.get(index) {
            Some(&known) => known,
            None => (&*made_up, "USDT", seeded.between(10, 100_000) * ONE / 100, 1_000_000, 10_000),
        };
        let symbol = format!("{base}{quote}");
        let home = price / step;
        Self {
            lower_case: symbol.to_lowercase(),
            symbol,
            base: base.to_owned(),
            quote: quote.to_owned(),
            step,
            lot,
            home,
            bid: home,
            spread: 1,
            bid_size: seeded.between(1, 5000),
            ask_size: seeded.between(1, 5000),
            update_id: seeded.between(1_000_000_000, 60_000_000_000),
            depth: Depth::default(),
            trade: Trade {
                id: seeded.between(1_000_000, 4_000_000_000),
                price: home,
                size: 1,
                taker: Taker::Buys,
            },
            aggregate_id: seeded.between(1_000_000, 3_000_000_000),
            ticks: 0,
        }
    }

    pub(super) fn symbol(&self) -> &str {
        &self.symbol
    }

    pub(super) fn ask(&self) -> u64 {
        self.bid + self.spread
    }

    /// A price in steps as 10⁻⁸s.
    pub(super) fn price(&self, steps: u64) -> u64 {
        steps * self.step
    }

    /// A quantity in lots as 10⁻⁸s.
    pub(super) fn size(&self, lots: u64) -> u64 {
        lots * self.lot
    }

    /// Price times quantity as 10⁻⁸s: exact.
    pub(super) fn value(&self, steps: u64, lots: u64) -> u64 {
        let value = u128::from(self.price(steps)) * u128::from(self.size(lots)) / u128::from(ONE);
        u64::try_from(value).unwrap_or(u64::MAX)
    }

    /// The top of the book changes: a price in four of ten cases, sizes always.
    pub(super) fn move_book(&mut self, seeded: &mut Seeded) {
        self.update_id += seeded.between(1, 30);
        if seeded.chance(400) {
            self.walk(seeded);
        }
        if seeded.chance(500) {
            self.bid_size = lots(seeded);
        } else {
            self.ask_size = lots(seeded);
        }
    }

    pub(super) fn move_depth(&mut self, seeded: &mut Seeded) {
        let first_id = self.update_id + 1;
        self.update_id += seeded.between(1, 30);
        let away = self.home / 100 + 2;
        self.depth = Depth {
            first_id,
            bid: self.bid.saturating_sub(seeded.between(1, away)).max(1),
            bid_size: if seeded.chance(300) { 0 } else { lots(seeded) },
            ask: self.ask() + seeded.between(1, away),
            ask_size: if seeded.chance(300) { 0 } else { lots(seeded) },
        };
    }

    pub(super) fn trade(&mut self, taker: Taker, seeded: &mut Seeded) {
        self.trade = Trade {
            id: self.trade.id + 1,
            price: if taker == Taker::Buys { self.ask() } else { self.bid },
            size: lots(seeded),
            taker,
        };
    }

    pub(super) fn aggregate(&mut self) {
        self.aggregate_id += 1;
    }

    /// The further from home, the likelier a step towards it; two percent away it is certain.
    fn walk(&mut self, seeded: &mut Seeded) {
        let reach = self.home / 50 + 1;
        let low = self.home.saturating_sub(reach);
        let height = self.bid.saturating_sub(low).min(2 * reach);
        let up = seeded.below(2 * reach) >= height;
        let steps = seeded.between(1, 1 + self.home / 20_000);
        self.bid = if up { self.bid + steps } else { self.bid.saturating_sub(steps).max(1) };
        if seeded.chance(200) {
            self.spread = seeded.between(1, 3);
        }
    }
}

/// Few lots as a rule, seldom many.
fn lots(seeded: &mut Seeded) -> u64 {
    let most = seeded.between(1, 100_000);
    seeded.between(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_trade_is_exact_in_eight_places() {
        for (base, quote, price, step, lot) in KNOWN {
            assert_eq!(u128::from(step) * u128::from(lot) % u128::from(ONE), 0, "{base}{quote}");
            assert_eq!(price % step, 0, "{base}{quote}");
        }
    }

    #[test]
    fn a_price_walks_and_stays_near_its_home() {
        let mut seeded = Seeded::new(3);
        for index in 0..30 {
            let mut instrument = Instrument::new(index, &mut seeded);
            let home = instrument.home;
            let (mut low, mut high) = (home, home);
            for _ in 0..20_000 {
                instrument.move_book(&mut seeded);
                low = low.min(instrument.bid);
                high = high.max(instrument.bid);
            }
            assert!(low < home && high > home, "{} walks", instrument.symbol());
            let reach = home / 50 + 4;
            assert!(low + reach >= home && high <= home + reach, "{} stays", instrument.symbol());
        }
    }
}
