//! Made-up Binance messages from a seed: a market to try things on, the same on every machine.
//!
//! A [`Simulator`] yields combined-stream messages of the spot market as a recorder would have
//! received them: `bookTicker`, `trade`, `aggTrade`, now and then a depth update, an answer to a
//! request or a stream that nobody asked for, and `executionReport`s of several accounts. Prices
//! walk within two percent of where they began; update, trade and order ids rise; digits are the
//! venue's (8 places). Activity comes in phases (quiet, normal, busy) and flurries, in which one
//! instrument gets dozens of ticks within a millisecond.
//!
//! The venue's execution reports do not name the account: there, the connection is the account. By
//! our convention a member `"account"` beside the event's members, or in the wrapper around the
//! event, does; both places are used here.
//!
//! All arithmetic is on integers and all chance comes from one seeded generator, so the bytes
//! depend on the options alone. A test pins them.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use super::recorder::{RecordError, Recorder};
use super::seeded::Seeded;

mod account;
mod instrument;
mod message;

use account::Accounts;
use instrument::{Instrument, Taker};

pub use account::AccountTotal;

/// What is simulated. The same options give the same messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulateOptions {
    /// Seed of everything that is left to chance.
    pub seed: u64,
    /// Receive time of the beginning, in ns since the Unix epoch.
    pub start_time: i64,
    /// How long the simulated recording lasts.
    pub duration: Duration,
    /// How many instruments, at least 1. The first 24 have names of their own, one of them not ASCII.
    pub instruments: usize,
    /// Messages a second, on average over the phases; at least 1.
    pub rate: u32,
    /// How many accounts trade, named `desk-1`, `desk-2`, …; with 0 there are no execution reports.
    pub accounts: usize,
}

impl SimulateOptions {
    /// Most instruments.
    pub const MAX_INSTRUMENTS: usize = 100_000;
    /// Most messages a second.
    pub const MAX_RATE: u32 = 5_000_000;
    /// Most accounts.
    pub const MAX_ACCOUNTS: usize = 10_000;
    /// Longest duration: a week.
    pub const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);
}

impl Default for SimulateOptions {
    /// A minute of 24 instruments and 3 accounts at 1,000 messages a second: the sample that comes
    /// with the program.
    fn default() -> Self {
        Self {
            seed: 1,
            start_time: 1_767_607_200_000_000_000,
            duration: Duration::from_secs(60),
            instruments: 24,
            rate: 1000,
            accounts: 3,
        }
    }
}

/// The options ask for what is not simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("simulating a recording: {what} must be from {min} to {max}, not {given}")]
pub struct SimulateError {
    /// The option.
    pub what: &'static str,
    /// The least it may be.
    pub min: u64,
    /// The most it may be.
    pub max: u64,
    /// What it is.
    pub given: u64,
}

/// What was simulated so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulateSummary {
    /// Messages, of any kind.
    pub messages: u64,
    /// Bytes of the messages.
    pub text_bytes: u64,
    /// `bookTicker` messages.
    pub book_tickers: u64,
    /// `trade` messages.
    pub trades: u64,
    /// `aggTrade` messages.
    pub aggregate_trades: u64,
    /// Depth updates.
    pub depth_updates: u64,
    /// `executionReport` messages, fills among them.
    pub execution_reports: u64,
    /// Execution reports that are fills.
    pub fills: u64,
    /// Answers to requests, and messages of streams that make no quote.
    pub others: u64,
}

/// See the module.
pub struct Simulator {
    options: SimulateOptions,
    seeded: Seeded,
    instruments: Vec<Instrument>,
    accounts: Accounts,
    phase: Phase,
    /// Milliseconds from the beginning, and how many there are.
    millisecond: u64,
    milliseconds: u64,
    /// Place in the present millisecond, in ns.
    within: u64,
    /// Messages that may still be sent, in millionths; overdrawn by flurries.
    credit: i64,
    /// Bytes of the messages made at once, and where each lies.
    text: Vec<u8>,
    ready: VecDeque<Ready>,
    summary: SimulateSummary,
    begun: bool,
}

#[derive(Clone, Copy)]
struct Ready {
    time: i64,
    start: usize,
    end: usize,
}

/// A stretch of equal activity.
struct Phase {
    /// Activity in percent of the average.
    percent: u64,
    left_ms: u64,
}

/// Millionths of a message.
const MESSAGE: i64 = 1_000_000;

