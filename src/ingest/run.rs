//! The loop of a feed's thread: get a record, hand it to the intake, keep the health right.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::feeds::Feed;
use super::intake::Intake;
use super::player::{Played, Player};
use super::sign::sign;
use crate::clock::Clock;
use crate::feed::live::{LiveFeed, LiveStep, Sign};
use crate::feed::{LineFeed, LineStep, Mark, wait_until};
use crate::market::health::{Health, StaleReason};
use crate::market::{Volume, VolumeId};
use crate::venue::Venue;
use crate::worker::CoalescingHandler;

/// How long the stages behind a feed may take to drain when it ends.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Records between two looks at the clock while a replay runs as fast as it can.
const CLOCK_EVERY: u32 = 16;

/// How often figures that only the feed's thread has are shown to others.
const SHOW_EVERY: u64 = 4096;

/// Waits until one of the feeds is wanted; `false` if they are stopped before.
pub fn wait_for_subscriber(feeds: &[Arc<Feed>], clock: &Clock, stop: &CancellationToken) -> bool {
    const SLICE: Duration = Duration::from_millis(50);
    for feed in feeds {
        feed.set_health(Health::Stale(StaleReason::AwaitingSubscriber), clock.wall());
    }
    let slice = SLICE / u32::try_from(feeds.len().max(1)).unwrap_or(u32::MAX);
    while !stop.is_cancelled() {
        if feeds.iter().any(|feed| feed.wait_wanted(slice)) {
            return true;
        }
    }
    false
}

/// Plays recordings to their end, or until stopped.
pub fn play<H: CoalescingHandler<VolumeId, Volume>>(
    mut player: Player<H>,
    clock: &Clock,
    stop: &CancellationToken,
) {
    let mut now = clock.now();
    let mut until_look = CLOCK_EVERY;
    let reason = loop {
        match player.step(now, clock) {
            Played::Record => {
                until_look -= 1;
                if until_look == 0 {
                    until_look = CLOCK_EVERY;
                    now = clock.now();
                    if stop.is_cancelled() {
                        break StaleReason::Shutdown;
                    }
                }
            }
            Played::WaitUntil(until) => {
                if !wait_until(clock, until, stop) {
                    break StaleReason::Shutdown;
                }
                now = clock.now();
                // A paced replay looks at the clock for every record: ages should be exact.
                until_look = 1;
            }
            Played::Aside => now = clock.now(),
            Played::Closed => break StaleReason::Shutdown,
            Played::Ended => break StaleReason::Ended,
        }
    };
    for intake in player.into_intakes(reason) {
        end(intake, reason, clock);
    }
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
        let step = match lines.at_hand() {
            Some(message) => message,
            None => {
                intake.settle();
                lines.next(stop)
            }
        };
        match step {
            LineStep::Message { receive_time, text } => {
                if !intake.message_of_many(text, receive_time, clock.now()) {
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

/// Receives from a venue until stopped.
pub fn listen<H: CoalescingHandler<VolumeId, Volume>>(
    mut live: LiveFeed,
    mut intake: Intake<H>,
    venue: &Venue,
    clock: &Clock,
    stop: &CancellationToken,
) {
    let feed = intake.feed().clone();
    let heartbeats = live.rules().heartbeats;
    let mut connected_before = false;
    let mut is_live = false;
    let mut messages = 0_u64;
    loop {
        let sign = match live.next(stop) {
            LiveStep::Message { receive_time, text, repeated } => {
                if !intake.message(text, receive_time, clock.now()) {
                    break;
                }
                sign(venue, intake.class(), text, repeated, heartbeats)
            }
            LiveStep::Connected => {
                if std::mem::replace(&mut connected_before, true) {
                    feed.count_reconnect();
                }
                intake.mark(clock.wall(), Mark::Connected);
                tracing::info!(feed = feed.name(), "connected");
                continue;
            }
            LiveStep::Disconnected { reason, silent, retry_in } => {
                is_live = false;
                intake.mark(clock.wall(), Mark::Disconnected);
                tracing::info!(feed = feed.name(), reason, ?retry_in, "a live feed is down");
                feed.note_problem(reason);
                let why = if silent { StaleReason::Silent } else { StaleReason::Disconnected };
                feed.set_health(Health::Stale(why), clock.wall());
                feed.note_tally(*live.tally());
                continue;
            }
            LiveStep::Stopped => break,
        };
        for refused in live.heard(&sign) {
            tracing::warn!(feed = feed.name(), refused, "the venue refused");
            feed.note_problem(refused);
        }
        if !is_live {
            // Data has come; or all that was asked for is granted, and the market is quiet.
            let (held, wanted) = live.held();
            is_live = sign == Sign::Alive || (held == wanted && matches!(sign, Sign::Replies(_)));
            if is_live {
                feed.set_health(Health::Live, clock.wall());
            }
        }
        messages += 1;
        if messages.is_multiple_of(SHOW_EVERY) || matches!(sign, Sign::Replies(_)) {
            feed.note_tally(*live.tally());
        }
    }
    feed.note_tally(*live.tally());
    end(intake, StaleReason::Shutdown, clock);
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
