//! Which topics are wanted, asked for, granted, refused: one connection's subscriptions.
//!
//! # Invariants
//!
//! 1. A topic has one state. It is forgotten when it is neither wanted nor held.
//! 2. At most one request about a topic is on its way.
//! 3. An answer that names no topic is about the request with its id; without an id, about the
//!    oldest request on its way, because venues answer in order.
//! 4. Topics that were refused together are asked for again in halves, never with more. Some venues
//!    refuse a whole request for one name in it; so the bad one ends up alone, after as many
//!    rounds as its request has binary digits, and keeps no other from being granted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::dialect::{Dialect, Reply, ReplyOutcome, Request, Topic, Wish};
use crate::clock::Instant;

/// How long an answer may take until the topic counts as refused.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The wait after the first refusal of a topic, and the longest.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// To be asked for once `at` has come, among at most `most`; refused so many times in a row.
    Due { at: Instant, refusals: u32, most: usize },
    /// Asked for by this request.
    Asked { number: u64, until: Instant, refusals: u32 },
    /// Granted.
    Held,
    /// No longer wanted; to be taken leave of.
    Unwanted,
    /// Leave is taken by this request.
    Leaving { number: u64, until: Instant },
}

impl State {
    /// To be asked for as if it never had been.
    fn fresh(now: Instant) -> Self {
        Self::Due { at: now, refusals: 0, most: usize::MAX }
    }
}

/// See the file.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    topics: BTreeMap<Topic, (bool, State)>,
    /// The ids of requests on their way, by number.
    ids: BTreeMap<u64, Option<String>>,
    number: u64,
}

impl Wishes {
    /// Wants exactly these topics from now on.
    pub fn want(&mut self, topics: impl IntoIterator<Item = Topic>, now: Instant) {
        for (wanted, _) in self.topics.values_mut() {
            *wanted = false;
        }
        for topic in topics {
            let fresh = (true, State::fresh(now));
            let (wanted, state) = self.topics.entry(topic).or_insert(fresh);
            *wanted = true;
            if *state == State::Unwanted {
                // Leave was not taken yet, so it is held as before.
                *state = State::Held;
            }
        }
        for (wanted, state) in self.topics.values_mut() {
            if !*wanted && *state == State::Held {
                *state = State::Unwanted;
            }
        }
        self.topics.retain(|_, (wanted, state)| *wanted || !matches!(state, State::Due { .. }));
    }

    /// A new connection: nothing is held, everything wanted is due.
    pub fn opened(&mut self, now: Instant) {
        self.topics.retain(|_, (wanted, _)| *wanted);
        for (_, state) in self.topics.values_mut() {
            *state = State::fresh(now);
        }
        self.ids.clear();
        self.number = 0;
    }

