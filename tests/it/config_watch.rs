//! Every way of saving a file is seen, and nothing else is.
//!
//! Waits are bounded and generous: a test waits until the watch says "look" and what it then reads
//! is what was saved. The poll behind the watch is put off to an hour, except where it is the
//! subject.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tidegate::clock::Clock;
use tidegate::config::{Reloader, Source, VENUES, Watch, WatchTiming};

const PATIENCE: Duration = Duration::from_secs(20);

const TIMING: WatchTiming = WatchTiming {
    quiet: Duration::from_millis(40),
    cap: Duration::from_millis(400),
    poll: Duration::from_secs(3600),
};

struct Watched {
    folder: PathBuf,
    reloader: Reloader,
    looks: Receiver<()>,
    watch: Watch,
    temporary: Arc<TempDir>,
}

fn text(capacity: u32) -> String {
    let feed = "[[feed]]\nname = \"a\"\nvenue = \"binance\"\nlines = \"-\"\n";
    format!("[subscriber]\ncapacity = {capacity}\n{feed}")
}

fn watch(file: &Path, timing: WatchTiming) -> (Watch, Receiver<()>) {
    let (hint, looks) = sync_channel(1);
    let look = move || {
        let _ = hint.try_send(());
    };
    (Watch::start(file, timing, Clock::system(), look).unwrap(), looks)
}

impl Watched {
    /// `lay` puts a first `t.toml` into the folder.
    fn new(timing: WatchTiming, lay: impl FnOnce(&Path)) -> Self {
        let temporary = Arc::new(tempfile::tempdir().unwrap());
        let folder = temporary.path().join("etc");
        fs::create_dir(&folder).unwrap();
        lay(&folder);
        Self::of(&folder.join("t.toml"), timing, temporary)
    }

    fn of(file: &Path, timing: WatchTiming, temporary: Arc<TempDir>) -> Self {
        let source = Source::file(file, VENUES);
        let content = source.read().unwrap();
        let reloader = Reloader::new(source, content).unwrap();
        let (watch, looks) = watch(file, timing);
        assert_eq!(watch.trouble(), None);
        let folder = file.parent().unwrap().to_owned();
        Self { folder, reloader, looks, watch, temporary }
    }

