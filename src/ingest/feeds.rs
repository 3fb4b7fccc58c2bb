//! What is known of every feed: its name, its venue, its health, its figures.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::feed::{RecordFigures, ReplayControl, Tally};
use crate::market::health::{Health, StaleReason};
use crate::market::{FeedId, Health as FeedHealth};
use crate::venue::{Class, Oddities, Oddity};
use crate::worker::{Counters, WorkerQueue};

/// Called whenever a feed's health has changed.
pub type OnChange = Box<dyn Fn() + Send + Sync>;

/// Every feed of the configuration, in its order.
pub struct Feeds {
    feeds: Box<[Arc<Feed>]>,
    /// Counts changes of health over all feeds.
    version: Arc<AtomicU64>,
    on_change: Arc<OnceLock<OnChange>>,
}

impl Feeds {
    /// Feeds by name and venue; `now` is the wall time in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn new(feeds: impl IntoIterator<Item = (String, String)>, now: i64) -> Self {
        let version = Arc::new(AtomicU64::new(1));
        let on_change = Arc::new(OnceLock::new());
        let feeds = feeds
            .into_iter()
            .zip(0_u16..)
            .map(|((name, venue), id)| {
                let changes = Changes { version: version.clone(), on_change: on_change.clone() };
                Arc::new(Feed::new(FeedId(id), name, venue, now, changes))
            })
            .collect();
        Self { feeds, version, on_change }
    }

    /// Sets what is called when a feed's health changes; once.
    pub fn on_change(&self, call: OnChange) {
        let _ = self.on_change.set(call);
    }

    /// How many feeds there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.feeds.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }

    /// Every feed's id.
    pub fn ids(&self) -> impl Iterator<Item = FeedId> + use<> {
        #[expect(clippy::cast_possible_truncation, reason = "numbered in 16 bits when made")]
        let count = self.feeds.len() as u16;
        (0..count).map(FeedId)
    }

    /// Every feed.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Feed>> {
        self.feeds.iter()
    }

    /// The feed of an id from this list.
    ///
    /// # Panics
    ///
    /// Not for an id that this list gave.
    #[must_use]
    pub fn get(&self, id: FeedId) -> &Arc<Feed> {
        &self.feeds[id.index()]
    }

    /// The feeds of a venue.
    pub fn of_venue<'a>(&'a self, venue: &'a str) -> impl Iterator<Item = FeedId> + 'a {
        self.feeds.iter().filter(move |feed| feed.venue == venue).map(|feed| feed.id)
    }

    /// Starts the feeds of a venue that wait for a first subscriber.
    pub fn want(&self, venue: &str) {
        for feed in self.feeds.iter().filter(|feed| feed.venue == venue) {
            feed.want();
        }
    }

    /// Changes whenever a feed's health does.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for Feeds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.feeds.iter().map(|feed| &feed.name)).finish()
    }
}

struct Changes {
    version: Arc<AtomicU64>,
    on_change: Arc<OnceLock<OnChange>>,
}

/// One feed, as everybody but its own thread sees it.
pub struct Feed {
    id: FeedId,
    name: String,
    venue: String,
    health: Mutex<(FeedHealth, i64)>,
    health_version: AtomicU64,
    changes: Changes,
    wanted: (Mutex<bool>, Condvar),
    classes: Box<[AtomicU64]>,
    oddities: Box<[AtomicU64]>,
    passes: AtomicU64,
    reconnects: AtomicU64,
    refused_dispatches: AtomicU64,
    tally: Mutex<Tally>,
    damaged: AtomicBool,
    problem: Mutex<Option<String>>,
    workers: OnceLock<Workers>,
    record: OnceLock<Arc<RecordFigures>>,
    replay: OnceLock<ReplayControl>,
}

struct Workers {
    quotes: WorkerQueue,
    fills: WorkerQueue,
}

/// A feed's figures at one moment.
#[derive(Clone, Debug)]
pub struct FeedFigures {
    /// Messages by class, in the order of [`Class::all`].
    pub classes: Vec<(Class, u64)>,
    /// Oddities of accepted messages.
    pub oddities: Vec<(Oddity, u64)>,
    /// What the reader of the source counted: lines, records, bad lines.
    pub tally: Tally,
    /// Passes over a recording that came after the first.
    pub passes: u64,
    /// Connections made after the first.
    pub reconnects: u64,
    /// Decoded events that a worker refused.
    pub refused_dispatches: u64,
    /// Whether a recording was found damaged.
    pub damaged: bool,
    /// What the last refused message or other problem said.
    pub problem: Option<String>,
    /// The quotes' conflation worker.
    pub quotes: Counters,
    /// The fills' coalescing worker.
    pub fills: Counters,
    /// Keys pending in the quotes' worker, and how many fit.
    pub quotes_queue: (usize, usize),
    /// Keys pending in the fills' worker, and how many fit.
    pub fills_queue: (usize, usize),
}

