//! The whole pipeline under virtual time: the same recordings and settings give the same bytes.
//!
//! Codecs, workers, board, ledger, sessions and protocol are those of a running gateway. They are
//! stepped on one thread, by a clock that stands still until nothing more is to happen at its
//! instant and then jumps to the next one at which something is due: a record, a rate window, a
//! sweep, a client that has read. Virtual time is the receive time of the recordings with their
//! gaps cut, so at any speed, and on any machine, everything happens at the same virtual instants.
//!
//! # What happens at one instant
//!
//! Every record that is due is decoded; then the workers are stepped, so that ticks which share a
//! receive time are conflated as they would be behind a busy feed; then the gateway settles.
//! Once the recordings have ended, clients that are behind are given time to catch up
//! ([`CATCH_UP`]), then every connection is closed as in a shutdown.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::limits;
use crate::clock::{Clock, Instant};
use crate::config::{Settings, Speed};
use crate::feed::{Recording, Replay, ReplayOptions, wait_until};
use crate::gateway::stepped::{ClientModel, Delivered, Opcode, Stepped};
use crate::gateway::{LedgerStage, Report};
use crate::ingest::{Intake, Played, Player};
use crate::market::health::{Health, StaleReason};
use crate::market::{FeedId, InstrumentId, VolumeId};
use crate::venue;
use crate::worker::{CoalescingSpWorker, ConflationSpWorker, Stepper};

/// Virtual time that clients get after the last record to read what they are behind with, and once
/// more to read the end.
pub const CATCH_UP: Duration = Duration::from_secs(60);

/// Recordings up to this size, unpacked, are kept in memory.
const KEEP_BYTES: u64 = 64 << 20;

/// What to reproduce.
#[derive(Clone, Debug)]
pub struct Script {
    /// Limits, batches and cadence, and what may be known; the feeds in it are not looked at.
    pub settings: Settings,
    /// The recordings and the venue each is of, merged by receive time.
    pub recordings: Vec<(String, Recording)>,
    /// Whose fills the recordings carry, if their messages do not say.
    pub account: Option<String>,
    /// The clients, which connect before the first record.
    pub clients: Vec<ClientModel>,
    /// The longest gap between two records; [`Duration::MAX`] cuts none.
    pub max_gap: Duration,
    /// How fast it runs; what comes out is the same.
    pub speed: Speed,
}

/// What one client got.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// SHA-256 of all frames, as they were on the wire, in hexadecimal digits.
    pub digest: String,
    /// Frames read.
    pub frames: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Its accounts once it had caught up; `None` if its connection had ended by then.
    pub report: Option<Report>,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Each client's, in their order.
    pub clients: Vec<Reproduced>,
    /// SHA-256 of the clients' digests, each followed by a line feed.
    pub digest: String,
    /// Messages played.
    pub messages: u64,
    /// Virtual time from the first record to the last.
    pub played: Duration,
    /// Whether a recording was found damaged: what follows the damage was not played.
    pub damaged: bool,
}

/// Runs a script from its first record until every connection is closed. `on_frame` sees each frame
/// that a client reads, with the client's place.
///
/// # Errors
///
/// A recording that cannot be read, a venue without a codec, a client that is refused, a stop, or
/// what `on_frame` answers.
pub fn reproduce(
    script: &Script,
    stop: &CancellationToken,
    mut on_frame: impl FnMut(usize, &Delivered) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let mut run = Run::new(script)?;
    let pace = Pace { real: Clock::system(), speed: script.speed, stop };
    let began = pace.real.now();
    let mut ended_at = None;
    loop {
        let record = match ended_at {
            None => run.play(),
            Some(_) => None,
        };
        if record.is_none() && ended_at.is_none() {
            run.end_feeds();
            ended_at = Some(run.clock.now());
        }
        let due = run.settle(&mut on_frame)?;
        if ended_at.is_some_and(|ended| run.is_over(ended)) {
            break;
        }
        let Some(next) = record.into_iter().chain(due).min() else { break };
        pace.wait(began, next)?;
        run.clock.advance(next.since(run.clock.now()));
    }
    run.finish(&pace, began, &mut on_frame)?;
    Ok(run.outcome(ended_at.unwrap_or_default()))
}

/// How fast virtual time goes in real time.
struct Pace<'a> {
    real: Clock,
    speed: Speed,
    stop: &'a CancellationToken,
}

