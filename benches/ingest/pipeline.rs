//! The whole of ingest on one thread: decode, count, dispatch, and the board's stage, stepped.

use std::sync::Arc;

use tidegate::clock::Clock;
use tidegate::feed::RecordTap;
use tidegate::gateway::{BoardStage, Gateway, LedgerStage, Limits, Parts};
use tidegate::ingest::{Feeds, Intake};
use tidegate::market::{Accounts, FeedId, Instruments, VolumeKeys};
use tidegate::venue::{self, Context};
use tidegate::worker::{CoalescingSpWorker, ConflationSpWorker, Stepper};

/// Messages between two turns of the stages: as a stage that keeps up would take them.
const STEP_EVERY: usize = 64;

/// A gateway without subscribers, and one intake a feed with the stages behind it.
pub struct Pipeline {
    gateway: Gateway,
    clock: Clock,
    feeds: Vec<(Intake<LedgerStage>, Stepper<BoardStage>, Stepper<LedgerStage>)>,
}

impl Pipeline {
    pub fn new(venues: &[&'static str]) -> Self {
        let clock = Clock::system();
        let names = venues.iter().enumerate().map(|(n, venue)| (format!("{n}"), (*venue).into()));
        let parts = Parts {
            clock: clock.clone(),
            instruments: Arc::new(Instruments::new(1_000)),
            accounts: Arc::new(Accounts::new(10)),
            volume_keys: Arc::new(VolumeKeys::new(10)),
            feeds: Arc::new(Feeds::new(names, 0)),
        };
        let gateway = Gateway::start(parts, Limits::default(), 1).expect("a gateway");
        let feeds = venues
            .iter()
            .zip(0..)
            .map(|(venue, id)| {
                let context = Context {
                    instruments: gateway.instruments().clone(),
                    accounts: gateway.accounts().clone(),
                    feed: FeedId(id),
                    account: None,
                };
                let codec = venue::codec(venue, context).expect("a known venue");
                let (quotes, board) = ConflationSpWorker::builder()
                    .stepped(gateway.board_stage(venue))
                    .expect("a conflation worker");
                let (fills, ledger) = CoalescingSpWorker::builder()
                    .stepped(gateway.ledger_stage(venue))
                    .expect("a coalescing worker");
                let feed = gateway.feeds().get(FeedId(id)).clone();
                let keys = gateway.volume_keys().clone();
                (Intake::new(codec, feed, quotes, fills, keys), board, ledger)
            })
            .collect();
        Self { gateway, clock, feeds }
    }

    /// Records what the first feed takes in.
    #[allow(dead_code, reason = "for the bench of recording alone")]
    pub fn record_to(&mut self, tap: RecordTap) {
        if let Some((intake, ..)) = self.feeds.first_mut() {
            intake.record_to(tap);
        }
    }

    /// Takes every message in; answers the ticks that the board then shows.
    pub fn run<'a>(&mut self, messages: impl Iterator<Item = (usize, i64, &'a [u8])>) -> u64 {
        for (_, board, _) in &mut self.feeds {
            board.step(usize::MAX);
        }
        for (count, (feed, time, message)) in messages.enumerate() {
            let (intake, ..) = &mut self.feeds[feed];
            let alive = intake.message_of_many(message, time, self.clock.now());
            assert!(alive, "the workers are alive");
            if count % STEP_EVERY == 0 {
                self.step();
            }
        }
        self.step();
        let instruments = self.gateway.instruments().len();
        (0..instruments).map(|index| self.gateway.board().tick(index)).sum()
    }

    /// Takes in one message of the first feed, as it comes.
    #[allow(dead_code, reason = "for the bench of recording alone")]
    pub fn take(&mut self, time: i64, message: &[u8]) {
        if let Some((intake, ..)) = self.feeds.first_mut() {
            let alive = intake.message_of_many(message, time, self.clock.now());
            assert!(alive, "the workers are alive");
        }
    }

    /// A loop over the recordings begins again.
    pub fn new_session(&mut self) {
        for (intake, ..) in &mut self.feeds {
            intake.new_session();
        }
    }

    /// What a feed's thread does before it waits for more.
    pub fn step(&mut self) {
        for (intake, board, ledger) in &mut self.feeds {
            intake.settle();
            board.step(usize::MAX);
            ledger.step(usize::MAX);
        }
    }
}
