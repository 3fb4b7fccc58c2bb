//! Scenario b: one slow reader among fast ones, at 100,000 ticks a second.
//!
//! The slow one subscribes to everything, which is ten times what it reads; the others have fifty
//! instruments each, which the server can well deliver, so that their ages tell of the slow one and
//! not of a busy core.

use super::ages::Ages;
use super::case::{Case, Contender, Outcome};
use super::delivery::{Load, Recorded};
use super::harness::{Role, median};
use super::publisher::Schedule;
use super::scenario_a::Effort;
use super::servers::{Peers, Tidegate};

pub const CASE: &str = "b";

const BYTES_A_SECOND: u64 = 2_000_000;

/// Runs the case; answers it with its closing lines.
pub fn run(effort: Effort, peers: &Peers) -> (Case, Vec<String>) {
    let instruments = 1000;
    let load = Load {
        subscribers: 100,
        instruments,
        own: Some(50),
        slow: Some(BYTES_A_SECOND),
        every_age: false,
        schedule: Schedule::steady(100_000, instruments),
        // The slow one must have its first values behind it.
        warm_up: effort.warm_up.max(std::time::Duration::from_millis(1000)),
        window: 2 * effort.window,
    };
    let without = Load { subscribers: 99, slow: None, ..load.clone() };
    let (settings, flush) = (
        Tidegate::default(),
        Tidegate { subscriber: "confirm = \"flush\"".to_owned(), ..Tidegate::default() },
    );
    let before = settings.before();
    let ours = |load: &Load, settings: &Tidegate| load.ours(settings, &mut Recorded::default());
    let mut contenders = vec![
        Contender { name: "ours", role: Role::Ours, run: Box::new(|| ours(&load, &settings)) },
        Contender {
            name: "ours-without",
            role: Role::Control,
            run: Box::new(|| ours(&without, &settings)),
        },
        Contender { name: "ours-flush", role: Role::Peer, run: Box::new(|| ours(&load, &flush)) },
    ];
    if let Some(before) = &before {
        let run = Box::new(|| ours(&load, before));
        contenders.push(Contender { name: "before", role: Role::Peer, run });
    }
    if peers.has_bun {
        let run = Box::new(|| load.bun(peers));
        contenders.push(Contender { name: "bun", role: Role::Peer, run });
    }
    if peers.has_nats {
        let run = Box::new(|| load.nats(peers));
        contenders.push(Contender { name: "nats", role: Role::Peer, run });
    }
    let case = Case::run(CASE, effort.rounds, contenders);
    case.print();
    print_slow(&case);
    let closing = closing(&case);
    (case, closing)
}

fn print_slow(case: &Case) {
    println!("  the slow reader's quotes, and memory:");
    println!(
        "  {:<18} {:>12} {:>12} {:>12} {:>14} {:>16}",
        "", "age p50 ms", "p99 ms", "looked at", "RSS MiB", "grown by MiB"
    );
    for row in &case.rows {
        let slow = row.ages(|outcome| &outcome.slow);
        let mib = f64::from(1 << 20);
        println!(
            "  {:<18} {:>12.1} {:>12.1} {:>12} {:>14.1} {:>16.2}",
            row.name,
            slow.at(0.5) / 1e6,
            slow.at(0.99) / 1e6,
            slow.len(),
            row.median(|outcome| outcome.resident as f64) / mib,
            row.median(|outcome| outcome.grown) / mib,
        );
    }
}

/// How much fresher the slow reader's quotes are than with others; what it costs the fast ones.
fn closing(case: &Case) -> Vec<String> {
    let age = |name: &str, which: fn(&Outcome) -> &Ages, share: f64| {
        let mut ages: Vec<f64> =
            case.row(name)?.outcomes.iter().map(|outcome| which(outcome).at(share)).collect();
        Some(median(&mut ages)).filter(|age| *age > 0.0)
    };
    let slow: fn(&Outcome) -> &Ages = |outcome| &outcome.slow;
    let fast: fn(&Outcome) -> &Ages = |outcome| &outcome.ages;
    let mut lines = Vec::new();
    for (word, share) in [("p50", 0.5), ("p99", 0.99)] {
        for name in ["ours-flush", "bun", "nats"] {
            if let (Some(ours), Some(theirs)) = (age("ours", slow, share), age(name, slow, share)) {
                lines.push(format!("ratio fanout/b-slow-{word}/{name} {:.2}", theirs / ours));
            }
        }
        if let (Some(with), Some(without)) =
            (age("ours", fast, share), age("ours-without", fast, share))
        {
            lines.push(format!("control fanout/b-others-{word} {:.2}", with / without));
        }
    }
    lines
}
