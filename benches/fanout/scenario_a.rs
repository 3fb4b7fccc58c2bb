//! Scenario a: what a delivered quote costs.

use std::cell::RefCell;
use std::time::Duration;

use super::case::{Case, Contender};
use super::delivery::{Load, Recorded};
use super::harness::Role;
use super::publisher::Schedule;
use super::servers::{Peers, Tidegate};

/// How thoroughly to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    pub rounds: usize,
    pub warm_up: Duration,
    pub window: Duration,
}

impl Effort {
    pub fn of(short: bool) -> Self {
        let (rounds, warm_up, window) = if short { (2, 400, 900) } else { (10, 1000, 3000) };
        let (warm_up, window) = (Duration::from_millis(warm_up), Duration::from_millis(window));
        Self { rounds, warm_up, window }
    }
}

/// The cases: name, subscribers, instruments of each (`None`: all 1,000), ticks a second.
pub const CASES: [(&str, usize, Option<u32>, u64); 12] = [
    ("a-all-sat", 100, None, 0),
    ("a-all-10k", 100, None, 10_000),
    ("a-all-50k", 100, None, 50_000),
    ("a-20-sat", 100, Some(20), 0),
    ("a-20-10k", 100, Some(20), 10_000),
    ("a-20-50k", 100, Some(20), 50_000),
    ("a1000-all-sat", 1000, None, 0),
    ("a1000-all-10k", 1000, None, 10_000),
    ("a1000-all-50k", 1000, None, 50_000),
    ("a1000-20-sat", 1000, Some(20), 0),
    ("a1000-20-10k", 1000, Some(20), 10_000),
    ("a1000-20-50k", 1000, Some(20), 50_000),
];

/// Runs the cases whose names are wanted.
pub fn run(effort: Effort, peers: &Peers, wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, subscribers, own, rate) in CASES {
        if !wanted(name) {
            continue;
        }
        let instruments = 1000;
        let load = Load {
            subscribers,
            instruments,
            own,
            slow: None,
            every_age: false,
            schedule: Schedule::steady(rate, instruments),
            warm_up: effort.warm_up,
            window: effort.window,
        };
        let case = one(name, effort, &load, peers);
        case.print();
        cases.push(case);
    }
    cases
}

fn one(name: &str, effort: Effort, load: &Load, peers: &Peers) -> Case {
    let recorded = RefCell::new(Recorded::default());
    let settings = Tidegate::default();
    let before = settings.before();
    let ours = || load.ours(&settings, &mut recorded.borrow_mut());
    let mut contenders = vec![
        Contender { name: "ours", role: Role::Ours, run: Box::new(ours) },
        Contender {
            name: "control",
            role: Role::Control,
            run: Box::new(|| load.control(&recorded.borrow())),
        },
    ];
    if let Some(before) = &before {
        let run = Box::new(|| load.ours(before, &mut Recorded::default()));
        contenders.push(Contender { name: "before", role: Role::Peer, run });
    }
    let mut peer = |name, run| contenders.push(Contender { name, role: Role::Peer, run });
    let rate = load.schedule.rate;
    // What a server delivers to all is beyond one core of any of them from here on; one that
    // forwards everything then only falls behind.
    let many = load.own.is_none() && load.subscribers > 100;
    if peers.has_bun && !(many && rate > 0) {
        peer("bun", Box::new(|| load.bun(peers)));
    }
    if peers.has_nats && rate > 0 && !many {
        peer("nats", Box::new(|| load.nats(peers)));
    }
    if peers.has_tungstenite && rate > 0 && !many {
        peer("tungstenite-flush", Box::new(|| load.tungstenite(true)));
    }
    if rate == 10_000 && !many {
        if peers.has_nodews {
            peer("nodews", Box::new(|| load.nodews(peers)));
        }
        if peers.has_tungstenite {
            peer("tungstenite-each", Box::new(|| load.tungstenite(false)));
        }
    }
    Case::run(name, effort.rounds, contenders)
}
