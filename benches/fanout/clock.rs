//! Time that every process of a run shares.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the system's monotonic clock: the same for all processes of one machine.
pub fn now() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Nanoseconds since the Unix epoch.
pub fn wall() -> u64 {
    nanos(ClockId::Realtime)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let (seconds, rest) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or(0) * 1_000_000_000 + rest.unwrap_or(0)
}
