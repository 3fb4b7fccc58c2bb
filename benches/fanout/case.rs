//! One case: its subjects run interleaved, a table, the closing lines.

use std::io;

use super::ages::Ages;
use super::harness::{Role, median};

/// What one run of one subject came to.
#[derive(Clone, Default)]
pub struct Outcome {
    /// Processor time of the whole server for a delivered quote, in nanoseconds.
    pub whole: f64,
    /// The same of the threads that write to subscribers (the whole of a server without such).
    pub shard: f64,
    pub quotes_a_second: f64,
    /// Quotes of a frame, on average.
    pub quotes_a_frame: f64,
    /// Share of a core that the server had.
    pub busy: f64,
    pub ages: Ages,
    /// Ages of subscribers that read slowly.
    pub slow: Ages,
    /// Ages of the subscriber that was served last.
    pub last: Ages,
    /// Bytes.
    pub resident: u64,
    /// Bytes by which it grew over the window.
    pub grown: f64,
    /// Subscribers that were closed.
    pub closed: u64,
}

/// What a subject does when its turn comes.
pub type Run<'a> = Box<dyn FnMut() -> io::Result<Outcome> + 'a>;

/// A server that takes part in a case.
pub struct Contender<'a> {
    pub name: &'static str,
    pub role: Role,
    pub run: Run<'a>,
}

/// A contender and its outcomes.
pub struct Row {
    pub name: &'static str,
    pub role: Role,
    pub outcomes: Vec<Outcome>,
}

impl Row {
    /// The median of a figure over the runs.
    pub fn median(&self, figure: impl Fn(&Outcome) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.outcomes.iter().map(figure).collect();
        if figures.is_empty() { f64::NAN } else { median(&mut figures) }
    }

    /// All ages of all runs.
    pub fn ages(&self, which: fn(&Outcome) -> &Ages) -> Ages {
        let mut ages = Ages::default();
        for outcome in &self.outcomes {
            ages.merge(which(outcome));
        }
        ages
    }
}

/// A finished case.
pub struct Case {
    pub name: String,
    pub rows: Vec<Row>,
}

impl Case {
    /// Runs the contenders `rounds` times: A B C, C B A, A B C, … One that fails is left out, and
    /// said so.
    pub fn run(name: &str, rounds: usize, mut contenders: Vec<Contender<'_>>) -> Self {
        let row = |contender: &Contender<'_>| Row {
            name: contender.name,
            role: contender.role,
            outcomes: Vec::new(),
        };
        let mut rows: Vec<Row> = contenders.iter().map(row).collect();
        for round in 0..rounds {
            let count = contenders.len();
            for step in 0..count {
                let index = if round % 2 == 0 { step } else { count - 1 - step };
                match (contenders[index].run)() {
                    Ok(outcome) => rows[index].outcomes.push(outcome),
                    Err(error) => println!("{name}: {} failed: {error}", rows[index].name),
                }
            }
        }
        rows.retain(|row| !row.outcomes.is_empty());
        Self { name: name.to_owned(), rows }
    }

    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Prints the table.
    pub fn print(&self) {
        let rounds = self.rows.iter().map(|row| row.outcomes.len()).max().unwrap_or(0);
        println!("\nfanout/{} ({rounds} interleaved rounds, medians)", self.name);
        println!(
            "  {:<18} {:>26} {:>26} {:>11} {:>7} {:>6} {:>9} {:>9} {:>9} {:>8}",
            "",
            "whole ns/quote [spread]",
            "shard ns/quote [spread]",
            "quotes/s",
            "a frame",
            "core %",
            "age p50",
            "p99",
            "p99.9 µs",
            "RSS MiB"
        );
        for row in &self.rows {
            let ages = row.ages(|outcome| &outcome.ages);
            let spread = |figure: fn(&Outcome) -> f64| {
                let least = row.outcomes.iter().map(figure).fold(f64::INFINITY, f64::min);
                let most = row.outcomes.iter().map(figure).fold(0.0, f64::max);
                format!("{:.0} [{least:.0}..{most:.0}]", row.median(figure))
            };
            let age = |share| match ages.len() {
                0 => "-".to_owned(),
                _ => format!("{:.0}", ages.at(share) / 1e3),
            };
            println!(
                "  {:<18} {:>26} {:>26} {:>11.0} {:>7.1} {:>6.0} {:>9} {:>9} {:>9} {:>8.1}{}",
                row.name,
                spread(|outcome| outcome.whole),
                spread(|outcome| outcome.shard),
                row.median(|outcome| outcome.quotes_a_second),
                row.median(|outcome| outcome.quotes_a_frame),
                100.0 * row.median(|outcome| outcome.busy),
                age(0.5),
                age(0.99),
                age(0.999),
                row.median(|outcome| outcome.resident as f64) / f64::from(1 << 20),
                match row.outcomes.iter().map(|outcome| outcome.closed).sum::<u64>() {
                    0 => String::new(),
                    closed => format!("  {closed} closed"),
                },
            );
        }
        match super::chart::write(self) {
            Ok(files) => files.iter().for_each(|file| println!("  chart: {}", file.display())),
            Err(error) => println!("  no chart of {}: {error}", self.name),
        }
    }

    /// The closing lines by processor time: peers by the whole process, the control by the shards.
    pub fn closing(&self) -> Vec<String> {
        let Some(ours) = self.rows.iter().find(|row| row.role == Role::Ours) else {
            return Vec::new();
        };
        let line = |row: &Row| match row.role {
            Role::Ours => None,
            Role::Peer => Some(format!(
                "ratio fanout/{}/{} {:.2}",
                self.name,
                row.name,
                row.median(|o| o.whole) / ours.median(|o| o.whole)
            )),
            Role::Control => Some(format!(
                "control fanout/{} {:.2}",
                self.name,
                ours.median(|o| o.shard) / row.median(|o| o.shard)
            )),
        };
        self.rows.iter().filter_map(line).collect()
    }
}
