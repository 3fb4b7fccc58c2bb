//! Decode, count, dispatch: one message at a time, on the feed's own thread.

use std::sync::Arc;

use super::feeds::Feed;
use crate::clock::Instant;
use crate::feed::{Mark, RecordTap};
use crate::market::{Fill, InstrumentId, Quote, Volume, VolumeId, VolumeKeys};
use crate::venue::{Class, Codec, Event};
use crate::worker::{
    CoalescingHandler, CoalescingProducer, ConflationProducer, DispatchError, KeyHandle,
};

/// Messages after which the stage gets its turn though more are at hand: some 25 µs of them.
const SETTLE_EVERY: u32 = 64;

/// A value with the instant at which the gateway accepted it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accepted<T> {
    /// The value.
    pub value: T,
    /// When it was accepted.
    pub at: Instant,
}

/// Everything between a feed's raw messages and its two workers.
///
/// Instruments keep the handle of their key here, so a quote costs the codec's hash of its symbol
/// and none after.
pub struct Intake<H> {
    codec: Box<dyn Codec>,
    feed: Arc<Feed>,
    quotes: ConflationProducer<InstrumentId, Accepted<Quote>>,
    /// Handles by instrument number; an instrument of another feed never gets here.
    handles: Vec<Option<KeyHandle>>,
    fills: CoalescingProducer<VolumeId, Volume, H>,
    volume_keys: Arc<VolumeKeys>,
    events: Vec<Event>,
    record: Option<RecordTap>,
    /// What the last message was.
    class: Class,
    /// Runs the stage behind the quotes, where that has no thread of its own.
    stage: Option<Box<dyn FnMut() + Send>>,
    /// Messages whose quotes the stage may not have seen.
    unsettled: u32,
}

impl<H: CoalescingHandler<VolumeId, Volume>> Intake<H> {
    /// An intake of one feed.
    pub fn new(
        codec: Box<dyn Codec>,
        feed: Arc<Feed>,
        quotes: ConflationProducer<InstrumentId, Accepted<Quote>>,
        fills: CoalescingProducer<VolumeId, Volume, H>,
        volume_keys: Arc<VolumeKeys>,
    ) -> Self {
        feed.set_workers(quotes.queue(), fills.queue());
        Self {
            codec,
            feed,
            quotes,
            handles: Vec::new(),
            fills,
            volume_keys,
            events: Vec::with_capacity(4),
            record: None,
            class: Class::Unknown,
            stage: None,
            unsettled: 0,
        }
    }

    /// Records what is received from now on.
    pub fn record_to(&mut self, tap: RecordTap) {
        self.feed.set_record_figures(tap.figures().clone());
        self.record = Some(tap);
    }

    /// The connection was made or broke at `time` (wall), which a recording tells too.
    pub fn mark(&mut self, time: i64, mark: Mark) {
        if let Some(tap) = &mut self.record {
            tap.mark(time, mark);
        }
    }

    /// The stage behind the quotes runs on the intake's own thread: `stage` handles what waits, and
    /// the end of the worker when that has come.
    ///
    /// A hop to a thread that sleeps costs both some microseconds, many times what the stage takes
    /// for a quote.
    #[must_use]
    pub fn with_stage(mut self, stage: impl FnMut() + Send + 'static) -> Self {
        self.stage = Some(Box::new(stage));
        self
    }

    /// The feed it works for.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// Takes one raw message, received at `receive_time` (wall) and accepted at `at`.
    ///
    /// Blocks only while as many instruments are pending as the conflation worker holds. `false`
    /// once a worker has ended, which it does when the gateway stops.
    pub fn message(&mut self, text: &[u8], receive_time: i64, at: Instant) -> bool {
        let alive = self.message_of_many(text, receive_time, at);
        self.settle();
        alive
    }

    /// The same for one of several messages that are at hand: the next may supersede its quotes.
    /// [`settle`](Self::settle) is to follow before anything is waited for.
    pub fn message_of_many(&mut self, text: &[u8], receive_time: i64, at: Instant) -> bool {
        if self.handles.is_empty() || self.unsettled >= SETTLE_EVERY {
            // At the very first, so that the worker knows the thread it must not wait on.
            self.settle();
        }
        self.unsettled += 1;
        if let Some(tap) = &mut self.record {
            tap.message(receive_time, text);
        }
        self.events.clear();
        let decoded = self.codec.decode(text, receive_time, &mut self.events);
        self.class = decoded.class;
        self.feed.count(decoded.class, decoded.oddities);
        if matches!(decoded.class, Class::Refused(_) | Class::Unknown)
            && self.feed.counted(decoded.class).is_power_of_two()
        {
            // Ever rarer, because a flood of refusals should not cost their wording.
            self.note_problem();
        }
        for place in 0..self.events.len() {
            let alive = match self.events[place] {
                Event::Quote { instrument, quote } => {
                    self.quote(instrument, Accepted { value: quote, at })
                }
                Event::Fill(fill) => self.fill(&fill),
            };
            if !alive {
                return false;
            }
        }
        true
    }

    /// What the last message was.
    pub const fn class(&self) -> Class {
        self.class
    }

    /// Hands on what waits for the stage, where that runs on this thread.
    pub fn settle(&mut self) {
        self.unsettled = 0;
        if let Some(stage) = &mut self.stage {
            stage();
        }
    }

    /// A loop over a recording begins again: a new session of the venue.
    pub fn new_session(&mut self) {
        self.codec.new_session();
        self.feed.count_pass();
    }

    /// Completes both workers and answers their ends, to be waited for.
    pub fn complete(mut self) -> [crate::worker::Completion; 2] {
        self.quotes.complete();
        self.fills.complete();
        self.settle();
        [self.quotes.completion(), self.fills.completion()]
    }

    fn quote(&mut self, instrument: InstrumentId, quote: Accepted<Quote>) -> bool {
        let index = instrument.index();
        let handle = match self.handles.get(index) {
            Some(&Some(handle)) => handle,
            _ => {
                let Ok(handle) = self.quotes.key(&instrument) else {
                    self.feed.count_refused_dispatch();
                    return true;
                };
                if self.handles.len() <= index {
                    self.handles.resize(index + 1, None);
                }
                self.handles[index] = Some(handle);
                handle
            }
        };
        let mut sent = self.quotes.dispatch_at(handle, quote);
        if let Err(DispatchError::Full(quote)) = sent
            && self.stage.is_some()
        {
            self.settle();
            sent = self.quotes.dispatch_at(handle, quote);
        }
        self.outcome(sent.map(drop))
    }

    fn fill(&mut self, fill: &Fill) -> bool {
        let key = self.volume_keys.intern(fill.account, fill.instrument);
        let (Ok(key), Ok(volume)) = (key, Volume::of(fill)) else {
            self.feed.count_refused_dispatch();
            self.feed.note_problem(format!("a fill could not be folded: {fill:?}"));
            return true;
        };
        let sent = self.fills.dispatch(&key, volume);
        self.outcome(sent)
    }

    /// A worker that has ended ends the feed; any other refusal is counted.
    fn outcome<V>(&self, sent: Result<(), DispatchError<V>>) -> bool {
        match sent {
            Ok(()) => true,
            Err(DispatchError::Closed(..)) => false,
            Err(_) => {
                self.feed.count_refused_dispatch();
                true
            }
        }
    }

    #[cold]
    fn note_problem(&self) {
        if let Some(problem) = self.codec.last_problem() {
            self.feed.note_problem(problem);
        }
    }
}

impl<H> std::fmt::Debug for Intake<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intake").field("feed", &self.feed).finish_non_exhaustive()
    }
}