impl Feed {
    fn new(id: FeedId, name: String, venue: String, now: i64, changes: Changes) -> Self {
        let zeroes = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            id,
            name,
            venue,
            health: Mutex::new((Health::Stale(StaleReason::Starting), now)),
            health_version: AtomicU64::new(1),
            changes,
            wanted: (Mutex::new(false), Condvar::new()),
            classes: zeroes(Class::COUNT),
            oddities: zeroes(Oddity::ALL.len()),
            passes: AtomicU64::new(0),
            reconnects: AtomicU64::new(0),
            refused_dispatches: AtomicU64::new(0),
            tally: Mutex::default(),
            damaged: AtomicBool::new(false),
            problem: Mutex::default(),
            workers: OnceLock::new(),
            record: OnceLock::new(),
            replay: OnceLock::new(),
        }
    }

    /// The feed's number.
    #[must_use]
    pub fn id(&self) -> FeedId {
        self.id
    }

    /// The feed's name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The venue whose messages it carries.
    #[must_use]
    pub fn venue(&self) -> &str {
        &self.venue
    }

    /// Its health, and since when, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn health(&self) -> (Health, i64) {
        *self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes whenever the health does.
    #[must_use]
    pub fn health_version(&self) -> u64 {
        self.health_version.load(Ordering::Acquire)
    }

    /// Sets the health as of `now`; the same health again changes nothing.
    pub fn set_health(&self, health: Health, now: i64) {
        {
            let mut held = self.health.lock().unwrap_or_else(PoisonError::into_inner);
            if held.0 == health {
                return;
            }
            *held = (health, now);
        }
        self.health_version.fetch_add(1, Ordering::Release);
        self.changes.version.fetch_add(1, Ordering::Release);
        tracing::info!(
            feed = self.name,
            health = health.as_str(),
            reason = health.reason(),
            "the health of a feed has changed"
        );
        if let Some(call) = self.changes.on_change.get() {
            call();
        }
    }

    /// Somebody has subscribed to the feed's venue.
    pub fn want(&self) {
        let mut wanted = self.wanted.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *wanted, true) {
            self.wanted.1.notify_all();
        }
    }

    /// Waits at most `timeout` for a first subscriber; answers whether there was one.
    #[must_use]
    pub fn wait_wanted(&self, timeout: Duration) -> bool {
        let wanted = self.wanted.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.wanted.1.wait_timeout_while(wanted, timeout, |wanted| !*wanted);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn count(&self, class: Class, oddities: Oddities) {
        self.classes[class.index()].fetch_add(1, Ordering::Relaxed);
        for oddity in oddities.iter() {
            self.oddities[oddity.index()].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Messages of one class so far.
    #[must_use]
    pub fn counted(&self, class: Class) -> u64 {
        self.classes[class.index()].load(Ordering::Acquire)
    }

    pub(crate) fn count_refused_dispatch(&self) {
        self.refused_dispatches.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_pass(&self) {
        self.passes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_reconnect(&self) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_damage(&self, problem: String) {
        self.damaged.store(true, Ordering::Relaxed);
        self.note_problem(problem);
    }

    pub(crate) fn note_problem(&self, problem: String) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
    }

    pub(crate) fn note_tally(&self, tally: Tally) {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = tally;
    }

    /// What its recorder has done, if it has one.
    #[must_use]
    pub fn record_figures(&self) -> Option<&RecordFigures> {
        self.record.get().map(|figures| &**figures)
    }

    pub(super) fn set_record_figures(&self, figures: Arc<RecordFigures>) {
        let _ = self.record.set(figures);
    }

    /// The hand on its replay, if it plays recordings.
    #[must_use]
    pub fn replay(&self) -> Option<&ReplayControl> {
        self.replay.get()
    }

    /// Sets by what its replay is moved; once. Feeds of one replay all get the same.
    pub fn set_replay(&self, control: ReplayControl) {
        let _ = self.replay.set(control);
    }

    pub(crate) fn set_workers(&self, quotes: WorkerQueue, fills: WorkerQueue) {
        let _ = self.workers.set(Workers { quotes, fills });
    }

    /// The feed's figures now.
    #[must_use]
    pub fn figures(&self) -> FeedFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let workers = self.workers.get();
        FeedFigures {
            classes: Class::all().map(|class| (class, self.counted(class))).collect(),
            oddities: Oddity::ALL
                .iter()
                .map(|&oddity| (oddity, read(&self.oddities[oddity.index()])))
                .collect(),
            tally: *self.tally.lock().unwrap_or_else(PoisonError::into_inner),
            passes: read(&self.passes),
            reconnects: read(&self.reconnects),
            refused_dispatches: read(&self.refused_dispatches),
            damaged: self.damaged.load(Ordering::Relaxed),
            problem: self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            quotes: workers.map(|w| w.quotes.counters()).unwrap_or_default(),
            fills: workers.map(|w| w.fills.counters()).unwrap_or_default(),
            quotes_queue: workers.map_or((0, 0), |w| (w.quotes.queued(), w.quotes.capacity())),
            fills_queue: workers.map_or((0, 0), |w| (w.fills.queued(), w.fills.capacity())),
        }
    }
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("name", &self.name).finish_non_exhaustive()
    }
}
