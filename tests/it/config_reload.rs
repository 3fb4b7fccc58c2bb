//! A running program keeps its last good settings, whatever is saved.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tidegate::config::{Key, Part, PartError, Reloader, Settings, Source, VENUES};

/// The hot values that the random files set, and one that needs a restart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Values {
    pub(crate) capacity: u32,
    pub(crate) max_hz: u32,
    pub(crate) max_subscribers: u32,
    pub(crate) pace_us: u64,
    pub(crate) port: u16,
}

impl Values {
    pub(crate) fn random(random: &mut StdRng) -> Self {
        Self {
            capacity: random.random_range(0..5),
            max_hz: random.random_range(0..3),
            max_subscribers: random.random_range(0..3),
            pace_us: random.random_range(0..3),
            port: random.random_range(9010..9012),
        }
    }

    pub(crate) fn text(&self) -> String {
        let Self { capacity, max_hz, max_subscribers, pace_us, port } = self;
        format!(
            "[gateway]\nlisten = \"127.0.0.1:{port}\"\nmax_subscribers = {max_subscribers}\n\
             pace = \"{pace_us}us\"\n[subscriber]\ncapacity = {capacity}\nmax_hz = {max_hz}\n\
             [admin]\nlisten = \"127.0.0.1:9099\"\n\
             [[feed]]\nname = \"a\"\nvenue = \"binance\"\nrecording = [\"a.zst\"]\n\
             [[feed]]\nname = \"b\"\nvenue = \"binance-cm\"\nlines = \"-\"\n"
        )
    }

    fn of(settings: &Settings) -> Self {
        Self {
            capacity: settings.subscriber.capacity,
            max_hz: settings.subscriber.max_hz,
            max_subscribers: settings.gateway.max_subscribers,
            pace_us: u64::try_from(settings.gateway.pace.as_micros()).unwrap(),
            port: settings.gateway.listen.port(),
        }
    }

    /// What is in effect after `file` follows `loaded`.
    fn after(self, loaded: &Self, file: &Self) -> Self {
        fn take<T: PartialEq>(running: T, loaded: T, file: T) -> T {
            if loaded == file { running } else { file }
        }
        Self {
            capacity: take(self.capacity, loaded.capacity, file.capacity),
            max_hz: take(self.max_hz, loaded.max_hz, file.max_hz),
            max_subscribers: take(
                self.max_subscribers,
                loaded.max_subscribers,
                file.max_subscribers,
            ),
            pace_us: take(self.pace_us, loaded.pace_us, file.pace_us),
            port: self.port,
        }
    }
}

pub(crate) type Spoil = fn(&str, &mut StdRng) -> io::Result<Vec<u8>>;

fn text(text: impl Into<String>) -> io::Result<Vec<u8>> {
    Ok(text.into().into_bytes())
}

fn line(good: &str, from: &str, to: &str) -> io::Result<Vec<u8>> {
    assert!(good.contains(from), "{from} is in {good}");
    text(good.replacen(from, to, 1))
}

fn add(good: &str, section: &str, added: &str) -> io::Result<Vec<u8>> {
    line(good, section, &format!("{section}\n{added}"))
}

