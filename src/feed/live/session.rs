//! One connection: what to say and when, and whether it is still worth having.

use std::collections::VecDeque;
use std::time::Duration;

use super::dialect::{Dialect, Request, Rules, Sign, Topic};
use super::pacer::Pacer;
use super::wishes::Wishes;
use crate::clock::Instant;

/// How much sooner than the venue we end a connection that has lived its time, as a part of it.
const SOONER: u32 = 48;

/// Messages that may wait to be said; a venue that asks for more answers than that gets the newest.
const MOST_REPLIES: usize = 64;

/// Something to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A text message.
    Text(String),
    /// A WebSocket ping.
    Ping,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// On purpose: the next may follow at once.
    Planned,
    /// It stood and gave no sign of life.
    Silent,
    /// It broke.
    Broken,
}

/// See the file.
pub struct Session {
    dialect: Box<dyn Dialect>,
    rules: Rules,
    stale_after: Duration,
    wishes: Wishes,
    pacer: Pacer,
    /// To be said before anything is asked for.
    says: VecDeque<String>,
    opened: Instant,
    alive: Instant,
    pinged: Instant,
    pings: u64,
    /// Whether the venue has said that it will close.
    closing: bool,
}

impl Session {
    /// A session in this dialect; `stale_after` overrides the dialect's own.
    #[must_use]
    pub fn new(dialect: Box<dyn Dialect>, stale_after: Option<Duration>) -> Self {
        let rules = dialect.rules();
        Self {
            stale_after: stale_after.unwrap_or(rules.stale_after),
            wishes: Wishes::default(),
            pacer: Pacer::new(rules.messages, rules.window),
            says: VecDeque::new(),
            opened: Instant::default(),
            alive: Instant::default(),
            pinged: Instant::default(),
            pings: 0,
            closing: false,
            dialect,
            rules,
        }
    }

    /// The venue's rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Wants exactly these topics from now on.
    pub fn want(&mut self, topics: impl IntoIterator<Item = Topic>, now: Instant) {
        self.wishes.want(topics, now);
    }

    /// Topics granted, and topics wanted.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        (self.wishes.held(), self.wishes.wanted())
    }

    /// A new connection stands. The pace is kept over connections: a venue counts by address.
    pub fn opened(&mut self, now: Instant) {
        self.wishes.opened(now);
        self.says = self.dialect.greeting().into();
        (self.opened, self.alive, self.pinged) = (now, now, now);
        self.closing = false;
    }

    /// What a message was; answers what was refused, in the venue's words.
    pub fn heard(&mut self, sign: &Sign, now: Instant) -> Vec<String> {
        match sign {
            Sign::Alive => self.alive = now,
            Sign::Replies(replies) => {
                let refused = self.wishes.answered(replies, now);
                if self.wishes.held() == 0 {
                    // Nothing is owed to us, so an answer is all the life that there can be; nor is
                    // there to be any before we ask again, however long that waits.
                    self.alive = self.wishes.deadline().map_or(now, |due| due.max(now));
                }
                return refused;
            }
            Sign::Closing => self.closing = true,
            Sign::Other => {}
        }
        Vec::new()
    }

    /// Lets the dialect answer a message at once.
    pub fn reply(&mut self, message: &[u8]) {
        if let Some(text) = self.dialect.reply(message) {
            if self.says.len() >= MOST_REPLIES {
                self.says.pop_front();
            }
            self.says.push_back(text);
        }
    }

    /// The next thing to send, if anything is due and the pace allows it.
    pub fn outgoing(&mut self, now: Instant) -> Option<Outgoing> {
        self.wishes.tick(now);
        if !self.pacer.is_open(now) {
            return None;
        }
        let out = if let Some(text) = self.says.pop_front() {
            Outgoing::Text(text)
        } else if self.ping_due().is_some_and(|due| due <= now) {
            self.pinged = now;
            self.pings += 1;
            self.dialect.ping(self.pings).map_or(Outgoing::Ping, Outgoing::Text)
        } else {
            let Request { text, .. } = self.wishes.request(&*self.dialect, now)?;
            Outgoing::Text(text)
        };
        self.pacer.spend(now);
        Some(out)
    }

    /// Why the connection is to be given up now, if it is.
    #[must_use]
    pub fn verdict(&self, now: Instant) -> Option<(String, Verdict)> {
        if self.closing {
            return Some(("the venue is about to close".to_owned(), Verdict::Planned));
        }
        if now >= self.alive + self.stale_after {
            return Some((format!("no sign of life for {:?}", self.stale_after), Verdict::Silent));
        }
        if self.life_ends().is_some_and(|ends| ends <= now) {
            return Some(("it has lived its time".to_owned(), Verdict::Planned));
        }
        None
    }

    /// When to look again, if nothing comes before.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let opens = self.pacer.opens();
        // What is to be said waits for the pace.
        let says = (!self.says.is_empty()).then_some(opens);
        let wishes = self.wishes.deadline().map(|due| due.max(opens));
        let ping = self.ping_due().map(|due| due.max(opens));
        [says, wishes, ping, self.life_ends()]
            .into_iter()
            .flatten()
            .fold(self.alive + self.stale_after, Instant::min)
    }

    fn ping_due(&self) -> Option<Instant> {
        Some(self.pinged + self.rules.ping_every?)
    }

    fn life_ends(&self) -> Option<Instant> {
        let lifetime = self.rules.lifetime?;
        Some(self.opened + (lifetime - lifetime / SOONER))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("held", &self.held()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
