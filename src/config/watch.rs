//! Telling when a configuration file may have changed.
//!
//! What is watched are folders, never the file: an editor saves by renaming another file over it,
//! and a watch on the file would stay with the old one. A file behind symlinks is watched at every
//! symlink of the way, because Kubernetes replaces the middle one. Of a folder's events only those
//! about a name on that way count, so that other files in it may change as they like.
//!
//! A thread gathers the signs, waits until it is quiet (at most a cap), *first* watches the way as
//! it is now and *then* says "look": a change during the switch is seen by that look, a later one
//! by the new watch. A slow poll of times and sizes stands behind it, for file systems that tell
//! nothing and for systems that have no watch left to give.
//!
//! A look is a hint, not a promise that something differs: whoever looks compares the content.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::debounce::Debounce;
use super::steps::{Fingerprint, steps};
use crate::clock::Clock;

/// How long a watch waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchTiming {
    /// It looks once there was no sign for this long.
    pub quiet: Duration,
    /// It looks at the latest this long after the first sign.
    pub cap: Duration,
    /// Period of the poll behind the watch.
    pub poll: Duration,
}

impl Default for WatchTiming {
    fn default() -> Self {
        Self {
            quiet: Duration::from_millis(100),
            cap: Duration::from_secs(1),
            poll: Duration::from_secs(1),
        }
    }
}

/// Why a watch could not be started.
#[derive(Debug, thiserror::Error)]
#[error("while starting to watch {}: {source}", file.display())]
pub struct WatchError {
    /// The file.
    pub file: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// A running watch of one file; dropping it ends it.
pub struct Watch {
    shared: Arc<Shared>,
    wake: SyncSender<()>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("trouble", &self.trouble()).finish_non_exhaustive()
    }
}

/// What the callback of the operating system's watch, the thread and the owner share.
#[derive(Default)]
struct Shared {
    /// The names whose events count, and the folders they are in.
    way: Mutex<Vec<PathBuf>>,
    trouble: Mutex<Option<String>>,
    stop: AtomicBool,
}

impl Watch {
    /// Watches `file`, which need not exist; `look` is called on the watch's own thread, once for
    /// each gathered change, and must return promptly.
    ///
    /// Changes made after this has returned are seen. If the operating system gives no watch, the
    /// poll alone sees them, and [`trouble`](Self::trouble) says why.
    ///
    /// # Errors
    ///
    /// The working folder is unknown and `file` relative, or no thread could be started.
    pub fn start(
        file: &Path,
        timing: WatchTiming,
        clock: Clock,
        look: impl FnMut() + Send + 'static,
    ) -> Result<Self, WatchError> {
        let failed = |source| WatchError { file: file.to_owned(), source };
        let file = std::path::absolute(file).map_err(failed)?;
        let shared = Arc::new(Shared::default());
        let (wake, signs) = sync_channel(1);
        let mut follower = Follower::new(&file, shared.clone(), wake.clone());
        follower.follow();
        let seen = Fingerprint::of(&file);
        let shell = Shell { file: file.clone(), timing, clock, shared: shared.clone(), follower };
        let thread = thread::Builder::new()
            .name("config-watch".to_owned())
            .spawn(move || shell.run(&signs, seen, look))
            .map_err(|source| WatchError { file, source })?;
        Ok(Self { shared, wake, thread: Some(thread) })
    }

    /// Why only the poll is at work, if it is so.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Full means that a sign is waiting already, which wakes the thread as well.
        let _ = self.wake.try_send(());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A panic of `look` has been reported where it happened.
            drop(thread.join());
        }
    }
}

/// The thread: waits, gathers, says "look".
struct Shell {
    file: PathBuf,
    timing: WatchTiming,
    clock: Clock,
    shared: Arc<Shared>,
    follower: Follower,
}

impl Shell {
    fn run(mut self, signs: &Receiver<()>, mut seen: Fingerprint, mut look: impl FnMut()) {
        let mut debounce = Debounce::new(self.timing.quiet, self.timing.cap);
        let mut next_poll = self.clock.now() + self.timing.poll;
        loop {
            let until = debounce.due().map_or(next_poll, |due| due.min(next_poll));
            let sign = signs.recv_timeout(until.since(self.clock.now()));
            if self.shared.stop.load(Ordering::Acquire) {
                return;
            }
            let now = self.clock.now();
            match sign {
                Ok(()) => debounce.sign(now),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if now >= next_poll {
                next_poll = now + self.timing.poll;
                let found = Fingerprint::of(&self.file);
                if found != seen {
                    seen = found;
                    debounce.sign(now);
                }
            }
            if debounce.take(now) {
                self.follower.follow();
                seen = Fingerprint::of(&self.file);
                look();
            }
        }
    }
}

/// Keeps the operating system's watch on the folders of the way.
struct Follower {
    file: PathBuf,
    shared: Arc<Shared>,
    watcher: Option<RecommendedWatcher>,
    folders: Vec<PathBuf>,
}

impl Follower {
    fn new(file: &Path, shared: Arc<Shared>, wake: SyncSender<()>) -> Self {
        let seen = shared.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if seen.concerned(&event) {
                // Full means that a sign is waiting already: one is as good as many.
                let _ = wake.try_send(());
            }
        });
        let watcher = match watcher {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                shared.note(Some(error.to_string()));
                None
            }
        };
        Self { file: file.to_owned(), shared, watcher, folders: Vec::new() }
    }

    /// Watches the way as it is now. A folder is taken anew even if its name was watched before,
    /// because another may have taken that name.
    fn follow(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        let mut way = steps(&self.file);
        // The way may change while it is being watched; a few rounds, then the poll has to do.
        for _ in 0..4 {
            for folder in self.folders.drain(..) {
                // The folder may be gone, and its watch with it.
                drop(watcher.unwatch(&folder));
            }
            let mut trouble = None;
            for folder in way.iter().filter_map(|step| step.parent()) {
                if self.folders.iter().any(|watched| watched == folder) {
                    continue;
                }
                match watcher.watch(folder, RecursiveMode::NonRecursive) {
                    Ok(()) => self.folders.push(folder.to_owned()),
                    Err(error) => trouble = Some(error.to_string()),
                }
            }
            self.shared.note(trouble);
            {
                let mut shared = self.shared.way.lock().unwrap_or_else(PoisonError::into_inner);
                shared.clone_from(&way);
            }
            let now = steps(&self.file);
            if now == way {
                return;
            }
            way = now;
        }
    }
}

impl Shared {
    fn note(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    fn concerned(&self, event: &notify::Result<Event>) -> bool {
        let Ok(event) = event else { return true };
        if event.need_rescan() {
            return true;
        }
        let way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let on_the_way = |path: &PathBuf| way.contains(path);
        // A folder that goes or is renamed takes its names with it.
        let a_folder = |path: &PathBuf| way.iter().any(|step| step.parent() == Some(path));
        match event.kind {
            // Reading the file is no change of it: without this a look would cause the next.
            EventKind::Access(kind) => {
                kind == AccessKind::Close(AccessMode::Write) && event.paths.iter().any(on_the_way)
            }
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => {
                event.paths.iter().any(|path| on_the_way(path) || a_folder(path))
            }
            _ => event.paths.iter().any(on_the_way),
        }
    }
}
