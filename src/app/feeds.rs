//! Starts each feed of the settings: a thread, an intake, two workers and the stages behind them.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{
    FeedSettings, Input, Key, Lines, LiveSettings, Part, PartError, RecordSettings,
    Recording as Source, Settings, Speed, Start,
};
use crate::feed::live::{LiveFeed, LiveOptions, Topic, Topics};
use crate::feed::{
    LineFeed, LineFeedOptions, LineSource, Place, RecordTap, Recorders, Recording, Replay,
    ReplayOptions, Rolling, RollingOptions, TapOptions,
};
use crate::gateway::{Gateway, LedgerStage};
use crate::ingest::{Feed, Intake, Player, about, run};
use crate::market::health::{Health, StaleReason};
use crate::market::{FeedId, InstrumentId};
use crate::venue::{self, Venue};
use crate::worker::{CoalescingSpWorker, Completion, ConflationSpWorker, Worker};

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
    workers: Vec<Behind>,
    recorders: Recorders,
    topics: TopicsPart,
    clock: Clock,
}

impl RunningFeeds {
    /// What follows changes of the settings, in step with the `effective` ones; to be taken once.
    pub(super) fn take_part(&mut self, effective: &Settings) -> TopicsPart {
        self.topics.follow(effective);
        TopicsPart(std::mem::take(&mut self.topics.0))
    }

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
        for Behind { quotes, fills } in &self.workers {
            for completion in [quotes, &fills.completion()] {
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
    let groups = groups(&settings.feeds);
    let opened =
        groups.iter().map(|group| open(group, clock)).collect::<anyhow::Result<Vec<_>>>()?;
    let stop = CancellationToken::new();
    let (mut threads, mut workers) = (Vec::new(), Vec::new());
    let mut recorders = Recorders::new(clock.clone());
    let mut topics_of = Vec::new();
    for (group, mut opened) in groups.iter().zip(opened) {
        if let Opened::Replay(replay, _) = &mut opened {
            for &(id, _) in group {
                gateway.feeds().get(id).set_replay(replay.control());
            }
        }
        let mut intakes = Vec::with_capacity(group.len());
        for &(id, feed) in group {
            let (mut intake, behind) = intake(feed, gateway.feeds().get(id), gateway)
                .with_context(|| format!("feed {:?}: starting its workers", feed.name))?;
            if let Some(record) = &feed.record {
                let tap = tap(&mut recorders, &feed.name, record)
                    .with_context(|| format!("feed {:?}", feed.name))?;
                intake.record_to(tap);
            }
            workers.push(behind);
            intakes.push(intake);
        }
        if let Opened::Live(_, topics, _) = &opened {
            topics_of.push((group[0].1.name.clone(), topics.clone()));
        }
        let (clock, stop, start) = (clock.clone(), stop.clone(), group[0].1.start);
        let thread = std::thread::Builder::new()
            .name(format!("feed-{}", group[0].1.name))
            .spawn(move || {
                let feeds: Vec<_> = intakes.iter().map(|intake| intake.feed().clone()).collect();
                let _guard = Guard { feeds: feeds.clone(), clock: clock.clone() };
                if start == Start::FirstSubscriber
                    && !run::wait_for_subscriber(&feeds, &clock, &stop)
                {
                    return;
                }
                match opened {
                    Opened::Replay(replay, intake_of) => {
                        run::play(Player::merged(*replay, intakes, intake_of), &clock, &stop);
                    }
                    Opened::Lines(lines) => {
                        // A line feed is in no group but its own.
                        if let Some(intake) = intakes.pop() {
                            run::receive(*lines, intake, &clock, &stop);
                        }
                    }
                    Opened::Live(live, _topics, venue) => {
                        if let Some(intake) = intakes.pop() {
                            run::listen(*live, intake, venue, &clock, &stop);
                        }
                    }
                }
            })
            .with_context(|| format!("feed {:?}: starting its thread", group[0].1.name))?;
        threads.push(thread);
    }
    Ok(RunningFeeds {
        stop,
        threads,
        workers,
        recorders,
        topics: TopicsPart(topics_of),
        clock: clock.clone(),
    })
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

/// Feeds that share a thread: those on one timeline; any other by itself. None is empty.
fn groups(feeds: &[FeedSettings]) -> Vec<Vec<(FeedId, &FeedSettings)>> {
    let mut groups: Vec<Vec<(FeedId, &FeedSettings)>> = Vec::new();
    for (feed, id) in feeds.iter().zip(0_u16..) {
        let same = groups
            .iter_mut()
            .find(|group| feed.timeline.is_some() && group[0].1.timeline == feed.timeline);
        match same {
            Some(group) => group.push((FeedId(id), feed)),
            None => groups.push(vec![(FeedId(id), feed)]),
        }
    }
    groups
}

/// Says that feeds have failed if their thread ends by a panic.
struct Guard {
    feeds: Vec<Arc<Feed>>,
    clock: Clock,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for feed in &self.feeds {
                feed.set_health(Health::Stale(StaleReason::Failed), self.clock.wall());
            }
        }
    }
}

pub(super) enum Opened {
    /// Recordings, and the place of each one's intake in the group.
    Replay(Box<Replay>, Vec<usize>),
    Lines(Box<LineFeed>),
    Live(Box<LiveFeed>, Topics, &'static Venue),
}

pub(super) fn open(group: &[(FeedId, &FeedSettings)], clock: &Clock) -> anyhow::Result<Opened> {
    let (mut recordings, mut intake_of) = (Vec::new(), Vec::new());
    for (place, (_, feed)) in group.iter().enumerate() {
        let context = || format!("feed {:?}", feed.name);
        match &feed.input {
            Input::Recording(sources) => {
                for source in sources {
                    recordings.push(
                        selected(recording(source).with_context(context)?, feed)
                            .with_context(context)?,
                    );
                    intake_of.push(place);
                }
            }
            Input::Lines(lines) => return line_feed(lines, clock).with_context(context),
            Input::Url(url) => return live_feed(url, feed, clock).with_context(context),
        }
    }
    // What says how a group is played is the same in each of its feeds.
    let feed = group[0].1;
    let options = ReplayOptions {
        speed: match feed.speed {
            Speed::Max => crate::feed::Speed::Max,
            Speed::Times(factor) => crate::feed::Speed::times(factor)?,
        },
        passes: if feed.looped { None } else { std::num::NonZeroU64::new(1) },
        max_gap: if feed.max_gap.is_zero() { Duration::MAX } else { feed.max_gap },
        // A recording of no length, played at its own pace, must not spin.
        pass_delay: match feed.speed {
            Speed::Max => Duration::ZERO,
            Speed::Times(_) => LEAST_PASS,
        },
    };
    Ok(Opened::Replay(Box::new(Replay::new(recordings, options)?), intake_of))
}

/// Of a recording what the feed is to play.
fn selected(recording: Recording, feed: &FeedSettings) -> anyhow::Result<Recording> {
    Ok(recording.selecting(about::selection(&feed.venue, feed.from, feed.to, &feed.only)?))
}

fn live_feed(url: &str, feed: &FeedSettings, clock: &Clock) -> anyhow::Result<Opened> {
    let venue = venue::find(&feed.venue);
    let spoken = venue.and_then(|venue| Some((venue, venue.dialect()?)));
    let Some(((venue, dialect), live)) = spoken.zip(feed.live.as_ref()) else {
        bail!("the venue {:?} cannot be connected to", feed.venue);
    };
    let options = LiveOptions {
        ca_file: live.ca_file.clone(),
        stale_after: live.stale_after,
        first_retry: live.first_retry,
        longest_retry: live.longest_retry,
        jitter_seed: jitter_seed(clock),
        ..LiveOptions::default()
    };
    let (feed, topics) =
        LiveFeed::new(url.parse()?, dialect, wanted(live), &options, clock.clone())?;
    Ok(Opened::Live(Box::new(feed), topics, venue))
}

/// Every channel of every instrument.
fn wanted(live: &LiveSettings) -> Vec<Topic> {
    let of = |channel: &String| {
        live.instruments.iter().map(|symbol| Topic::new(channel.clone(), symbol.clone())).collect()
    };
    live.channels.iter().flat_map::<Vec<Topic>, _>(of).collect()
}

/// Feeds and processes should not come back all at the same moment.
fn jitter_seed(clock: &Clock) -> u64 {
    clock.wall().unsigned_abs() ^ u64::from(std::process::id())
}

/// Follows the topics of live feeds as the settings change.
pub(super) struct TopicsPart(Vec<(String, Topics)>);

impl TopicsPart {
    fn follow(&self, settings: &Settings) {
        for (name, topics) in &self.0 {
            let feed = settings.feeds.iter().find(|feed| feed.name == *name);
            if let Some(live) = feed.and_then(|feed| feed.live.as_ref()) {
                let wanted = wanted(live);
                if topics.get() != wanted {
                    topics.set(wanted);
                }
            }
        }
    }
}

impl Part for TopicsPart {
    fn name(&self) -> &str {
        "feeds"
    }

