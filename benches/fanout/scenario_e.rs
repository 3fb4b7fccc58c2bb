//! Scenario e: how the cost grows, at an equal rate of delivered quotes, and what a tick costs that
//! is conflated away.
//!
//! | cases | what grows | what stays |
//! |---|---|---|
//! | `e-instruments-N` | instruments, and with them those of each subscriber | 100 subscribers; 5 of them want each instrument; 20,000 ticks and 100,000 quotes a second; so the same batches |
//! | `e-subscribers-N` | subscribers, and instruments with them | 20 instruments each; 2 subscribers want each; 10,000 ticks and 20,000 quotes a second |
//! | `e-own-N` | instruments of each of 100 subscribers, of 1,000 in all | 20,000 quotes a second, so ever fewer ticks |
//! | `e-conflated-N` | subscribers, each of all of 100 instruments once a second | 300,000 ticks a second |

use std::hint::black_box;

use super::case::{Case, Contender, Outcome};
use super::clock;
use super::delivery::{Load, Recorded};
use super::harness::{Role, median};
use super::publisher::{Schedule, Walk};
use super::scenario_a::Effort;
use super::servers::Tidegate;

/// A case: its name, subscribers, instruments, instruments of each, ticks a second.
struct Step(String, usize, u32, Option<u32>, u64);

/// Runs the cases whose names are wanted; answers them with their closing lines.
pub fn run(effort: Effort, wanted: impl Fn(&str) -> bool) -> Vec<(Case, Vec<String>)> {
    let step = |family: &str, n, subscribers, instruments, own, rate| {
        Step(format!("e-{family}-{n}"), subscribers, instruments, own, rate)
    };
    let mut families: Vec<(&str, Vec<Step>)> = Vec::new();
    let numbers = [100, 1_000, 10_000, 100_000];
    let steps = numbers.map(|n| step("instruments", n, 100, n, Some(n / 20), 20_000));
    families.push(("e-instruments", steps.into()));
    let numbers = [10_u32, 100, 1_000, 5_000];
    let steps = numbers.map(|n| step("subscribers", n, n as usize, n * 10, Some(20), 10_000));
    families.push(("e-subscribers", steps.into()));
    let numbers = [1_u32, 10, 100, 1_000];
    let steps = numbers.map(|n| step("own", n, 100, 1_000, Some(n), 200_000 / u64::from(n)));
    families.push(("e-own", steps.into()));
    let mut finished = Vec::new();
    for (family, steps) in families {
        let steps: Vec<Step> =
            steps.into_iter().filter(|s| wanted(family) || wanted(&s.0)).collect();
        if !steps.is_empty() {
            finished.push(growth(family, effort, &steps));
        }
    }
    let numbers = [1_usize, 100, 1_000];
    let all =
        numbers.map(|n| step("conflated", u32::try_from(n).unwrap_or(0), n, 100, None, 300_000));
    let steps =
        all.into_iter().filter(|s| wanted("e-conflated") || wanted(&s.0)).collect::<Vec<_>>();
    if !steps.is_empty() {
        finished.push(conflated(effort, &steps));
    }
    finished
}

fn load(step: &Step, effort: Effort) -> Load {
    let &Step(_, subscribers, instruments, own, rate) = step;
    Load {
        subscribers,
        instruments,
        own,
        slow: None,
        every_age: false,
        schedule: Schedule::steady(rate, instruments),
        warm_up: effort.warm_up,
        window: effort.window,
    }
}

/// Room for whatever the steps ask for.
fn roomy(max_hz: u32) -> Tidegate {
    Tidegate {
        gateway: "max_known_instruments = 200000".to_owned(),
        subscriber: format!("max_instruments = 100000\nmax_ops_per_s = 10000\nmax_hz = {max_hz}"),
        ..Tidegate::default()
    }
}