/// Everything that somebody has saved over a good file.
pub(crate) const BAD: &[(&str, Spoil)] = &[
    ("empty", |_, _| text("")),
    ("blank", |_, _| text("\n \n")),
    ("comments only", |good, _| text(good.lines().map(|l| format!("# {l}\n")).collect::<String>())),
    ("not text", |good, _| Ok([good.as_bytes(), b"# \xff\n"].concat())),
    ("zeros", |good, _| Ok(vec![0; good.len()])),
    ("too large", |_, _| Err(io::ErrorKind::FileTooLarge.into())),
    ("not there", |_, _| Err(io::ErrorKind::NotFound.into())),
    ("not readable", |_, _| Err(io::ErrorKind::PermissionDenied.into())),
    ("cut before its feeds", |good, random| {
        let end = good.find("[[feed]]").unwrap();
        text(&good[..random.random_range(0..end)])
    }),
    ("good half, then rubbish", |good, random| {
        text(format!("{}\n= rubbish\n", &good[..random.random_range(1..good.len())]))
    }),
    ("merge conflict", |good, _| text(format!("<<<<<<< HEAD\n{good}"))),
    ("other format", |_, _| text("{\"subscriber\": {\"capacity\": 1}}")),
    ("open bracket", |good, _| line(good, "[subscriber]", "[subscriber")),
    ("open quote", |good, _| line(good, "us\"", "us")),
    ("no value", |good, _| add(good, "[subscriber]", "max_ops_per_s =")),
    ("no quotes", |good, _| add(good, "[subscriber]", "stall_timeout = 30s")),
    ("key twice", |good, _| add(good, "[subscriber]", "capacity = 1")),
    ("section twice", |good, _| text(format!("{good}[subscriber]\n"))),
    ("unknown key", |good, _| add(good, "[subscriber]", "capcity = 1")),
    ("unknown section", |good, _| text(format!("{good}[subscribers]\n"))),
    ("key of another section", |good, _| add(good, "[admin]", "capacity = 1")),
    ("text for a number", |good, _| add(good, "[subscriber]", "max_ops_per_s = \"9\"")),
    ("fraction for a number", |good, _| add(good, "[gateway]", "shards = 1.0")),
    ("number for a text", |good, _| add(good, "[subscriber]", "confirm = 1")),
    ("section for a number", |good, _| add(good, "[subscriber]", "max_ops_per_s.a = 1")),
    ("number for a section", |good, _| {
        line(good, "[admin]\nlisten = \"127.0.0.1:9099\"\n", "[x]\n")
            .map(|rest| [b"admin = 3\n", rest.as_slice()].concat())
    }),
    ("below its range", |good, _| add(good, "[gateway]", "max_known_accounts = 0")),
    ("negative", |good, _| add(good, "[gateway]", "shards = -1")),
    ("above its range", |good, _| add(good, "[subscriber]", "max_batch_bytes = 999999999")),
    ("huge", |good, _| add(good, "[gateway]", "shards = 99999999999999999999999")),
    ("duration without unit", |good, _| add(good, "[gateway]", "heartbeat = \"20\"")),
    ("negative duration", |good, _| add(good, "[gateway]", "heartbeat = \"-20s\"")),
    ("unknown choice", |good, _| add(good, "[subscriber]", "confirm = \"never\"")),
    ("no address", |good, _| line(good, "127.0.0.1:9099", "127.0.0.1")),
    ("one address twice", |good, _| {
        let port = if good.contains(":9010") { "9010" } else { "9011" };
        line(good, "9099", port)
    }),
    ("feed without name", |good, _| line(good, "name = \"b\"\n", "")),
    ("feed without venue", |good, _| line(good, "venue = \"binance-cm\"\n", "")),
    ("feed of an unknown venue", |good, _| line(good, "binance-cm", "binance-xm")),
    ("two feeds of one name", |good, _| line(good, "\"b\"", "\"a\"")),
    ("feed with two inputs", |good, _| text(format!("{good}recording = [\"b.zst\"]\n"))),
    ("feed without input", |good, _| line(good, "lines = \"-\"\n", "")),
    ("feeds in single brackets", |good, _| text(good.replace("[[feed]]", "[feed]"))),
    ("no feeds", |good, _| text(&good[..good.find("[[feed]]").unwrap()])),
    ("feed with a wrong speed", |good, _| text(format!("{good}speed = nan\n"))),
];

/// A part that keeps what it is told; on demand, it refuses.
#[derive(Clone)]
struct Mirror {
    name: &'static str,
    settings: Arc<Mutex<Settings>>,
    refuse: Arc<Mutex<bool>>,
}

impl Part for Mirror {
    fn name(&self) -> &str {
        self.name
    }

    fn apply(&self, old: &Settings, new: &Settings, changed: &[Key]) -> Result<(), PartError> {
        if *self.refuse.lock().unwrap() {
            return Err("told to refuse".into());
        }
        assert!(!changed.is_empty());
        let mut settings = self.settings.lock().unwrap();
        assert_eq!(&*settings, old, "{} is told of every change", self.name);
        settings.clone_from(new);
        Ok(())
    }
}

struct Program {
    reloader: Reloader,
    parts: Vec<Mirror>,
}

impl Program {
    fn start(text: String) -> Self {
        let source = Source::file("t.toml", VENUES);
        let mut reloader = Reloader::new(source, text.into_bytes()).unwrap();
        let parts: Vec<_> = ["admission", "shards", "limits"]
            .into_iter()
            .map(|name| Mirror {
                name,
                settings: Arc::new(Mutex::new(reloader.effective().clone())),
                refuse: Arc::new(Mutex::new(false)),
            })
            .collect();
        for part in &parts {
            reloader.add_part(part.clone());
        }
        Self { reloader, parts }
    }

    fn agree(&self) {
        for part in &self.parts {
            assert_eq!(&*part.settings.lock().unwrap(), self.reloader.effective(), "{}", part.name);
        }
    }
}

