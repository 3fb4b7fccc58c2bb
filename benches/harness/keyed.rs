//! What the benches of the two keyed workers share: cases, loads and cadences, our side and the peers.

pub mod load;
pub mod map;
pub mod ours;
pub mod run;

use super::{Report, Subject, short};
use load::{Load, Spread};
use run::Cadence;
use std::time::Duration;

/// Runs every case that was asked for.
pub fn run_all(bench: &str, subjects: impl for<'a> Fn(&Case, &'a Load) -> Vec<Subject<'a>>) {
    let mut report = Report::default();
    for case in cases() {
        let load = Load::new(case.keys, case.spread);
        report.case(bench, &case.name, rounds(), subjects(&case, &load));
    }
    report.close();
}

/// The cases of both benches.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (keys, name) in [(10, "10"), (1_000, "1000"), (16_384, "16k"), (131_072, "128k")] {
        for spread in [Spread::Uniform, Spread::Zipf] {
            if spread == Spread::Zipf && (keys == 10 || keys == 131_072) {
                continue;
            }
            for (cadence, cadence_name) in [
                (Cadence::Sweep, "sweep"),
                (Cadence::Every(Duration::from_micros(20)), "20us"),
                (Cadence::Every(Duration::from_micros(200)), "conflated"),
            ] {
                for by_handle in [false, true] {
                    let way = if by_handle { "handle" } else { "key" };
                    let tail = if spread == Spread::Zipf { "-zipf" } else { "" };
                    let name = format!("{name}-{cadence_name}-{way}{tail}");
                    if wanted(&name) {
                        cases.push(Case { keys, spread, cadence, by_handle, name });
                    }
                }
            }
        }
    }
    cases
}

/// One case.
pub struct Case {
    /// The number of keys.
    pub keys: u32,
    /// How often each.
    pub spread: Spread,
    /// When the consumer drains.
    pub cadence: Cadence,
    /// Whether keys are resolved beforehand.
    pub by_handle: bool,
    /// Its name in the closing lines.
    pub name: String,
}

/// Rounds a case.
fn rounds() -> usize {
    if short() { 5 } else { 15 }
}

/// Places of every queue: each key may be pending.
pub fn capacity(keys: u32) -> usize {
    (keys as usize).next_power_of_two().max(16)
}

/// Whether the command line asks for this case: any of its words is in the name, or it has none.
fn wanted(name: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    words.peek().is_none() || words.any(|word| name.contains(&word))
}