impl Pace<'_> {
    fn wait(&self, began: Instant, next: Instant) -> anyhow::Result<()> {
        let go_on = match self.speed {
            Speed::Max => !self.stop.is_cancelled(),
            Speed::Times(factor) => {
                let virtually = next.since(Instant::default()).as_secs_f64();
                // Past what a duration holds nobody waits for.
                let really = Duration::try_from_secs_f64(virtually / factor);
                wait_until(&self.real, began + really.unwrap_or(Duration::MAX), self.stop)
            }
        };
        if go_on { Ok(()) } else { Err(anyhow!("stopped")) }
    }
}

/// One venue's steppers.
struct Stages {
    quotes: Stepper<crate::gateway::BoardStage>,
    fills: Stepper<LedgerStage>,
}

struct Run {
    clock: Clock,
    gateway: Stepped,
    player: Option<Player<LedgerStage>>,
    stages: Vec<Stages>,
    /// What is known of each client so far.
    clients: Vec<Tally>,
    messages: u64,
    damaged: bool,
}

#[derive(Default)]
struct Tally {
    hash: Sha256,
    frames: u64,
    bytes: u64,
    report: Option<Report>,
}

impl Run {
    fn new(script: &Script) -> anyhow::Result<Self> {
        let clock = Clock::manual_from(first_time(&script.recordings)?);
        let mut venues: Vec<&str> = Vec::new();
        let mut intake_of = Vec::new();
        for (venue, _) in &script.recordings {
            let place = venues.iter().position(|known| known == venue);
            intake_of.push(place.unwrap_or(venues.len()));
            if place.is_none() {
                venues.push(venue);
            }
        }
        // A feed is called as its venue: there is one of each.
        let names = venues.iter().map(|venue| ((*venue).to_owned(), (*venue).to_owned()));
        let parts = super::parts_of(&script.settings, names, &clock);
        let mut gateway = Stepped::new(parts.clone(), limits::of(&script.settings));
        let (mut intakes, mut stages) = (Vec::new(), Vec::new());
        for (venue, id) in venues.iter().zip(0..) {
            let context = venue::Context {
                instruments: parts.instruments.clone(),
                accounts: parts.accounts.clone(),
                feed: FeedId(id),
                account: script.account.clone(),
            };
            let codec = venue::codec(venue, context)
                .ok_or_else(|| anyhow!("no codec for the venue {venue:?}"))?;
            let feed = parts.feeds.get(FeedId(id)).clone();
            let most = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
            // A stepped worker cannot wait for itself, so each has room for every key.
            let (quotes, quotes_stepper) = ConflationSpWorker::builder()
                .capacity(parts.instruments.limit())
                .max_keys(most(parts.instruments.limit()))
                .stepped::<InstrumentId, _, _>(gateway.board_stage(venue))?;
            let (fills, fills_stepper) = CoalescingSpWorker::builder()
                .capacity(parts.volume_keys.limit())
                .max_keys(most(parts.volume_keys.limit()))
                .stepped::<VolumeId, _, _>(gateway.ledger_stage(venue))?;
            intakes.push(Intake::new(codec, feed, quotes, fills, parts.volume_keys.clone()));
            stages.push(Stages { quotes: quotes_stepper, fills: fills_stepper });
        }
        for (number, client) in (1..).zip(&script.clients) {
            gateway.connect(client).with_context(|| format!("subscriber {number}"))?;
        }
        let recordings = script.recordings.iter().map(|(_, recording)| recording.clone()).collect();
        let options = ReplayOptions {
            speed: crate::feed::Speed::ORIGINAL,
            max_gap: script.max_gap,
            ..ReplayOptions::default()
        };
        let replay = Replay::new(recordings, options)?;
        Ok(Self {
            clock,
            gateway,
            player: Some(Player::merged(replay, intakes, intake_of)),
            stages,
            clients: script.clients.iter().map(|_| Tally::default()).collect(),
            messages: 0,
            damaged: false,
        })
    }

    /// Plays what is due and steps the workers; answers when the next record is due.
    fn play(&mut self) -> Option<Instant> {
        let now = self.clock.now();
        let player = self.player.as_mut()?;
        let next = loop {
            match player.step(now, &self.clock) {
                Played::Record | Played::Aside => {}
                Played::WaitUntil(until) => break Some(until),
                Played::Closed | Played::Ended => break None,
            }
        };
        for stages in &mut self.stages {
            stages.quotes.step(usize::MAX);
            stages.fills.step(usize::MAX);
        }
        next
    }

