//! Plays merged recordings into the intakes of their feeds, a step at a time.
//!
//! Each recording belongs to one feed; all share one schedule. The player neither sleeps nor reads
//! time for the schedule: the thread of a running replay and a run under virtual time step the very
//! same one.

use std::sync::Arc;

use super::feeds::Feed;
use super::intake::Intake;
use crate::clock::{Clock, Instant};
use crate::feed::{Mark, RecordKind, Replay, Step, Tally};
use crate::market::health::{Health, StaleReason};
use crate::market::{Volume, VolumeId};
use crate::worker::CoalescingHandler;

/// How often figures that only the player has are shown to others, in records.
const SHOW_EVERY: u64 = 4096;

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Played {
    /// A record was taken.
    Record,
    /// Nothing is due before this.
    WaitUntil(Instant),
    /// Something else was dealt with: damage, or the end of a pass.
    Aside,
    /// A worker has ended, which it does when the gateway stops.
    Closed,
    /// Nothing more comes, ever.
    Ended,
}

/// See the module.
pub struct Player<H> {
    replay: Replay,
    seats: Vec<Seat<H>>,
    /// The seat of each recording.
    seat_of: Vec<usize>,
    records: u64,
}

struct Seat<H> {
    intake: Intake<H>,
    live: bool,
    passes_before: Tally,
}

impl<H: CoalescingHandler<VolumeId, Volume>> Player<H> {
    /// A player of one feed, whose every recording is its own.
    pub fn new(replay: Replay, intake: Intake<H>) -> Self {
        let seat_of = replay.readers().map(|_| 0).collect();
        Self::merged(replay, vec![intake], seat_of)
    }

    /// A player of several feeds: `intake_of` names, for each recording, the place of its intake. A
    /// recording without one goes to the first.
    pub fn merged(replay: Replay, intakes: Vec<Intake<H>>, intake_of: Vec<usize>) -> Self {
        let seats = intakes
            .into_iter()
            .map(|intake| Seat { intake, live: false, passes_before: Tally::default() })
            .collect();
        Self { replay, seats, seat_of: intake_of, records: 0 }
    }

    /// Does what is due at `now`. The clock only says when health changed, and stamps records that
    /// have no time.
    #[inline]
    pub fn step(&mut self, now: Instant, clock: &Clock) -> Played {
        let Self { replay, seats, seat_of, records } = self;
        match replay.next(now) {
            Step::Record { source, record } => {
                let Some(seat) = seat(seats, seat_of, source) else { return Played::Aside };
                match record.kind {
                    RecordKind::Message => {
                        let receive_time = record.receive_time.unwrap_or_else(|| clock.wall());
                        if !std::mem::replace(&mut seat.live, true) {
                            seat.intake.feed().set_health(Health::Live, clock.wall());
                        }
                        if !seat.intake.message(record.text, receive_time, now) {
                            return Played::Closed;
                        }
                    }
                    RecordKind::Mark(mark) => {
                        let time = record.receive_time.unwrap_or_else(|| clock.wall());
                        seat.intake.mark(time, mark);
                        // A gap is told as what it is: for a moment nobody knows what happened.
                        if matches!(mark, Mark::Disconnected | Mark::Gap { .. }) {
                            seat.live = false;
                            let health = Health::Stale(StaleReason::Disconnected);
                            seat.intake.feed().set_health(health, clock.wall());
                        }
                    }
                }
                *records += 1;
                if records.is_multiple_of(SHOW_EVERY) {
                    self.show();
                }
                Played::Record
            }
            Step::WaitUntil(until) => Played::WaitUntil(until),
            Step::Damaged { source, damage } => {
                let damage = damage.to_string();
                if let Some(seat) = seat(seats, seat_of, source) {
                    let feed = seat.intake.feed();
                    tracing::warn!(feed = feed.name(), damage, "a recording is damaged");
                    feed.note_damage(damage);
                }
                Played::Aside
            }
            Step::Unreadable { source, error } => {
                if let Some(seat) = seat(seats, seat_of, source) {
                    let feed = seat.intake.feed();
                    tracing::error!(feed = feed.name(), %error, "a recording cannot be read again");
                    feed.note_damage(error.to_string());
                }
                Played::Aside
            }
            Step::NextPass { .. } => {
                self.show();
                for place in 0..self.seats.len() {
                    self.seats[place].passes_before = self.tally(place);
                    self.seats[place].intake.new_session();
                }
                Played::Aside
            }
            Step::Jumped { time } => {
                for seat in &mut self.seats {
                    tracing::info!(feed = seat.intake.feed().name(), time, "a replay jumps");
                    seat.intake.new_session();
                }
                Played::Aside
            }
            Step::Paused => {
                self.show();
                for seat in &mut self.seats {
                    // What a client has is held with the replay: old, and not to be taken as new.
                    if std::mem::take(&mut seat.live) {
                        let health = Health::Stale(StaleReason::Paused);
                        seat.intake.feed().set_health(health, clock.wall());
                    }
                }
                Played::Aside
            }
            Step::Ended => Played::Ended,
        }
    }

    /// The feeds, in the order of their intakes.
    pub fn feeds(&self) -> impl Iterator<Item = &Arc<Feed>> {
        self.seats.iter().map(|seat| seat.intake.feed())
    }

    /// The recordings, as far as they are played.
    pub fn replay(&self) -> &Replay {
        &self.replay
    }

    /// Shows the last figures and gives the intakes back.
    pub fn into_intakes(self, reason: StaleReason) -> Vec<Intake<H>> {
        self.show();
        for (place, seat) in self.seats.iter().enumerate() {
            let tally = self.tally(place);
            if tally.messages == 0 && reason == StaleReason::Ended {
                tracing::warn!(
                    feed = seat.intake.feed().name(),
                    lines = tally.lines,
                    "a recording has ended and no message was found in it; `tidegate inspect` \
                     tells more"
                );
            }
        }
        self.seats.into_iter().map(|seat| seat.intake).collect()
    }

    fn show(&self) {
        for (place, seat) in self.seats.iter().enumerate() {
            seat.intake.feed().note_tally(self.tally(place));
        }
    }

    /// What the readers of one feed have counted in all passes.
    fn tally(&self, place: usize) -> Tally {
        let mut sum = self.seats[place].passes_before;
        for (source, reader) in self.replay.readers().enumerate() {
            if self.seat_of.get(source).copied().unwrap_or(0) == place {
                sum.add(reader.tally());
            }
        }
        sum
    }
}

fn seat<'a, H>(
    seats: &'a mut [Seat<H>],
    seat_of: &[usize],
    source: usize,
) -> Option<&'a mut Seat<H>> {
    seats.get_mut(seat_of.get(source).copied().unwrap_or(0))
}

impl<H> std::fmt::Debug for Player<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player").field("feeds", &self.seats.len()).finish_non_exhaustive()
    }
}
