//! At most so many messages in any window of time.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::clock::Instant;

/// Remembers when the last messages were sent; a message may go once the oldest of a full window is
/// older than the window. That holds for *every* window, where a bucket would let two bursts meet.
#[derive(Clone, Debug)]
pub struct Pacer {
    messages: usize,
    window: Duration,
    sent: VecDeque<Instant>,
}

impl Pacer {
    /// At most `messages` within `window`.
    #[must_use]
    pub fn new(messages: NonZeroU32, window: Duration) -> Self {
        let messages = usize::try_from(messages.get()).unwrap_or(usize::MAX);
        Self { messages, window, sent: VecDeque::with_capacity(messages.min(1024)) }
    }

    /// When the next message may go; not in the future if it may go now.
    #[must_use]
    pub fn opens(&self) -> Instant {
        if self.sent.len() < self.messages {
            return Instant::default();
        }
        self.sent.front().map_or(Instant::default(), |&oldest| oldest + self.window)
    }

    /// Whether a message may go now.
    #[must_use]
    pub fn is_open(&self, now: Instant) -> bool {
        now >= self.opens()
    }

    /// A message has gone.
    pub fn spend(&mut self, now: Instant) {
        if self.sent.len() >= self.messages {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_window_holds_more_than_it_may() {
        let second = Duration::from_secs(1);
        let mut pacer = Pacer::new(NonZeroU32::new(3).unwrap(), second);
        let mut sent: Vec<Instant> = Vec::new();
        for step in 0..1_000 {
            let now = Instant::from_nanos(step * 37_000_000);
            while pacer.is_open(now) {
                pacer.spend(now);
                sent.push(now);
            }
        }
        assert!(sent.len() > 100, "{}", sent.len());
        assert!(sent.windows(4).all(|four| four[3].since(four[0]) >= second));
    }
}
