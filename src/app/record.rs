//! Recording without serving: each feed's thread hands what it receives to its recorder.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio_util::sync::CancellationToken;

use super::Program;
use super::feeds::{Opened, open, rolling_options};
use crate::clock::Clock;
use crate::config::{FeedSettings, RecordSettings};
use crate::feed::live::{LiveFeed, LiveStep};
use crate::feed::{
    LineFeed, LineStep, Mark, Place, RecordFigures, RecordKind, RecordTap, Recorders, Replay,
    Rolling, Step, TapOptions, wait_until,
};
use crate::ingest::sign::sign;
use crate::market::{Accounts, FeedId, Instruments};
use crate::venue::{Context, Venue};

/// What to record, and where.
#[derive(Debug)]
pub struct RecordPlan {
    /// Each feed, with its recorder's settings and its place.
    pub feeds: Vec<(FeedSettings, RecordSettings, Place)>,
    /// For how long; `None`: until every feed has ended, or a signal comes.
    pub length: Option<Duration>,
}

/// What was recorded of one feed.
#[derive(Debug)]
pub struct Recorded {
    /// The feed.
    pub name: String,
    /// What its recorder has done.
    pub figures: Arc<RecordFigures>,
}

/// How long closing the files may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

impl Program {
    /// Records until told to stop, until the feeds have ended, or for the plan's length. `show` is
    /// called four times a second with the time gone by.
    ///
    /// # Errors
    ///
    /// If a feed or a file cannot be opened, or a file could not be closed in time.
    pub fn record(
        self,
        plan: RecordPlan,
        show: impl FnMut(Duration, &[Recorded]) + Send,
    ) -> anyhow::Result<Vec<Recorded>> {
        let Self { runtime, mut signals } = self;
        let stop = CancellationToken::new();
        let recording = {
            let stop = stop.clone();
            std::thread::scope(|scope| {
                let running = scope.spawn(|| record(plan, &stop, show));
                runtime.block_on(async {
                    loop {
                        tokio::select! {
                            () = signals.stop_again() => stop.cancel(),
                            () = tokio::time::sleep(Duration::from_millis(20)) => {}
                        }
                        if running.is_finished() {
                            break;
                        }
                    }
                });
                running.join()
            })
        };
        // Standard input may hang for ever; that does not hold up the exit.
        runtime.shutdown_timeout(Duration::from_millis(200));
        recording.unwrap_or_else(|_| bail!("the recorder panicked"))
    }
}

fn record(
    plan: RecordPlan,
    stop: &CancellationToken,
    mut show: impl FnMut(Duration, &[Recorded]),
) -> anyhow::Result<Vec<Recorded>> {
    let clock = Clock::system();
    let mut recorders = Recorders::new(clock.clone());
    let mut taps = Vec::new();
    for (feed, settings, place) in plan.feeds {
        let name = feed.name.clone();
        let started = || -> anyhow::Result<_> {
            // The source first: what is missing should leave no file behind.
            let opened = open(&[(FeedId(0), &feed)], &clock)?;
            let options = rolling_options(&settings);
            let rolling = Rolling::new(&name, place, options)?;
            let queue_bytes = usize::try_from(settings.queue_bytes).unwrap_or(usize::MAX);
            Ok((opened, recorders.start(&name, rolling, TapOptions { queue_bytes })?))
        };
        let (opened, tap) = started().with_context(|| format!("feed {name:?}"))?;
        taps.push((name, opened, tap));
    }
    let recorded: Vec<Recorded> = taps
        .iter()
        .map(|(name, _, tap)| Recorded { name: name.clone(), figures: tap.figures().clone() })
        .collect();
    let running = Arc::new(AtomicUsize::new(taps.len()));
    let began = clock.now();
    for (name, opened, mut tap) in taps {
        let (clock, stop, running) = (clock.clone(), stop.clone(), running.clone());
        std::thread::Builder::new()
            .name(format!("feed-{name}"))
            .spawn(move || {
                match opened {
                    Opened::Replay(replay, _) => play(*replay, &name, &mut tap, &clock, &stop),
                    Opened::Lines(lines) => receive(*lines, &name, &mut tap, &clock, &stop),
                    Opened::Live(live, _topics, venue) => {
                        listen(*live, venue, &name, &mut tap, &clock, &stop);
                    }
                }
                running.fetch_sub(1, Ordering::Release);
            })
            .context("starting a feed's thread")?;
    }
    let until = plan.length.map(|length| began + length);
    while running.load(Ordering::Acquire) > 0 && !stop.is_cancelled() {
        std::thread::sleep(Duration::from_millis(50));
        show(clock.now().since(began), &recorded);
        if until.is_some_and(|until| clock.now() >= until) {
            stop.cancel();
        }
    }
    stop.cancel();
    // A feed that reads standard input may never come back; the taps are closed all the same.
    let patience = clock.now() + Duration::from_millis(500);
    while running.load(Ordering::Acquire) > 0 && clock.now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    if !recorders.finish(CLOSE_TIMEOUT) {
        bail!(
            "the files were not closed within {CLOSE_TIMEOUT:?}; `tidegate verify` tells what is in them"
        );
    }
    Ok(recorded)
}

