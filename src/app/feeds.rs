//! Starts each feed of the settings: a thread, an intake, two workers and the stages behind them.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{
    FeedSettings, Input, Lines, RecordSettings, Recording as Source, Settings, Speed, Start,
};
use crate::feed::{
    LineFeed, LineFeedOptions, LineSource, Place, RecordTap, Recorders, Recording, Replay,
    ReplayOptions, Rolling, RollingOptions, TapOptions,
};
use crate::gateway::{Gateway, LedgerStage};
use crate::ingest::{Feed, Intake, run};
use crate::market::health::{Health, StaleReason};
use crate::market::{FeedId, InstrumentId};
use crate::venue;
use crate::worker::{CoalescingSpWorker, ConflationSpWorker, Worker};

/// The sample recording that the embedded default plays.
const SAMPLE: &[u8] = include_bytes!("../../feeds/sample.jsonl.zst");

/// Recordings up to this size, unpacked, are kept in memory, so that a pass costs no unpacking.
const KEEP_BYTES: u64 = 64 << 20;

/// Pause between two passes of a recording that is played at a pace.
const LEAST_PASS: Duration = Duration::from_millis(1);

/// Accounts and instruments whose folded fills may wait for the ledger at once.
const FILLS_QUEUE: usize = 4096;

/// The threads of all feeds.
pub(super) struct RunningFeeds {
    stop: CancellationToken,
    threads: Vec<JoinHandle<()>>,
    /// Kept alive: dropping a worker would stop it hard.
    workers: Vec<(Worker<crate::worker::Conflation>, Worker<crate::worker::Coalescing>)>,
    recorders: Recorders,
    clock: Clock,
}

impl RunningFeeds {
    /// Ends every feed and waits until what they took in has reached board and ledger; at most
    /// about `most`.
    pub(super) fn stop(mut self, most: Duration) {
        self.stop.cancel();
        let until = self.clock.now() + most;
        for thread in self.threads {
            while !thread.is_finished() && self.clock.now() < until {
                std::thread::sleep(Duration::from_millis(2));
            }
            if !thread.is_finished() {
                tracing::warn!("a feed did not end in time");
            } else if thread.join().is_err() {
                tracing::error!("a feed's thread panicked");
            }
        }
        if !self.recorders.finish(until.since(self.clock.now())) {
            tracing::error!("a recorder did not end in time; its last second may be lost");
        }
        for (quotes, fills) in &self.workers {
            for completion in [quotes.completion(), fills.completion()] {
                let left = until.since(self.clock.now());
                if !completion.wait_timeout(left) {
                    tracing::error!("a feed's stage did not drain in time");
                }
            }
        }
    }
}

/// Opens every source, so that what is missing is told at once, then starts every feed.
pub(super) fn start(
    settings: &Settings,
    gateway: &Arc<Gateway>,
    clock: &Clock,
) -> anyhow::Result<RunningFeeds> {
    let opened = settings
        .feeds
        .iter()
        .map(|feed| open(feed, clock).with_context(|| format!("feed {:?}", feed.name)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let stop = CancellationToken::new();
    let (mut threads, mut workers) = (Vec::new(), Vec::new());
    let mut recorders = Recorders::new(clock.clone());
    for ((settings, opened), id) in settings.feeds.iter().zip(opened).zip(0_u16..) {
        let feed = gateway.feeds().get(FeedId(id)).clone();
        let (mut intake, pair) = intake(settings, &feed, gateway)
            .with_context(|| format!("feed {:?}: starting its workers", settings.name))?;
        if let Some(record) = &settings.record {
            let tap = tap(&mut recorders, &settings.name, record)
                .with_context(|| format!("feed {:?}", settings.name))?;
            intake.record_to(tap);
        }
        workers.push(pair);
        let (clock, stop, start) = (clock.clone(), stop.clone(), settings.start);
        let thread = std::thread::Builder::new()
            .name(format!("feed-{}", settings.name))
            .spawn(move || {
                let _guard = Guard { feed: feed.clone(), clock: clock.clone() };
                if start == Start::FirstSubscriber
                    && !run::wait_for_subscriber(&intake, &clock, &stop)
                {
                    return;
                }
                match opened {
                    Opened::Replay(replay) => run::play(*replay, intake, &clock, &stop),
                    Opened::Lines(lines) => run::receive(*lines, intake, &clock, &stop),
                }
            })
            .with_context(|| format!("feed {:?}: starting its thread", settings.name))?;
        threads.push(thread);
    }
    Ok(RunningFeeds { stop, threads, workers, recorders, clock: clock.clone() })
}

/// Starts a feed's recorder.
fn tap(
    recorders: &mut Recorders,
    name: &str,
    settings: &RecordSettings,
) -> anyhow::Result<RecordTap> {
    let place = Place::Folder(settings.folder.clone());
    let rolling = Rolling::new(name, place, rolling_options(settings))?;
    let queue_bytes = usize::try_from(settings.queue_bytes).unwrap_or(usize::MAX);
    Ok(recorders.start(name, rolling, TapOptions { queue_bytes })?)
}

/// A recorder's files, as the settings want them: zero stands for no bound.
pub(super) fn rolling_options(settings: &RecordSettings) -> RollingOptions {
    let bytes = |bytes: u64| (bytes > 0).then_some(bytes);
    RollingOptions {
        rotate_bytes: bytes(settings.rotate_bytes),
        rotate_every: (!settings.rotate_every.is_zero()).then_some(settings.rotate_every),
        keep_files: (settings.keep_files > 0).then_some(settings.keep_files),
        keep_bytes: bytes(settings.keep_bytes),
        ..RollingOptions::default()
    }
}

/// Says that a feed has failed if its thread ends by a panic.
struct Guard {
    feed: Arc<Feed>,
    clock: Clock,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.feed.set_health(Health::Stale(StaleReason::Failed), self.clock.wall());
        }
    }
}