impl Simulator {
    /// A simulation at its beginning.
    ///
    /// # Errors
    ///
    /// [`SimulateError`] for an option out of its range.
    pub fn new(options: SimulateOptions) -> Result<Self, SimulateError> {
        check(&options)?;
        let mut seeded = Seeded::new(options.seed);
        let instruments =
            (0..options.instruments).map(|index| Instrument::new(index, &mut seeded)).collect();
        Ok(Self {
            accounts: Accounts::new(options.accounts),
            milliseconds: u64::try_from(options.duration.as_millis()).unwrap_or(u64::MAX),
            instruments,
            seeded,
            phase: Phase { percent: 100, left_ms: 3000 },
            millisecond: 0,
            within: 0,
            credit: 0,
            text: Vec::with_capacity(4096),
            ready: VecDeque::with_capacity(256),
            summary: SimulateSummary::default(),
            begun: false,
            options,
        })
    }

    /// The next message and when it is received (ns since the Unix epoch); `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it lends the message")]
    pub fn next(&mut self) -> Option<(i64, &[u8])> {
        while self.ready.is_empty() {
            if !self.go_on() {
                return None;
            }
        }
        let Ready { time, start, end } = self.ready.pop_front()?;
        self.summary.messages += 1;
        self.summary.text_bytes += (end - start) as u64;
        Some((time, &self.text[start..end]))
    }

    /// What was simulated so far.
    #[must_use]
    pub fn summary(&self) -> &SimulateSummary {
        &self.summary
    }

    /// Symbols with the number of their ticks so far: `bookTicker`, `trade` and `aggTrade` messages.
    pub fn ticks(&self) -> impl Iterator<Item = (&str, u64)> + '_ {
        self.instruments.iter().map(|instrument| (instrument.symbol(), instrument.ticks))
    }

    /// The fills so far, summed by account and symbol, in the order of the accounts.
    pub fn account_totals(&self) -> impl Iterator<Item = &AccountTotal> + '_ {
        self.accounts.totals()
    }

    /// Makes the next messages, or lets time pass; `false` at the end.
    fn go_on(&mut self) -> bool {
        self.text.clear();
        if !self.begun {
            self.begun = true;
            self.begin();
            return true;
        }
        if self.credit < MESSAGE {
            self.millisecond += 1;
            self.within = 0;
            self.earn();
            return self.millisecond < self.milliseconds;
        }
        // Messages of a millisecond come one after the other, some of them together.
        if !self.seeded.chance(150) {
            let messages = u64::try_from(self.credit / MESSAGE).unwrap_or(0);
            let room = 990_000_u64.saturating_sub(self.within) / (messages + 1);
            self.within += self.seeded.between(room / 2, room);
        }
        let before = self.ready.len();
        self.happen();
        self.credit -= MESSAGE * (self.ready.len() - before) as i64;
        true
    }

    /// What a connection starts with: an answer, and a quote of each instrument.
    fn begin(&mut self) {
        self.put(|_, text| message::answer(text, 1));
        self.summary.others += 1;
        for index in 0..self.instruments.len() {
            self.within += 10;
            self.book_ticker(index);
        }
    }

    /// A millisecond has passed.
    fn earn(&mut self) {
        if self.phase.left_ms == 0 {
            self.phase = Phase::next(&mut self.seeded);
        }
        self.phase.left_ms -= 1;
        self.credit += i64::from(self.options.rate) * 10 * self.phase.percent as i64;
        // Some six messages of a hundred come in flurries.
        let rate = u64::from(self.options.rate);
        if self.phase.percent >= 100 && self.seeded.below(1_000_000) < rate {
            self.flurry();
        }
    }

    /// Dozens of ticks of one instrument within this millisecond.
    fn flurry(&mut self) {
        let index = self.pick();
        let count = self.seeded.between(25, 95);
        self.within = self.seeded.below(500_000);
        for _ in 0..count {
            self.within += self.seeded.below(5_000);
            self.book_ticker(index);
        }
        self.credit -= MESSAGE * count as i64;
    }

    /// One thing happens on the market.
    fn happen(&mut self) {
        let index = self.pick();
        match self.seeded.below(1000) {
            0..2 => {
                let id = self.seeded.between(2, 99);
                self.put(|_, text| message::answer(text, id));
                self.summary.others += 1;
            }
            2..7 => self.tell(index, message::candle, |summary| &mut summary.others),
            7..47 => {
                self.instruments[index].move_depth(&mut self.seeded);
                self.tell(index, message::depth, |summary| &mut summary.depth_updates);
            }
            47..197 => self.trade(index),
            _ => self.book_ticker(index),
        }
    }

    fn book_ticker(&mut self, index: usize) {
        let instrument = &mut self.instruments[index];
        instrument.move_book(&mut self.seeded);
        instrument.ticks += 1;
        self.tell(index, message::book_ticker, |summary| &mut summary.book_tickers);
    }

    fn trade(&mut self, index: usize) {
        let account = self.accounts.maybe_trades(&mut self.seeded);
        let instrument = &mut self.instruments[index];
        let taker = if self.seeded.chance(500) { Taker::Buys } else { Taker::Sells };
        instrument.trade(taker, &mut self.seeded);
        if let Some(account) = account {
            self.fill(account, index);
        }
        let aggregated = self.seeded.chance(500);
        self.instruments[index].ticks += 1 + u64::from(aggregated);
        self.tell(index, message::trade, |summary| &mut summary.trades);
        if aggregated {
            self.instruments[index].aggregate();
            self.tell(index, message::aggregate_trade, |summary| &mut summary.aggregate_trades);
        }
        if self.seeded.chance(600) {
            self.within += self.seeded.below(20_000);
            self.book_ticker(index);
        }
    }

    /// The resting side of the trade that `index` just had is an order of this account.
    fn fill(&mut self, account: usize, index: usize) {
        let now = self.venue_time();
        let instrument = &mut self.instruments[index];
        let reports = self.accounts.fill(account, index, instrument, now, &mut self.seeded);
        for report in reports.into_iter().flatten() {
            self.summary.execution_reports += 1;
            self.summary.fills += u64::from(report.is_fill());
            self.put(|now, text| message::execution_report(text, &report, now));
        }
    }

    /// An instrument; busier ones come first in the list.
    fn pick(&mut self) -> usize {
        let below = self.seeded.between(1, self.instruments.len() as u64);
        usize::try_from(self.seeded.below(below)).unwrap_or(0)
    }

    fn tell(
        &mut self,
        index: usize,
        write: fn(&mut Vec<u8>, &Instrument, i64),
        count: fn(&mut SimulateSummary) -> &mut u64,
    ) {
        *count(&mut self.summary) += 1;
        let (time, start) = (self.venue_time(), self.text.len());
        write(&mut self.text, &self.instruments[index], time);
        self.end(start);
    }

    fn put(&mut self, write: impl FnOnce(i64, &mut Vec<u8>)) {
        let (time, start) = (self.venue_time(), self.text.len());
        write(time, &mut self.text);
        self.end(start);
    }

    fn end(&mut self, start: usize) {
        self.ready.push_back(Ready { time: self.receive_time(), start, end: self.text.len() });
    }

    fn receive_time(&self) -> i64 {
        let since =
            self.millisecond.saturating_mul(1_000_000).saturating_add(self.within.min(999_999));
        self.options.start_time.saturating_add_unsigned(since)
    }

    /// The venue's time of what is received now, in ms: it is three milliseconds away.
    fn venue_time(&self) -> i64 {
        self.receive_time() / 1_000_000 - 3
    }
}