/// Records a replay to its end.
fn play(
    mut replay: Replay,
    name: &str,
    tap: &mut RecordTap,
    clock: &Clock,
    stop: &CancellationToken,
) {
    const CLOCK_EVERY: u32 = 16;
    let mut now = clock.now();
    let mut until_look = CLOCK_EVERY;
    loop {
        match replay.next(now) {
            Step::Record { record, .. } => {
                let time = record.receive_time.unwrap_or_else(|| clock.wall());
                match record.kind {
                    RecordKind::Message => tap.message(time, record.text),
                    RecordKind::Mark(mark) => tap.mark(time, mark),
                }
                until_look -= 1;
                if until_look == 0 {
                    until_look = CLOCK_EVERY;
                    now = clock.now();
                    if stop.is_cancelled() {
                        return;
                    }
                }
            }
            Step::WaitUntil(until) => {
                if !wait_until(clock, until, stop) {
                    return;
                }
                now = clock.now();
            }
            Step::Damaged { damage, .. } => {
                tracing::warn!(feed = name, %damage, "a recording is damaged");
            }
            Step::Unreadable { error, .. } => {
                tracing::error!(feed = name, %error, "a recording cannot be read again");
            }
            Step::NextPass { .. } | Step::Jumped { .. } | Step::Paused => now = clock.now(),
            Step::Ended => return,
        }
    }
}

/// Records lines until stopped, or until standard input ends.
fn receive(
    mut lines: LineFeed,
    name: &str,
    tap: &mut RecordTap,
    clock: &Clock,
    stop: &CancellationToken,
) {
    loop {
        match lines.next(stop) {
            LineStep::Message { receive_time, text } => tap.message(receive_time, text),
            LineStep::Connected => tap.mark(clock.wall(), Mark::Connected),
            LineStep::Disconnected { reason, retry_in } => {
                tracing::info!(feed = name, reason, ?retry_in, "a line feed is down");
                tap.mark(clock.wall(), Mark::Disconnected);
            }
            LineStep::Ended { reason } => {
                tracing::info!(feed = name, reason, "a line feed has ended");
                return;
            }
            LineStep::Stopped => return,
        }
    }
}

/// Records what a venue sends until stopped. The codec's quotes are nobody's: it is there because a
/// live feed has to be told which messages answer its requests, and which are signs of life.
fn listen(
    mut live: LiveFeed,
    venue: &Venue,
    name: &str,
    tap: &mut RecordTap,
    clock: &Clock,
    stop: &CancellationToken,
) {
    const MOST_NAMES: usize = 1 << 20;
    let mut codec = venue.codec(Context {
        instruments: Arc::new(Instruments::new(MOST_NAMES)),
        accounts: Arc::new(Accounts::new(MOST_NAMES)),
        feed: FeedId(0),
        account: Some(name.to_owned()),
    });
    let heartbeats = live.rules().heartbeats;
    let mut events = Vec::new();
    loop {
        let sign = match live.next(stop) {
            LiveStep::Message { receive_time, text, repeated } => {
                tap.message(receive_time, text);
                events.clear();
                let class = codec.decode(text, receive_time, &mut events).class;
                sign(venue, class, text, repeated, heartbeats)
            }
            LiveStep::Connected => {
                tap.mark(clock.wall(), Mark::Connected);
                continue;
            }
            LiveStep::Disconnected { reason, retry_in, .. } => {
                tracing::info!(feed = name, reason, ?retry_in, "a live feed is down");
                tap.mark(clock.wall(), Mark::Disconnected);
                continue;
            }
            LiveStep::Stopped => return,
        };
        for refused in live.heard(&sign) {
            tracing::warn!(feed = name, refused, "the venue refused");
        }
    }
}
