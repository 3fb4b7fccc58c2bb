//! A stage that stands still: the feed runs on, and every tick that is missing is accounted for.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tidegate::clock::Clock;
use tidegate::feed::{SimulateOptions, Simulator};
use tidegate::gateway::{BoardStage, Gateway, Limits, Parts};
use tidegate::ingest::{Accepted, Feeds, Intake};
use tidegate::market::{Accounts, FeedId, InstrumentId, Instruments, Quote, VolumeKeys};
use tidegate::venue::{self, Context};
use tidegate::worker::{
    CoalescingSpWorker, ConflationHandler, ConflationSpWorker, Outcome, WorkerError,
};
use tokio_util::sync::CancellationToken;

use crate::serve_support::Naive;

/// The board's stage; its first quote waits until the test lets it go.
struct Held {
    stage: BoardStage,
    reached: Option<SyncSender<()>>,
    released: Receiver<()>,
    handled: u64,
    counted: SyncSender<u64>,
}

impl ConflationHandler<InstrumentId, Accepted<Quote>> for Held {
    type Error = <BoardStage as ConflationHandler<InstrumentId, Accepted<Quote>>>::Error;

    fn handle(&mut self, key: &InstrumentId, quote: Accepted<Quote>) -> Result<(), Self::Error> {
        if let Some(reached) = self.reached.take() {
            reached.send(()).unwrap();
            self.released.recv().unwrap();
        }
        self.handled += 1;
        self.stage.handle(key, quote)
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        self.stage.on_error(error);
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.stage.on_completed(outcome);
        self.counted.send(self.handled).unwrap();
    }
}

#[test]
fn with_the_boards_stage_held_the_feed_runs_on_and_the_worker_explains_every_missing_tick() {
    let clock = Clock::system();
    let parts = Parts {
        clock: clock.clone(),
        instruments: Arc::new(Instruments::new(100)),
        accounts: Arc::new(Accounts::new(100)),
        volume_keys: Arc::new(VolumeKeys::new(1000)),
        feeds: Arc::new(Feeds::new([("spot".into(), "binance".into())], clock.wall())),
    };
    let feed = parts.feeds.get(FeedId(0)).clone();
    let (accounts, keys) = (parts.accounts.clone(), parts.volume_keys.clone());
    let gateway = Gateway::start(parts, Limits::default(), 1).unwrap();
    let instruments = gateway.instruments().clone();
    let context = Context { instruments, accounts, feed: feed.id(), account: None };
    let (reached, has_reached) = sync_channel(1);
    let (release, released) = sync_channel(1);
    let (counted, count) = sync_channel(1);
    let stage = gateway.board_stage("spot");
    let held = Held { stage, reached: Some(reached), released, handled: 0, counted };
    let (quotes, worker) = ConflationSpWorker::builder()
        .capacity(64)
        .start::<InstrumentId, _, _>(held, CancellationToken::new())
        .unwrap();
    let (fills, _ledger) = CoalescingSpWorker::builder()
        .capacity(64)
        .start(gateway.ledger_stage("spot"), CancellationToken::new())
        .unwrap();
    let codec = venue::codec("binance", context).unwrap();
    let mut intake = Intake::new(codec, feed, quotes, fills, keys);

    let options = SimulateOptions {
        duration: Duration::from_secs(5),
        rate: 4_000,
        ..SimulateOptions::default()
    };
    let mut simulator = Simulator::new(options).unwrap();
    let mut naive = Naive::default();
    let mut messages = 0;
    while let Some((time, text)) = simulator.next() {
        assert!(intake.message(text, time, clock.now()));
        naive.take("binance", std::str::from_utf8(text).unwrap());
        messages += 1;
        if messages == 100 {
            // From here on the stage stands.
            has_reached.recv_timeout(Duration::from_secs(30)).unwrap();
        }
    }
    // The whole feed has gone through while one quote is being handled.
    std::thread::sleep(Duration::from_secs(1));
    let queue = worker.queue();
    let standing = queue.counters();
    assert_eq!((standing.dispatched, standing.handled), (naive.ticks(), 0));
    let pending = queue.queued() as u64;
    assert!(pending <= naive.0.len() as u64);
    // The quote in the handler's hands is neither handled nor pending.
    assert_eq!(standing.dispatched, 1 + standing.conflated + pending);

    release.send(()).unwrap();
    for completion in intake.complete() {
        assert!(completion.wait_timeout(Duration::from_secs(30)));
    }
    let done = queue.counters();
    let handled = count.recv().unwrap();
    assert_eq!(done.handled, handled);
    assert_eq!(done.dispatched, done.handled + done.conflated);
    assert!(done.conflated > done.dispatched / 2, "{done:?}");
    for (name, (texts, ticks)) in &naive.0 {
        let id = gateway.instruments().find(name).unwrap();
        let quote = gateway.board().get(id.index()).unwrap();
        assert_eq!(quote.tick, *ticks, "{name}");
        let mut bid = Vec::new();
        tidegate::market::decimal::write(quote.bid.unwrap(), &mut bid);
        assert_eq!(bid, texts["bid"].as_bytes(), "{name}");
    }
    gateway.finish(Duration::from_millis(10));
}