    fn apply(&self, _: &Settings, new: &Settings, _: &[Key]) -> Result<(), PartError> {
        self.follow(new);
        Ok(())
    }

    fn roll_back(&self, old: &Settings, _: &Settings, _: &[Key]) -> Result<(), PartError> {
        self.follow(old);
        Ok(())
    }
}

fn line_feed(lines: &Lines, clock: &Clock) -> anyhow::Result<Opened> {
    let source = match lines {
        Lines::Stdin => LineSource::Stdin,
        Lines::Tcp(address) => format!("tcp://{address}").parse()?,
    };
    let options = LineFeedOptions { jitter_seed: jitter_seed(clock), ..LineFeedOptions::default() };
    Ok(Opened::Lines(Box::new(LineFeed::new(source, options, clock.clone()))))
}

fn recording(source: &Source) -> anyhow::Result<Recording> {
    Ok(match source {
        Source::Sample => {
            Recording::from_bytes("embedded:sample", bytes::Bytes::from_static(SAMPLE), KEEP_BYTES)?
        }
        Source::File(path) => Recording::load_or_stream(Path::new(path), KEEP_BYTES)?,
    })
}

/// What is behind an intake: the end of the worker of its quotes, and the worker of its fills.
struct Behind {
    quotes: Completion,
    /// Kept alive: dropping a worker would stop it hard.
    fills: Worker<crate::worker::Coalescing>,
}

fn intake(
    settings: &FeedSettings,
    feed: &Arc<Feed>,
    gateway: &Gateway,
) -> anyhow::Result<(Intake<LedgerStage>, Behind)> {
    let context = venue::Context {
        instruments: gateway.instruments().clone(),
        accounts: gateway.accounts().clone(),
        feed: feed.id(),
        account: settings.account.clone(),
    };
    let codec = venue::codec(&settings.venue, context)
        .ok_or_else(|| anyhow!("no codec for the venue {:?}", settings.venue))?;
    let most = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
    // The board's stage runs on the feed's thread: for a quote it takes a hundredth of what a wake
    // of a thread would.
    let (quotes, mut board) = ConflationSpWorker::builder()
        .capacity(settings.queue)
        .max_keys(most(gateway.instruments().limit()))
        .stepped::<InstrumentId, _, _>(gateway.board_stage(&settings.name).gathering())?;
    // Never cancelled: a feed's stages are always drained, or fills would be lost.
    let (fills, worker) = CoalescingSpWorker::builder()
        .name(format!("ledger-{}", settings.name))
        .capacity(FILLS_QUEUE)
        .max_keys(most(gateway.volume_keys().limit()))
        .start(gateway.ledger_stage(&settings.name), CancellationToken::new())?;
    let behind = Behind { quotes: board.completion(), fills: worker };
    let intake = Intake::new(codec, feed.clone(), quotes, fills, gateway.volume_keys().clone())
        .with_stage(move || {
            board.step(usize::MAX);
            if let Some(stage) = board.handler_mut() {
                stage.ring();
            }
        });
    Ok((intake, behind))
}
