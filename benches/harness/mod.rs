//! What every bench here shares: subjects run interleaved in one process, medians, closing lines.
//!
//! A lone figure drifts with the machine; a ratio of two medians taken in the same run holds. So a
//! case is always a list of subjects (ours first, then peers and controls), run in the order
//! A B C, C B A, A B C, … and reported as ratios of their medians.

#![allow(unreachable_pub, reason = "each bench is a crate of its own around this module")]
#![allow(dead_code, reason = "each bench uses its part of the shared harness")]

pub mod keyed;

use std::time::Instant;

/// One contender of a case.
pub struct Subject<'a> {
    /// The name that the closing lines use.
    pub name: &'static str,
    /// What the contender is compared as.
    pub role: Role,
    /// Runs once and answers the cost of one operation, in nanoseconds.
    pub run: Box<dyn FnMut() -> f64 + 'a>,
}

/// How a subject enters the closing lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The subject of the bench.
    Ours,
    /// Another implementation: `ratio` = its cost ÷ ours.
    Peer,
    /// The bare minimum of the same work: `control` = our cost ÷ its cost.
    Control,
}

/// Our own subject.
pub fn ours<'a>(name: &'static str, run: impl FnMut() -> f64 + 'a) -> Subject<'a> {
    Subject { name, role: Role::Ours, run: Box::new(run) }
}

/// A peer of the case.
pub fn peer<'a>(name: &'static str, run: impl FnMut() -> f64 + 'a) -> Subject<'a> {
    Subject { name, role: Role::Peer, run: Box::new(run) }
}

/// A control of the case.
pub fn control<'a>(name: &'static str, run: impl FnMut() -> f64 + 'a) -> Subject<'a> {
    Subject { name, role: Role::Control, run: Box::new(run) }
}

/// Closing lines collected over the whole bench, printed last.
#[derive(Default)]
pub struct Report {
    closing: Vec<String>,
}

impl Report {
    /// Runs a case for `rounds` interleaved rounds (after one that is not counted), prints a table
    /// of median and spread, and keeps the closing lines.
    pub fn case(&mut self, bench: &str, case: &str, rounds: usize, mut subjects: Vec<Subject<'_>>) {
        let mut samples = vec![Vec::with_capacity(rounds); subjects.len()];
        for subject in &mut subjects {
            (subject.run)();
        }
        for round in 0..rounds {
            let count = subjects.len();
            for step in 0..count {
                let index = if round % 2 == 0 { step } else { count - 1 - step };
                samples[index].push((subjects[index].run)());
            }
        }
        println!("\n{bench}/{case} ({rounds} interleaved rounds)");
        let medians: Vec<f64> = samples.iter_mut().map(|s| median(s)).collect();
        for ((subject, samples), median) in subjects.iter().zip(&samples).zip(&medians) {
            let (low, high) = (samples[0], samples[samples.len() - 1]);
            println!("  {:<28} {median:>8.1} ns   [{low:.1} .. {high:.1}]", subject.name);
        }
        let Some(ours) = subjects.iter().position(|s| s.role == Role::Ours) else { return };
        let first = subjects.iter().position(|s| s.role == Role::Control);
        for (index, (subject, median)) in subjects.iter().zip(&medians).enumerate() {
            match subject.role {
                Role::Ours => {}
                Role::Peer => self.closing.push(format!(
                    "ratio {bench}/{case}/{} {:.2}",
                    subject.name,
                    median / medians[ours]
                )),
                // Further controls go by their names.
                Role::Control => {
                    let name = if first == Some(index) { "" } else { subject.name };
                    let slash = if name.is_empty() { "" } else { "/" };
                    self.closing.push(format!(
                        "control {bench}/{case}{slash}{name} {:.2}",
                        medians[ours] / median
                    ));
                }
            }
        }
    }

    /// Prints every closing line.
    pub fn close(self) {
        println!();
        for line in self.closing {
            println!("{line}");
        }
    }
}

/// Sorts the samples and answers their median.
pub fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Nanoseconds an operation of `operations` run by `work`.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
pub fn per_operation(operations: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / operations as f64
}

/// Whether the bench was asked for its everyday form (`-- --short`).
pub fn short() -> bool {
    std::env::args().any(|argument| argument == "--short")
}
