//! The loop of a feed's thread: get a record, hand it to the intake, keep the health right.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::intake::Intake;
use crate::clock::Clock;
use crate::feed::{LineFeed, LineStep, Mark, RecordKind, Replay, Step, Tally, wait_until};
use crate::market::health::{Health, StaleReason};
use crate::market::{Volume, VolumeId};
use crate::worker::CoalescingHandler;

/// How long the stages behind a feed may take to drain when it ends.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Messages between two looks at the clock while a replay runs as fast as it can.
const CLOCK_EVERY: u32 = 16;

/// How often figures that only the feed's thread has are shown to others.
const SHOW_EVERY: u64 = 4096;

/// Waits until the feed is wanted; `false` if it is stopped before.
pub fn wait_for_subscriber<H: CoalescingHandler<VolumeId, Volume>>(
    intake: &Intake<H>,
    clock: &Clock,
    stop: &CancellationToken,
) -> bool {
    let feed = intake.feed();
    feed.set_health(Health::Stale(StaleReason::AwaitingSubscriber), clock.wall());
    while !stop.is_cancelled() {
        if feed.wait_wanted(Duration::from_millis(50)) {
            return true;
        }
    }
    false
}

/// Plays a recording to its end, or until stopped.
pub fn play<H: CoalescingHandler<VolumeId, Volume>>(
    mut replay: Replay,
    mut intake: Intake<H>,
    clock: &Clock,
    stop: &CancellationToken,
) {
    let feed = intake.feed().clone();
    let mut now = clock.now();
    let mut until_look = CLOCK_EVERY;
    let mut records = 0_u64;
    let mut passes_before = Tally::default();
    let mut live = false;
    let reason = loop {
        match replay.next(now) {
            Step::Record { record, .. } => {
                match record.kind {
                    RecordKind::Message => {
                        if !live {
                            live = true;
                            feed.set_health(Health::Live, clock.wall());
                        }
                        let receive_time = record.receive_time.unwrap_or_else(|| clock.wall());
                        if !intake.message(record.text, receive_time, now) {
                            break StaleReason::Shutdown;
                        }
                    }
                    RecordKind::Mark(mark) => {
                        intake.mark(record.receive_time.unwrap_or_else(|| clock.wall()), mark);
                        // A gap is told as what it is: for a moment nobody knows what happened.
                        if matches!(mark, Mark::Disconnected | Mark::Gap { .. }) {
                            live = false;
                            feed.set_health(Health::Stale(StaleReason::Disconnected), clock.wall());
                        }
                    }
                }
                records += 1;
                until_look -= 1;
                if until_look == 0 {
                    until_look = CLOCK_EVERY;
                    now = clock.now();
                    if records % SHOW_EVERY < u64::from(CLOCK_EVERY) {
                        show(&feed, &replay, &passes_before);
                    }
                    if stop.is_cancelled() {
                        break StaleReason::Shutdown;
                    }
                }
            }
            Step::WaitUntil(until) => {
                if !wait_until(clock, until, stop) {
                    break StaleReason::Shutdown;
                }
                now = clock.now();
                // A paced replay looks at the clock for every record: ages should be exact.
                until_look = 1;
            }
            Step::Damaged { damage, .. } => {
                tracing::warn!(feed = feed.name(), %damage, "a recording is damaged");
                feed.note_damage(damage.to_string());
            }
            Step::Unreadable { error, .. } => {
                tracing::error!(feed = feed.name(), %error, "a recording cannot be read again");
                feed.note_damage(error.to_string());
            }
            Step::NextPass { .. } => {
                passes_before = show(&feed, &replay, &passes_before);
                intake.new_session();
                now = clock.now();
            }
            Step::Jumped { time } => {
                tracing::info!(feed = feed.name(), time, "a replay jumps");
                intake.new_session();
                now = clock.now();
            }
            Step::Ended => break StaleReason::Ended,
        }
    };
    let tally = show(&feed, &replay, &passes_before);
    if tally.messages == 0 && reason == StaleReason::Ended {
        tracing::warn!(
            feed = feed.name(),
            lines = tally.lines,
            "a recording has ended and no message was found in it; `tidegate inspect` tells more"
        );
    }
    end(intake, reason, clock);
}

/// Receives lines until stopped, or until standard input ends.
pub fn receive<H: CoalescingHandler<VolumeId, Volume>>(
    mut lines: LineFeed,
    mut intake: Intake<H>,
    clock: &Clock,
    stop: &CancellationToken,
) {
    let feed = intake.feed().clone();
    let mut connected_before = false;
    let mut messages = 0_u64;
    let reason = loop {
        match lines.next(stop) {
            LineStep::Message { receive_time, text } => {
                if !intake.message(text, receive_time, clock.now()) {
                    break StaleReason::Shutdown;
                }
                messages += 1;
                if messages.is_multiple_of(SHOW_EVERY) {
                    feed.note_tally(*lines.tally());
                }
            }
            LineStep::Connected => {
                if std::mem::replace(&mut connected_before, true) {
                    feed.count_reconnect();
                }
                intake.mark(clock.wall(), Mark::Connected);
                feed.set_health(Health::Live, clock.wall());
            }
            LineStep::Disconnected { reason, retry_in } => {
                intake.mark(clock.wall(), Mark::Disconnected);
                tracing::info!(feed = feed.name(), reason, ?retry_in, "a line feed is down");
                feed.note_problem(reason);
                feed.set_health(Health::Stale(StaleReason::Disconnected), clock.wall());
                feed.note_tally(*lines.tally());
            }
            LineStep::Ended { reason } => {
                tracing::info!(feed = feed.name(), reason, "a line feed has ended");
                break StaleReason::Ended;
            }
            LineStep::Stopped => break StaleReason::Shutdown,
        }
    };
    feed.note_tally(*lines.tally());
    end(intake, reason, clock);
}

/// Shows what the readers have counted in all passes; answers the sum.
fn show(feed: &super::feeds::Feed, replay: &Replay, passes_before: &Tally) -> Tally {
    let mut sum = *passes_before;
    for reader in replay.readers() {
        sum.add(reader.tally());
    }
    feed.note_tally(sum);
    sum
}

/// Completes the workers, waits until what they held has reached board and ledger, and only then
/// says that the feed has ended.
fn end<H: CoalescingHandler<VolumeId, Volume>>(
    intake: Intake<H>,
    reason: StaleReason,
    clock: &Clock,
) {
    let feed = intake.feed().clone();
    for completion in intake.complete() {
        if !completion.wait_timeout(DRAIN_TIMEOUT) {
            tracing::error!(feed = feed.name(), "a stage did not drain in time");
        }
    }
    feed.set_health(Health::Stale(reason), clock.wall());
}