fn growth(family: &str, effort: Effort, steps: &[Step]) -> (Case, Vec<String>) {
    let settings = roomy(0);
    let names: Vec<&'static str> =
        steps.iter().map(|step| &*Box::leak(step.0.clone().into_boxed_str())).collect();
    let contender = |(step, name): (&Step, &&'static str)| {
        let (load, settings) = (load(step, effort), &settings);
        Contender {
            name,
            role: Role::Peer,
            run: Box::new(move || load.ours(settings, &mut Recorded::default())),
        }
    };
    let contenders = steps.iter().zip(&names).map(contender).collect();
    let case = Case::run(family, effort.rounds, contenders);
    case.print();
    let cost = |row: usize| case.rows[row].median(|outcome| outcome.whole);
    let closing = if case.rows.len() > 1 {
        vec![format!("control fanout/{family} {:.2}", cost(case.rows.len() - 1) / cost(0))]
    } else {
        Vec::new()
    };
    (case, closing)
}

/// Ticks that nobody is sent: what each costs the whole process, beside its reading by serde_json.
fn conflated(effort: Effort, steps: &[Step]) -> (Case, Vec<String>) {
    let settings = roomy(1);
    let before = settings.before();
    let mut parses = Vec::new();
    let mut rows = Vec::new();
    for step in steps {
        let load = load(step, effort);
        let run = Box::new(|| {
            parses.push(parse());
            load.ours(&settings, &mut Recorded::default())
        });
        let mut contenders = vec![Contender { name: "ours", role: Role::Ours, run }];
        if let Some(before) = &before {
            let load = self::load(step, effort);
            let run = Box::new(move || load.ours(before, &mut Recorded::default()));
            contenders.push(Contender { name: "before", role: Role::Peer, run });
        }
        rows.push((step, Case::run(&step.0, effort.rounds, contenders)));
    }
    let parse = median(&mut parses);
    println!("\nfanout/e-conflated: serde_json reads a tick in {parse:.0} ns");
    let mut closing = Vec::new();
    let mut all = Case { name: "e-conflated".to_owned(), rows: Vec::new() };
    for (step, case) in rows {
        let a_tick = |o: &Outcome| o.busy * 1e9 / step.4 as f64;
        if let Some(before) = case.row("before") {
            println!("  {:<18} {:>8.0} ns a tick", "before:", before.median(a_tick));
        }
        let Some(row) = case.rows.into_iter().next() else { continue };
        let delivered = row.median(|o| o.quotes_a_second) / (step.4 as f64 * step.1 as f64);
        let cost = row.median(a_tick);
        println!(
            "  {:<18} {cost:>8.0} ns a tick, {:.1} % of a core, {:.2} % of what was due delivered",
            step.0,
            100.0 * row.median(|o| o.busy),
            100.0 * delivered,
        );
        closing.push(format!("control fanout/{} {:.2}", step.0, cost / parse));
        all.rows.push(row);
    }
    (all, closing)
}

/// Nanoseconds in which serde_json reads one of the ticks, borrowed.
fn parse() -> f64 {
    #[derive(serde::Deserialize)]
    #[allow(dead_code, reason = "read by nobody: the reading is measured")]
    struct Tick<'a> {
        u: u64,
        s: &'a str,
        b: &'a str,
        #[serde(rename = "B")]
        bid_size: &'a str,
        a: &'a str,
        #[serde(rename = "A")]
        ask_size: &'a str,
    }
    let mut walk = Walk::default();
    let stamp = clock::now();
    let ticks: Vec<String> = (0..1000)
        .map(|update| {
            let instrument = walk.next(100);
            format!(
                r#"{{"u":{update},"s":"S{instrument:06}","b":"{stamp}","B":"1.50000000","a":"{stamp}.1","A":"2.50000000"}}"#
            )
        })
        .collect();
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let since = clock::now();
        for tick in &ticks {
            let read: Result<Tick<'_>, _> = serde_json::from_str(black_box(tick));
            assert!(black_box(read).is_ok(), "a tick is read");
        }
        best = best.min((clock::now() - since) as f64 / ticks.len() as f64);
    }
    best
}