    /// What a feed's thread does at its end.
    fn end_feeds(&mut self) {
        let Some(player) = self.player.take() else { return };
        let feeds: Vec<_> = player.feeds().cloned().collect();
        for intake in player.into_intakes(StaleReason::Ended) {
            intake.complete();
        }
        for stages in self.stages.drain(..) {
            stages.quotes.finish();
            stages.fills.finish();
        }
        for feed in feeds {
            feed.set_health(Health::Stale(StaleReason::Ended), self.clock.wall());
            let figures = feed.figures();
            self.messages += figures.tally.messages;
            self.damaged |= figures.damaged;
        }
    }

    fn settle(
        &mut self,
        on_frame: &mut impl FnMut(usize, &Delivered) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<Instant>> {
        let due = self.gateway.settle();
        let mut outcome = Ok(());
        for (place, tally) in self.clients.iter_mut().enumerate() {
            self.gateway.take_delivered(place, |frame| {
                tally.hash.update(&frame.bytes);
                tally.frames += 1;
                tally.bytes += frame.bytes.len() as u64;
                if outcome.is_ok() {
                    outcome = on_frame(place, &frame);
                }
            });
        }
        outcome.map(|()| due)
    }

    /// Whether every client has caught up, or had the time for it.
    fn is_over(&mut self, ended: Instant) -> bool {
        let late = self.clock.now() >= ended + CATCH_UP;
        let mut all = true;
        for (place, tally) in self.clients.iter_mut().enumerate() {
            let report = self.gateway.report(place);
            all &= report.as_ref().is_none_or(|report| {
                report.pending == 0 && report.in_flight == 0 && !report.blocked
            });
            tally.report = report;
        }
        all || late
    }

    fn finish(
        &mut self,
        pace: &Pace<'_>,
        began: Instant,
        on_frame: &mut impl FnMut(usize, &Delivered) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.gateway.finish();
        let until = self.clock.now() + CATCH_UP;
        loop {
            let due = self.settle(on_frame)?;
            let Some(next) = due.filter(|&next| next < until) else { return Ok(()) };
            if self.gateway.has_finished() {
                return Ok(());
            }
            pace.wait(began, next)?;
            self.clock.advance(next.since(self.clock.now()));
        }
    }

    fn outcome(self, ended: Instant) -> Outcome {
        let clients: Vec<Reproduced> = self
            .clients
            .into_iter()
            .map(|tally| Reproduced {
                digest: hexadecimal(&tally.hash.finalize()),
                frames: tally.frames,
                bytes: tally.bytes,
                report: tally.report,
            })
            .collect();
        let mut all = Sha256::new();
        for client in &clients {
            all.update(client.digest.as_bytes());
            all.update(b"\n");
        }
        Outcome {
            clients,
            digest: hexadecimal(&all.finalize()),
            messages: self.messages,
            played: ended.since(Instant::default()),
            damaged: self.damaged,
        }
    }
}

/// The earliest receive time at the recordings' beginnings: virtual time begins there.
fn first_time(recordings: &[(String, Recording)]) -> anyhow::Result<i64> {
    let mut first = None;
    for (_, recording) in recordings {
        let mut reader = recording.reader()?;
        let time = reader.read_next().and_then(|record| record.receive_time);
        first = [first, time].into_iter().flatten().min();
    }
    Ok(first.unwrap_or(0))
}

/// Opens a recording for a script.
///
/// # Errors
///
/// If it cannot be opened.
pub fn open(path: &std::path::Path) -> anyhow::Result<Recording> {
    Ok(Recording::load_or_stream(path, KEEP_BYTES)?)
}

/// One line about a frame: who read it and when, what kind it is, and what it carries. Text is
/// written as it is, anything else in hexadecimal digits.
#[must_use]
pub fn line(client: usize, frame: &Delivered) -> Vec<u8> {
    let (number, at) = (client + 1, frame.at.as_nanos());
    let kind = frame.opcode.word();
    let mut line =
        format!("{{\"subscriber\":{number},\"at\":{at},\"frame\":\"{kind}\",").into_bytes();
    if frame.opcode == Opcode::Text {
        // The protocol's messages are JSON objects on one line.
        line.extend_from_slice(b"\"message\":");
        line.extend_from_slice(frame.payload());
    } else {
        line.extend_from_slice(format!("\"hex\":\"{}\"", hexadecimal(frame.payload())).as_bytes());
    }
    line.extend_from_slice(b"}\n");
    line
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
