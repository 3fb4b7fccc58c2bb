//! Scenario c: from a tick on the feed's connection to its quote at a subscriber.

use std::io;
use std::time::Duration;

use super::ages::Ages;
use super::case::{Case, Contender, Outcome};
use super::delivery::{Load, Recorded};
use super::harness::{Role, median};
use super::publisher::Schedule;
use super::scenario_a::Effort;
use super::servers::{Peers, Tidegate};

/// The cases: name, subscribers, ticks a second, and how far apart they are written.
pub const CASES: [(&str, usize, u64, u64); 6] = [
    ("c-1k", 1, 1_000, 1000),
    ("c-10k", 1, 10_000, 100),
    ("c-100k", 1, 100_000, 100),
    ("c100-1k", 100, 1_000, 1000),
    ("c100-10k", 100, 10_000, 100),
    ("c100-100k", 100, 100_000, 100),
];

const INSTRUMENTS: u32 = 1000;

/// Runs the cases whose names are wanted; answers them with their closing lines.
pub fn run(
    effort: Effort,
    peers: &Peers,
    wanted: impl Fn(&str) -> bool,
) -> Vec<(Case, Vec<String>)> {
    let mut cases = Vec::new();
    for (name, subscribers, rate, step) in CASES {
        if !wanted(name) {
            continue;
        }
        // At a thousand ticks a second a window must be long to hold enough of them.
        let window = if rate < 10_000 { 3 * effort.window } else { effort.window };
        let load = Load {
            subscribers,
            instruments: INSTRUMENTS,
            own: None,
            slow: None,
            every_age: true,
            schedule: Schedule {
                step: Duration::from_micros(step),
                stamp_at_write: true,
                ..Schedule::steady(rate, INSTRUMENTS)
            },
            warm_up: effort.warm_up,
            window,
        };
        let case = one(name, effort, &load, peers);
        case.print();
        let closing = closing(&case);
        cases.push((case, closing));
    }
    cases
}

fn one(name: &str, effort: Effort, load: &Load, peers: &Peers) -> Case {
    let settings = Tidegate::default();
    let before = settings.before();
    // The relay has one subscriber always: it stands for the bare way.
    let alone = Load { subscribers: 1, ..load.clone() };
    let ours = || load.ours(&settings, &mut Recorded::default()).map(last);
    let mut contenders = vec![
        Contender { name: "ours", role: Role::Ours, run: Box::new(ours) },
        Contender { name: "relay", role: Role::Control, run: Box::new(move || alone.relay()) },
    ];
    if let Some(before) = &before {
        let run = || load.ours(before, &mut Recorded::default()).map(last);
        contenders.push(Contender { name: "before", role: Role::Peer, run: Box::new(run) });
    }
    if peers.has_nats {
        let run = || load.nats(peers).map(last);
        contenders.push(Contender { name: "nats", role: Role::Peer, run: Box::new(run) });
    }
    Case::run(name, effort.rounds, contenders)
}

/// Of many subscribers the one served last counts.
fn last(outcome: Outcome) -> Outcome {
    let ages = outcome.last.clone();
    Outcome { ages, ..outcome }
}

/// Ages over ages: the median of the runs' medians, and of their 99.9th hundredths.
fn closing(case: &Case) -> Vec<String> {
    let mut lines = Vec::new();
    let mut samples = Vec::new();
    for (suffix, share) in [("", 0.5), ("-p99.9", 0.999)] {
        let of = |outcomes: &[Outcome]| {
            let mut ages: Vec<f64> = outcomes.iter().map(|o| o.ages.at(share)).collect();
            median(&mut ages)
        };
        let Some(ours) = case.row("ours").map(|row| of(&row.outcomes)) else { return lines };
        for row in &case.rows {
            let theirs = of(&row.outcomes);
            match row.role {
                Role::Ours => {}
                Role::Peer => lines.push(format!(
                    "ratio fanout/{}{suffix}/{} {:.2}",
                    case.name,
                    row.name,
                    theirs / ours
                )),
                Role::Control => {
                    lines.push(format!(
                        "control fanout/{}{suffix} {:.2}",
                        case.name,
                        ours / theirs
                    ));
                }
            }
        }
    }
    for row in &case.rows {
        let ages: Ages = row.ages(|outcome| &outcome.ages);
        samples.push(format!("{} {}", row.name, ages.len()));
    }
    println!("  ages taken: {}", samples.join(", "));
    lines
}

/// Lets this thread and those it starts sleep to the microsecond; without, a sleep may be 50 µs
/// long.
pub fn sleep_exactly() -> io::Result<()> {
    std::fs::write("/proc/self/timerslack_ns", "1000")
}