pub(super) enum Opened {
    Replay(Box<Replay>),
    Lines(Box<LineFeed>),
}

pub(super) fn open(settings: &FeedSettings, clock: &Clock) -> anyhow::Result<Opened> {
    match &settings.input {
        Input::Recording(sources) => {
            let recordings = sources.iter().map(recording).collect::<anyhow::Result<Vec<_>>>()?;
            let options = ReplayOptions {
                speed: match settings.speed {
                    Speed::Max => crate::feed::Speed::Max,
                    Speed::Times(factor) => crate::feed::Speed::times(factor)?,
                },
                passes: if settings.looped { None } else { std::num::NonZeroU64::new(1) },
                max_gap: if settings.max_gap.is_zero() { Duration::MAX } else { settings.max_gap },
                // A recording of no length, played at its own pace, must not spin.
                pass_delay: match settings.speed {
                    Speed::Max => Duration::ZERO,
                    Speed::Times(_) => LEAST_PASS,
                },
            };
            Ok(Opened::Replay(Box::new(Replay::new(recordings, options)?)))
        }
        Input::Lines(lines) => {
            let source = match lines {
                Lines::Stdin => LineSource::Stdin,
                Lines::Tcp(address) => format!("tcp://{address}").parse()?,
            };
            // Feeds and processes should not come back all at the same moment.
            let jitter_seed = clock.wall().unsigned_abs() ^ u64::from(std::process::id());
            let options = LineFeedOptions { jitter_seed, ..LineFeedOptions::default() };
            Ok(Opened::Lines(Box::new(LineFeed::new(source, options, clock.clone()))))
        }
    }
}

fn recording(source: &Source) -> anyhow::Result<Recording> {
    Ok(match source {
        Source::Sample => {
            Recording::from_bytes("embedded:sample", bytes::Bytes::from_static(SAMPLE), KEEP_BYTES)?
        }
        Source::File(path) => Recording::load_or_stream(Path::new(path), KEEP_BYTES)?,
    })
}

type Pair = (Worker<crate::worker::Conflation>, Worker<crate::worker::Coalescing>);

fn intake(
    settings: &FeedSettings,
    feed: &Arc<Feed>,
    gateway: &Gateway,
) -> anyhow::Result<(Intake<LedgerStage>, Pair)> {
    let context = venue::Context {
        instruments: gateway.instruments().clone(),
        accounts: gateway.accounts().clone(),
        feed: feed.id(),
        account: settings.account.clone(),
    };
    let codec = venue::codec(&settings.venue, context)
        .ok_or_else(|| anyhow!("no codec for the venue {:?}", settings.venue))?;
    let most = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
    // Never cancelled: a feed's stages are always drained, or fills would be lost.
    let (quotes, conflation) = ConflationSpWorker::builder()
        .name(format!("board-{}", settings.name))
        .capacity(settings.queue)
        .max_keys(most(gateway.instruments().limit()))
        .start::<InstrumentId, _, _>(
            gateway.board_stage(&settings.name),
            CancellationToken::new(),
        )?;
    let (fills, coalescing) = CoalescingSpWorker::builder()
        .name(format!("ledger-{}", settings.name))
        .capacity(FILLS_QUEUE)
        .max_keys(most(gateway.volume_keys().limit()))
        .start(gateway.ledger_stage(&settings.name), CancellationToken::new())?;
    let intake = Intake::new(codec, feed.clone(), quotes, fills, gateway.volume_keys().clone());
    Ok((intake, (conflation, coalescing)))
}
