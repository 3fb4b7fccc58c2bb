//! The simulated accounts: an open order each, filled by the trades of its instrument.

use std::collections::BTreeMap;

use super::super::seeded::Seeded;
use super::instrument::{Instrument, Taker};

/// The fills of one account in one symbol, summed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountTotal {
    /// The account.
    pub account: String,
    /// The venue's symbol.
    pub symbol: String,
    /// Fills.
    pub fills: u64,
    /// Quantity bought, in 10⁻⁸s.
    pub bought: u128,
    /// Quantity sold, in 10⁻⁸s.
    pub sold: u128,
    /// Sum of price times quantity of both, in 10⁻⁸s.
    pub notional: u128,
}

pub(super) struct Accounts {
    accounts: Vec<Account>,
    next_order: u64,
    totals: BTreeMap<(usize, usize), AccountTotal>,
}

struct Account {
    name: String,
    order: Option<Order>,
}

/// An order that rests in the book.
#[derive(Clone)]
pub(super) struct Order {
    pub(super) id: u64,
    instrument: usize,
    pub(super) symbol: String,
    pub(super) base: String,
    pub(super) quote: String,
    pub(super) buys: bool,
    /// In steps, and in 10⁻⁸s.
    price_steps: u64,
    pub(super) price: u64,
    /// In lots.
    quantity_lots: u64,
    filled_lots: u64,
    /// In 10⁻⁸s.
    pub(super) quantity: u64,
    pub(super) filled: u64,
    pub(super) filled_value: u64,
    /// When it was placed, in ms.
    pub(super) placed: i64,
}

/// What an execution report says.
pub(super) struct Report {
    pub(super) account: String,
    /// In the wrapper around the event or beside the event's members.
    pub(super) in_wrapper: bool,
    pub(super) subscription: usize,
    pub(super) order: Order,
    pub(super) what: What,
}

#[derive(Clone, Copy)]
pub(super) enum What {
    New,
    Canceled,
    Fill { trade_id: u64, quantity: u64, value: u64 },
}

impl Report {
    pub(super) fn is_fill(&self) -> bool {
        matches!(self.what, What::Fill { .. })
    }
}

impl Accounts {
    pub(super) fn new(count: usize) -> Self {
        let account = |index| Account { name: format!("desk-{}", index + 1), order: None };
        Self {
            accounts: (0..count).map(account).collect(),
            next_order: 7_000_000_001,
            totals: BTreeMap::new(),
        }
    }

    pub(super) fn totals(&self) -> impl Iterator<Item = &AccountTotal> + '_ {
        self.totals.values()
    }

    /// The account whose order a trade meets; one trade in ten meets one.
    pub(super) fn maybe_trades(&self, seeded: &mut Seeded) -> Option<usize> {
        if self.accounts.is_empty() || !seeded.chance(100) {
            return None;
        }
        usize::try_from(seeded.below(self.accounts.len() as u64)).ok()
    }

    /// The instrument's last trade fills an order of this account. An order at another price or
    /// elsewhere is canceled for it, and a new one placed. The trade's size is cut to the order's.
    pub(super) fn fill(
        &mut self,
        index: usize,
        instrument_index: usize,
        instrument: &mut Instrument,
        now: i64,
        seeded: &mut Seeded,
    ) -> [Option<Report>; 3] {
        let buys = instrument.trade.taker == Taker::Sells;
        let account = &mut self.accounts[index];
        let report = |name: &str, order: &Order, what| {
            let in_wrapper = index % 2 == 1;
            let order = order.clone();
            Some(Report { account: name.to_owned(), in_wrapper, subscription: index, order, what })
        };
        let mut reports = [None, None, None];
        let fits = |order: &Order| {
            order.instrument == instrument_index
                && order.buys == buys
                && order.price_steps == instrument.trade.price
        };
        let kept = match account.order.take() {
            Some(order) if fits(&order) => Some(order),
            Some(order) => {
                reports[0] = report(&account.name, &order, What::Canceled);
                None
            }
            None => None,
        };
        let mut order = kept.unwrap_or_else(|| {
            let order =
                Order::new(self.next_order, instrument_index, instrument, buys, now, seeded);
            self.next_order += seeded.between(1, 50);
            reports[1] = report(&account.name, &order, What::New);
            order
        });

        let size = instrument.trade.size.min(order.quantity_lots - order.filled_lots);
        instrument.trade.size = size;
        let quantity = instrument.size(size);
        let value = instrument.value(order.price_steps, size);
        order.filled_lots += size;
        order.filled += quantity;
        order.filled_value += value;
        let fill = What::Fill { trade_id: instrument.trade.id, quantity, value };
        reports[2] = report(&account.name, &order, fill);

        let total = self.totals.entry((index, instrument_index)).or_insert_with(|| AccountTotal {
            account: account.name.clone(),
            symbol: instrument.symbol().to_owned(),
            fills: 0,
            bought: 0,
            sold: 0,
            notional: 0,
        });
        total.fills += 1;
        *(if buys { &mut total.bought } else { &mut total.sold }) += u128::from(quantity);
        total.notional += u128::from(value);
        if order.filled_lots < order.quantity_lots {
            account.order = Some(order);
        }
        reports
    }
}

impl Order {
    fn new(
        id: u64,
        instrument_index: usize,
        instrument: &Instrument,
        buys: bool,
        now: i64,
        seeded: &mut Seeded,
    ) -> Self {
        let quantity_lots = seeded.between(1, 2 * instrument.trade.size + 1);
        Self {
            id,
            instrument: instrument_index,
            symbol: instrument.symbol().to_owned(),
            base: instrument.base.clone(),
            quote: instrument.quote.clone(),
            buys,
            price_steps: instrument.trade.price,
            price: instrument.price(instrument.trade.price),
            quantity_lots,
            filled_lots: 0,
            quantity: instrument.size(quantity_lots),
            filled: 0,
            filled_value: 0,
            placed: now,
        }
    }
}