    /// Topics that are wanted.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.topics.values().filter(|(wanted, _)| *wanted).count()
    }

    /// Topics that are wanted and granted.
    #[must_use]
    pub fn held(&self) -> usize {
        let held = |(wanted, state): &&(bool, State)| *wanted && *state == State::Held;
        self.topics.values().filter(held).count()
    }

    /// The next message that asks for something, if anything is due.
    pub fn request(&mut self, dialect: &dyn Dialect, now: Instant) -> Option<Request> {
        // Among how many a topic may be asked for, if this is to be asked for it now.
        let of = |wish: Wish, state: &State| match (wish, state) {
            (Wish::Unsubscribe, State::Unwanted) => Some(usize::MAX),
            (Wish::Subscribe, State::Due { at, most, .. }) if *at <= now => Some(*most),
            _ => None,
        };
        let (wish, most) = [Wish::Unsubscribe, Wish::Subscribe].into_iter().find_map(|wish| {
            // The widest first: what was refused before waits for what never was.
            let most = self.topics.values().filter_map(|(_, state)| of(wish, state)).max()?;
            Some((wish, most))
        })?;
        let due: Vec<Topic> = self
            .topics
            .iter()
            .filter(|(_, (_, state))| of(wish, state) == Some(most))
            .map(|(topic, _)| topic.clone())
            .take(most)
            .collect();
        self.number += 1;
        let number = self.number;
        let request = dialect.request(wish, &due, number);
        let until = now + ANSWER_TIMEOUT;
        for topic in &request.topics {
            if let Some((_, state)) = self.topics.get_mut(topic) {
                *state = match state {
                    State::Due { refusals, .. } => {
                        State::Asked { number, until, refusals: *refusals }
                    }
                    _ => State::Leaving { number, until },
                };
            }
        }
        self.ids.insert(number, request.id.clone());
        Some(request)
    }

    /// Takes a message's answers; answers what was refused, in words.
    pub fn answered(&mut self, replies: &[Reply], now: Instant) -> Vec<String> {
        let mut refusals = Vec::new();
        for reply in replies {
            let about = self.about(reply);
            if let ReplyOutcome::Refused(reason) = &reply.outcome {
                refusals.push(describe(&about, reason));
            }
            for topic in &about {
                self.settle(topic, &reply.outcome, about.len(), now);
            }
        }
        // A list of what is held says by its silence that leave was granted.
        if replies.iter().any(|reply| reply.outcome == ReplyOutcome::Held) {
            let listed = |topic: &Topic| {
                replies.iter().any(|reply| {
                    reply.channel.as_ref() == Some(&topic.channel)
                        && reply.symbol.as_ref().is_none_or(|symbol| *symbol == topic.symbol)
                })
            };
            let left: Vec<Topic> = self
                .topics
                .iter()
                .filter(|(topic, (_, state))| {
                    matches!(state, State::Leaving { .. }) && !listed(topic)
                })
                .map(|(topic, _)| topic.clone())
                .collect();
            for topic in left {
                self.settle(&topic, &ReplyOutcome::Released, 1, now);
            }
        }
        self.forget_answered();
        refusals
    }

    /// Takes note of answers that did not come in time, which count as refusals.
    pub fn tick(&mut self, now: Instant) {
        let late: Vec<Topic> = self
            .topics
            .iter()
            .filter(|(_, (_, state))| match state {
                State::Asked { until, .. } | State::Leaving { until, .. } => *until <= now,
                _ => false,
            })
            .map(|(topic, _)| topic.clone())
            .collect();
        for topic in &late {
            self.settle(topic, &ReplyOutcome::Refused(String::new()), late.len(), now);
        }
        self.forget_answered();
    }

    /// When something is due next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.topics
            .values()
            .filter_map(|(_, state)| match state {
                State::Due { at, .. } => Some(*at),
                State::Unwanted => Some(Instant::default()),
                State::Asked { until, .. } | State::Leaving { until, .. } => Some(*until),
                State::Held => None,
            })
            .min()
    }

    /// The topics that an answer is about: among those of its request, if that is known, those that
    /// it names.
    fn about(&self, reply: &Reply) -> Vec<Topic> {
        let by_id = reply.request.as_ref().and_then(|id| {
            self.ids.iter().find(|(_, known)| known.as_ref() == Some(id)).map(|(n, _)| *n)
        });
        let named = reply.channel.is_some() || reply.symbol.is_some();
        let number = match (by_id, &reply.request) {
            (Some(number), _) => Some(number),
            (None, None) if !named && reply.outcome != ReplyOutcome::Held => {
                self.ids.keys().next().copied()
            }
            // An answer to something else, such as a greeting.
            (None, _) if !named => return Vec::new(),
            (None, _) => None,
        };
        let is_asked = |state: &State| match (number, state) {
            (None, _) => true,
            (Some(number), State::Asked { number: of, .. } | State::Leaving { number: of, .. }) => {
                *of == number
            }
            (Some(_), _) => false,
        };
        let is_named = |topic: &Topic| {
            reply.channel.as_ref().is_none_or(|channel| *channel == topic.channel)
                && reply.symbol.as_ref().is_none_or(|symbol| *symbol == topic.symbol)
        };
        self.topics
            .iter()
            .filter(|(topic, (_, state))| is_asked(state) && is_named(topic))
            .map(|(topic, _)| topic.clone())
            .collect()
    }

    /// `together`: how many topics the same answer is about.
    fn settle(&mut self, topic: &Topic, outcome: &ReplyOutcome, together: usize, now: Instant) {
        let Some((wanted, state)) = self.topics.get_mut(topic) else { return };
        *state = match (outcome, &*state) {
            (ReplyOutcome::Refused(_), State::Asked { refusals, .. }) => {
                let wait = FIRST_RETRY * 2_u32.saturating_pow(*refusals).min(64);
                State::Due {
                    at: now + wait.min(LONGEST_RETRY),
                    refusals: refusals + 1,
                    most: together.div_ceil(2),
                }
            }
            // Whatever the venue says of it, who is not wanted is not held on to.
            (_, State::Leaving { .. }) if !*wanted => {
                self.topics.remove(topic);
                return;
            }
            (ReplyOutcome::Released | ReplyOutcome::Done, State::Leaving { .. })
            | (ReplyOutcome::Refused(_), State::Leaving { .. }) => State::fresh(now),
            (
                ReplyOutcome::Granted | ReplyOutcome::Done | ReplyOutcome::Held,
                State::Asked { .. },
            ) => State::Held,
            // An answer that came late is as good.
            (ReplyOutcome::Granted | ReplyOutcome::Held, State::Due { .. }) => State::Held,
            // Taken away unasked: asked for again.
            (ReplyOutcome::Released, State::Held) => State::fresh(now),
            _ => return,
        };
        match state {
            State::Held if !*wanted => *state = State::Unwanted,
            State::Due { .. } if !*wanted => {
                self.topics.remove(topic);
            }
            _ => {}
        }
    }

    /// Forgets requests that no topic waits for any more.
    fn forget_answered(&mut self) {
        let topics = &self.topics;
        self.ids.retain(|number, _| {
            topics.values().any(|(_, state)| match state {
                State::Asked { number: of, .. } | State::Leaving { number: of, .. } => of == number,
                _ => false,
            })
        });
    }
}

fn describe(about: &[Topic], reason: &str) -> String {
    match about {
        [] => reason.to_owned(),
        [Topic { channel, symbol }] => format!("{channel} of {symbol}: {reason}"),
        [Topic { channel, symbol }, rest @ ..] => {
            format!("{channel} of {symbol} and {} more: {reason}", rest.len())
        }
    }
}

#[cfg(test)]
mod tests;