    fn plain() -> Self {
        Self::new(TIMING, |folder| fs::write(folder.join("t.toml"), text(0)).unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Reloads at each look until this capacity is in effect.
    fn expect(&mut self, capacity: u32) {
        let clock = Clock::system();
        let start = clock.now();
        while self.reloader.effective().subscriber.capacity != capacity {
            let left = PATIENCE.saturating_sub(clock.now().since(start));
            self.looks.recv_timeout(left).expect("the watch says look");
            // A look between two steps of a save may find no file, or half of one.
            let _ = self.reloader.reload_from_source();
        }
    }
}

#[test]
fn b82_a_save_by_rename_is_seen_each_time() {
    let mut watched = Watched::plain();
    for capacity in 1..=3 {
        fs::write(watched.at(".t.toml.swp"), text(capacity)).unwrap();
        fs::rename(watched.at(".t.toml.swp"), watched.at("t.toml")).unwrap();
        watched.expect(capacity);
    }
}

#[test]
fn b82_a_save_in_place_is_seen_each_time() {
    let mut watched = Watched::plain();
    for capacity in 1..=3 {
        fs::write(watched.at("t.toml"), text(capacity)).unwrap();
        watched.expect(capacity);
    }
}

#[test]
fn b82_a_file_that_is_deleted_and_made_again_is_seen_each_time() {
    let mut watched = Watched::plain();
    for capacity in 1..=3 {
        fs::remove_file(watched.at("t.toml")).unwrap();
        watched.looks.recv_timeout(PATIENCE).expect("the deletion is seen");
        watched.reloader.reload_from_source().unwrap_err();
        fs::write(watched.at("t.toml"), text(capacity)).unwrap();
        watched.expect(capacity);
    }
}

#[test]
fn b82_a_file_that_is_moved_away_and_back_is_seen_each_time() {
    let mut watched = Watched::plain();
    for capacity in 1..=3 {
        fs::rename(watched.at("t.toml"), watched.at("away")).unwrap();
        fs::write(watched.at("away"), text(capacity)).unwrap();
        fs::rename(watched.at("away"), watched.at("t.toml")).unwrap();
        watched.expect(capacity);
    }
}

#[test]
fn b82_a_folder_that_is_replaced_is_followed() {
    let mut watched = Watched::plain();
    let next = watched.folder.with_file_name("next");
    let remove = |folder: &Path| fs::remove_dir_all(folder).unwrap();
    let move_away = |folder: &Path| fs::rename(folder, folder.with_file_name("old")).unwrap();
    for (capacity, make_room) in [(1, &remove as &dyn Fn(&Path)), (3, &move_away)] {
        fs::create_dir(&next).unwrap();
        fs::write(next.join("t.toml"), text(capacity)).unwrap();
        make_room(&watched.folder);
        fs::rename(&next, &watched.folder).unwrap();
        watched.expect(capacity);
        fs::write(watched.at("t.toml"), text(capacity + 1)).unwrap();
        watched.expect(capacity + 1);
    }
}

#[cfg(unix)]
#[test]
fn b83_a_swap_of_the_symlink_in_the_middle_is_seen_each_time() {
    use std::os::unix::fs::symlink;
    let version = |folder: &Path, at: u32| {
        let version = folder.join(format!("..v{at}"));
        fs::create_dir(&version).unwrap();
        fs::write(version.join("t.toml"), text(at)).unwrap();
    };
    let mut watched = Watched::new(TIMING, |folder| {
        version(folder, 0);
        symlink("..v0", folder.join("..data")).unwrap();
        symlink("..data/t.toml", folder.join("t.toml")).unwrap();
    });
    for at in 1..=3 {
        version(&watched.folder, at);
        symlink(format!("..v{at}"), watched.at("..data_tmp")).unwrap();
        fs::rename(watched.at("..data_tmp"), watched.at("..data")).unwrap();
        fs::remove_dir_all(watched.at(&format!("..v{}", at - 1))).unwrap();
        watched.expect(at);
    }
    // The last target is watched too, though it did not exist at the start.
    fs::write(watched.at("..v3/t.toml"), text(9)).unwrap();
    watched.expect(9);
}

#[cfg(unix)]
#[test]
fn b83_a_target_in_another_folder_is_watched() {
    use std::os::unix::fs::symlink;
    let mut watched = Watched::new(TIMING, |folder| {
        let elsewhere = folder.with_file_name("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("real"), text(0)).unwrap();
        symlink(elsewhere.join("real"), folder.join("t.toml")).unwrap();
    });
    let target = watched.folder.with_file_name("elsewhere");
    for capacity in 1..=3 {
        fs::write(target.join("tmp"), text(capacity)).unwrap();
        fs::rename(target.join("tmp"), target.join("real")).unwrap();
        watched.expect(capacity);
    }
}

#[test]
fn b90_two_files_saved_together_are_both_seen_while_a_third_is_written_all_the_time() {
    let mut one = Watched::plain();
    fs::write(one.at("other.toml"), text(0)).unwrap();
    let mut other = Watched::of(&one.at("other.toml"), TIMING, one.temporary.clone());
    let noise = one.at("noise.log");
    let (stop, stopped) = sync_channel::<()>(0);
    let noisy = thread::spawn(move || {
        let mut written = 0u32;
        while stopped.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
            written += 1;
            fs::write(&noise, written.to_string()).unwrap();
        }
        written
    });
    for capacity in 1..=3 {
        fs::write(one.at("t.toml"), text(capacity)).unwrap();
        fs::write(one.at("other.toml"), text(capacity)).unwrap();
        one.expect(capacity);
        other.expect(capacity);
    }
    drop(stop);
    assert!(noisy.join().unwrap() > 0);
}

#[test]
fn b90_a_file_that_is_saved_without_pause_is_seen_by_the_cap() {
    let mut watched = Watched::plain();
    let file = watched.at("t.toml");
    let (stop, stopped) = sync_channel::<()>(0);
    let saver = thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
            fs::write(file.with_extension("tmp"), text(5)).unwrap();
            fs::rename(file.with_extension("tmp"), &file).unwrap();
        }
    });
    watched.expect(5);
    watched.looks.recv_timeout(PATIENCE).expect("and again");
    drop(stop);
    saver.join().unwrap();
}

#[test]
fn other_files_and_reading_the_file_cause_no_look() {
    let watched = Watched::plain();
    for round in 0..20 {
        fs::write(watched.at("t.toml.bak"), round.to_string()).unwrap();
        fs::read(watched.at("t.toml")).unwrap();
    }
    // What is asserted is an absence, so this waits several times longer than a look would take.
    let silence = TIMING.cap + Duration::from_millis(200);
    assert_eq!(watched.looks.recv_timeout(silence), Err(RecvTimeoutError::Timeout));
}

/// Written through a second name of the same file, a change is told to the other folder alone.
#[cfg(unix)]
#[test]
fn the_poll_sees_what_no_watch_tells() {
    let save_elsewhere = |watched: &Watched, capacity| {
        let other_name = watched.folder.with_file_name("other-name");
        if !other_name.exists() {
            fs::hard_link(watched.at("t.toml"), &other_name).unwrap();
        }
        fs::write(other_name, text(capacity)).unwrap();
    };
    let timing = WatchTiming { poll: Duration::from_millis(20), ..TIMING };
    let mut watched =
        Watched::new(timing, |folder| fs::write(folder.join("t.toml"), text(0)).unwrap());
    for capacity in [10, 200, 3000] {
        save_elsewhere(&watched, capacity);
        watched.expect(capacity);
    }
}

#[test]
fn a_file_whose_folders_are_yet_to_be_made_is_seen() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("a/b/t.toml");
    let (watch, looks) = watch(&file, TIMING);
    assert_eq!(watch.trouble(), None);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    looks.recv_timeout(PATIENCE).expect("the folder is seen");
    while looks.recv_timeout(TIMING.cap).is_ok() {}
    fs::write(&file, text(1)).unwrap();
    looks.recv_timeout(PATIENCE).expect("the file is seen");
}

#[test]
fn a_dropped_watch_says_no_more() {
    let watched = Watched::plain();
    let Watched { folder, looks, watch, temporary: _temporary, .. } = watched;
    drop(watch);
    fs::write(folder.join("t.toml"), text(1)).unwrap();
    assert_eq!(looks.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
}