impl Phase {
    fn next(seeded: &mut Seeded) -> Self {
        let (percent, shortest, longest) = match seeded.below(10) {
            0..2 => (5, 500, 3000),
            2..5 => (300, 100, 800),
            _ => (100, 1000, 8000),
        };
        Self { percent, left_ms: seeded.between(shortest, longest) }
    }
}

/// Writes a whole simulation into a recording, whose end is left to the caller.
///
/// # Errors
///
/// [`RecordError`] when the recording cannot be written.
pub fn simulate<W: Write>(
    simulator: &mut Simulator,
    recorder: &mut Recorder<W>,
) -> Result<SimulateSummary, RecordError> {
    while let Some((receive_time, text)) = simulator.next() {
        recorder.message(receive_time, text)?;
    }
    Ok(simulator.summary().clone())
}

fn check(options: &SimulateOptions) -> Result<(), SimulateError> {
    type Options = SimulateOptions;
    let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let start = u64::try_from(options.start_time).unwrap_or(u64::MAX);
    for (what, given, min, max) in [
        ("instruments", options.instruments as u64, 1, Options::MAX_INSTRUMENTS as u64),
        ("rate", u64::from(options.rate), 1, u64::from(Options::MAX_RATE)),
        ("accounts", options.accounts as u64, 0, Options::MAX_ACCOUNTS as u64),
        ("duration (ms)", milliseconds(options.duration), 1, milliseconds(Options::MAX_DURATION)),
        // So that every time of the recording has nineteen digits.
        ("start time (ns)", start, 1_000_000_000_000_000_000, 9_000_000_000_000_000_000),
    ] {
        if !(min..=max).contains(&given) {
            return Err(SimulateError { what, min, max, given });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