#[test]
fn b85_a_thousand_reloads_half_of_them_bad_leave_the_last_good_settings_in_effect() {
    let mut random = StdRng::seed_from_u64(85);
    let mut loaded = Values::random(&mut random);
    let mut running = loaded;
    let mut program = Program::start(loaded.text());
    let (mut taken, mut refused) = (0, 0);
    for round in 0..1_000 {
        if random.random_ratio(1, 10) {
            running.capacity = random.random_range(0..5);
            let change = json!({"capacity": running.capacity});
            program.reloader.retune(change.as_object().unwrap()).unwrap();
        }
        let file = Values::random(&mut random);
        let before = program.reloader.effective().clone();
        if round % 2 == 0 {
            let (kind, spoil) = BAD[round / 2 % BAD.len()];
            let content = spoil(&file.text(), &mut random);
            let error = program.reloader.reload(content).expect_err(kind);
            assert!(!error.errors().is_empty() && !error.to_string().is_empty(), "{kind}");
            assert_eq!(program.reloader.effective(), &before, "{kind}");
            refused += 1;
        } else if random.random_ratio(1, 4) {
            // A good file, and one of the parts refuses it.
            let part = &program.parts[random.random_range(0..program.parts.len())];
            *part.refuse.lock().unwrap() = true;
            let expected = running.after(&loaded, &file);
            let result = program.reloader.reload(text(file.text()));
            *part.refuse.lock().unwrap() = false;
            match result {
                Err(error) => assert_eq!(error.kind(), "part"),
                // Nothing that is hot differs from the last loaded file, so no part is asked.
                Ok(report) => {
                    assert!(report.applied.is_empty());
                    assert_eq!(expected, running);
                    loaded = file;
                }
            }
            assert_eq!(program.reloader.effective(), &before);
        } else {
            let report = program.reloader.reload(text(file.text())).unwrap();
            let waits = report.needs_restart.iter().any(|key| *key == "gateway.listen");
            assert_eq!(waits, file.port != running.port);
            running = running.after(&loaded, &file);
            loaded = file;
            taken += 1;
        }
        assert_eq!(Values::of(program.reloader.effective()), running, "round {round}");
        assert_eq!(Values::of(program.reloader.loaded()), loaded, "round {round}");
        program.agree();
    }
    assert_eq!(refused, 500);
    assert!(taken > 300, "{taken}");
}

#[test]
fn b85_every_kind_of_bad_file_names_its_key_or_its_line() {
    let good = Values { capacity: 1, max_hz: 0, max_subscribers: 1, pace_us: 1, port: 9010 };
    let mut random = StdRng::seed_from_u64(1);
    assert!(BAD.len() >= 20);
    for (kind, spoil) in BAD {
        let mut program = Program::start(Values { capacity: 4, ..good }.text());
        let before = program.reloader.effective().clone();
        let error = program.reloader.reload(spoil(&good.text(), &mut random)).expect_err(kind);
        for problem in error.errors() {
            let placed = problem.line.is_some();
            assert!(placed || error.kind() == "unreadable", "{kind}: {problem}");
        }
        assert_eq!(program.reloader.effective(), &before, "{kind}");
        assert_eq!(program.reloader.loaded(), &before, "{kind}");
        program.agree();
    }
}

/// A file whose feeds stand last, as in the shipped ones, may be read while it is being written.
#[test]
fn a_file_cut_at_any_byte_changes_all_of_its_hot_keys_or_none() {
    let written = include_str!("../../config/example.toml");
    let old = "[[feed]]\nname = \"spot\"\nvenue = \"binance\"\nlines = \"-\"\n".to_owned();
    let mut whole = Program::start(old.clone());
    let complete = whole.reloader.reload(text(written)).unwrap().applied;
    assert!(complete.len() > 4);
    let mut program = Program::start(old.clone());
    let before = program.reloader.effective().clone();
    let mut accepted = 0;
    for end in 0..written.len() {
        match program.reloader.reload(Ok(written.as_bytes()[..end].to_vec())) {
            Err(_) => assert_eq!(program.reloader.effective(), &before, "cut at {end}"),
            Ok(report) => {
                assert_eq!(report.applied, complete, "cut at {end}");
                assert_eq!(program.reloader.effective(), whole.reloader.effective());
                program = Program::start(old.clone());
                accepted += 1;
            }
        }
        program.agree();
    }
    assert!(accepted < written.len() / 2, "{accepted}");
}

#[test]
fn each_apply_step_made_to_fail_in_turn_leaves_the_old_state() {
    let old = Values { capacity: 8, max_hz: 0, max_subscribers: 2, pace_us: 1, port: 9010 };
    let new = Values { capacity: 1, max_hz: 9, max_subscribers: 1, pace_us: 2, port: 9011 };
    for at in 0..3 {
        let mut program = Program::start(old.text());
        let before = program.reloader.effective().clone();
        *program.parts[at].refuse.lock().unwrap() = true;
        let error = program.reloader.reload(text(new.text())).unwrap_err();
        assert!(error.to_string().contains(program.parts[at].name), "{error}");
        assert_eq!(program.reloader.effective(), &before);
        program.agree();
        *program.parts[at].refuse.lock().unwrap() = false;
        let report = program.reloader.reload(text(new.text())).unwrap();
        assert_eq!(report.applied.len(), 4);
        assert_eq!(
            serde_json::to_value(&report).unwrap()["needs_restart"],
            json!(["gateway.listen"])
        );
        assert_eq!(program.reloader.effective().gateway.pace, Duration::from_micros(2));
        program.agree();
    }
}
