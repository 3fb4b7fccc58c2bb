//! Recordings through a mock venue, as if they were live.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::MockVenue;
use crate::clock::Clock;
use crate::feed::{Mark, RecordKind, Recording, Replay, ReplayOptions, Speed, Step, wait_until};
use crate::venue::Venue;

/// What a mock venue plays.
#[derive(Clone, Debug)]
pub struct MockPlan {
    /// The venue.
    pub venue: &'static Venue,
    /// Where to listen.
    pub listen: SocketAddr,
    /// The recordings, merged by receive time.
    pub recordings: Vec<Recording>,
    /// How fast.
    pub speed: Speed,
    /// Whether to begin again at the end.
    pub looped: bool,
    /// The longest gap between two records.
    pub max_gap: Duration,
}

/// Serves the plan, from the first subscription on, until stopped; connections stay open at the end
/// of the recordings. `ready` is told the address once it listens.
///
/// # Errors
///
/// If the address cannot be had or a recording cannot be opened.
pub fn play(
    plan: MockPlan,
    stop: &CancellationToken,
    ready: impl FnOnce(&MockVenue),
) -> anyhow::Result<()> {
    let clock = Clock::system();
    let options = ReplayOptions {
        speed: plan.speed,
        passes: if plan.looped { None } else { NonZeroU64::new(1) },
        max_gap: plan.max_gap,
        pass_delay: Duration::from_millis(1),
    };
    let mut replay = Replay::new(plan.recordings, options)?;
    let mock = MockVenue::start(plan.venue, plan.listen, clock.clone())
        .with_context(|| format!("listening on {}", plan.listen))?;
    ready(&mock);
    if !mock.wait_for_subscriber(stop) {
        return Ok(());
    }
    loop {
        if stop.is_cancelled() {
            return Ok(());
        }
        match replay.next(clock.now()) {
            Step::Record { record, .. } => match record.kind {
                RecordKind::Message => {
                    if let Ok(text) = std::str::from_utf8(record.text) {
                        mock.publish(text);
                    }
                }
                // As it was: the venue was gone, and the client came back.
                RecordKind::Mark(Mark::Disconnected) => {
                    mock.end(super::End::Cut);
                }
                RecordKind::Mark(_) => {}
            },
            Step::WaitUntil(until) => {
                if !wait_until(&clock, until, stop) {
                    return Ok(());
                }
            }
            Step::Damaged { damage, .. } => {
                tracing::warn!(%damage, "a recording is damaged");
            }
            Step::Unreadable { error, .. } => {
                tracing::error!(%error, "a recording cannot be read again");
            }
            Step::NextPass { .. } | Step::Jumped { .. } | Step::Paused => {}
            Step::Ended => {
                tracing::info!("the recordings have ended; connections stay open");
                while !stop.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(50));
                }
                return Ok(());
            }
        }
    }
}
