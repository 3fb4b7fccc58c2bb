//! `simulate`: a recording of a made-up market, the same bytes for the same options.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;

use super::exit::{Exit, say};
use super::terminal::{OutputError, Progress, Unit, bytes, duration, group, plural, print};
use super::values;
use crate::feed::{
    AccountTotal, RecordError, Recorder, RecorderOptions, RecorderSummary, SimulateOptions,
    SimulateSummary, Simulator,
};
use crate::market::decimal::{Decimal, Sum};

const AFTER_HELP: &str = "\
The messages are those of Binance spot: bookTicker, trade, aggTrade, some depth updates, and \
execution reports of the accounts desk-1, desk-2, … Activity comes in bursts. The same options give \
the same bytes on every machine.

Examples:
  tidegate simulate --out minute.jsonl.zst
  tidegate simulate --out busy.jsonl.zst --rate 50000 --instruments 500 --duration 30s --seed 7
  tidegate simulate --out - --duration 5s | tidegate inspect -";

/// Arguments of `simulate`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct SimulateArgs {
    /// The recording to write; - for standard output
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Seed of everything that is left to chance
    #[arg(long, value_name = "N", default_value_t = SimulateOptions::default().seed)]
    seed: u64,
    /// How long the recording lasts
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    duration: Duration,
    /// How many instruments
    #[arg(long, value_name = "N", default_value_t = SimulateOptions::default().instruments)]
    instruments: usize,
    /// Messages a second, on average over quiet and busy times
    #[arg(long, value_name = "N", default_value_t = SimulateOptions::default().rate)]
    rate: u32,
    /// How many accounts trade; 0: no execution reports
    #[arg(long, value_name = "N", default_value_t = SimulateOptions::default().accounts)]
    accounts: usize,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
    /// Print a summary as JSON on standard output, instead of one for people on standard error
    #[arg(long)]
    json: bool,
}

/// What was made, as `--json` prints it. Names and meanings of the members are stable.
#[derive(Serialize)]
struct Made<'a> {
    file: String,
    seed: u64,
    duration_ms: u128,
    first_time: i64,
    messages: u64,
    book_tickers: u64,
    trades: u64,
    aggregate_trades: u64,
    depth_updates: u64,
    execution_reports: u64,
    fills: u64,
    others: u64,
    text_bytes: u64,
    file_bytes: u64,
    instruments: Vec<Ticks<'a>>,
    volumes: Vec<Total<'a>>,
}

#[derive(Serialize)]
struct Ticks<'a> {
    symbol: &'a str,
    ticks: u64,
}

#[derive(Serialize)]
struct Total<'a> {
    account: &'a str,
    symbol: &'a str,
    fills: u64,
    bought: String,
    sold: String,
    notional: String,
}

pub(super) fn run(args: &SimulateArgs) -> anyhow::Result<Exit> {
    let simulator = Simulator::new(SimulateOptions {
        seed: args.seed,
        duration: args.duration,
        instruments: args.instruments,
        rate: args.rate,
        accounts: args.accounts,
        ..SimulateOptions::default()
    })?;
    let made = Making { simulator, start: SimulateOptions::default().start_time, args };
    if args.out.as_os_str() == "-" { made.write_stdout() } else { made.write_file() }
}

struct Making<'a> {
    simulator: Simulator,
    start: i64,
    args: &'a SimulateArgs,
}

impl Making<'_> {
    fn write_stdout(mut self) -> anyhow::Result<Exit> {
        if self.args.json {
            bail!("--json writes to standard output too: give --out a file");
        }
        let out = io::stdout();
        if out.is_terminal() {
            bail!("a recording is packed, which a terminal cannot show: give --out a file");
        }
        let recorder = Recorder::new(out.lock(), RecorderOptions::default())?;
        let (_, written) = self.record(recorder).map_err(unread)?;
        self.tell(&written)
    }

    /// With `--force`, the file that is there stays until the new one is whole.
    fn write_file(mut self) -> anyhow::Result<Exit> {
        let path = self.args.out.as_path();
        let target = if self.args.force { partial(path) } else { path.to_owned() };
        let writing = || format!("writing {}", path.display());
        let file = if self.args.force { File::create(&target) } else { File::create_new(&target) };
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                bail!("{} exists; replace it with --force", path.display());
            }
            file => file.with_context(writing)?,
        };
        let written = Recorder::new(file, RecorderOptions::default())
            .and_then(|recorder| self.record(recorder));
        let finished = written.map_err(anyhow::Error::from).and_then(|(file, written)| {
            file.sync_all()?;
            if target != path {
                std::fs::rename(&target, path)?;
            }
            Ok(written)
        });
        match finished {
            Ok(written) => self.tell(&written),
            Err(error) => {
                // Half a recording is of no use to anyone. If it cannot be removed, so be it.
                let _ = std::fs::remove_file(&target);
                Err(error.context(writing()))
            }
        }
    }

    fn record<W: Write>(
        &mut self,
        mut recorder: Recorder<W>,
    ) -> Result<(W, RecorderSummary), RecordError> {
        let length = u64::try_from(self.args.duration.as_millis()).unwrap_or(u64::MAX);
        let mut progress = Progress::new("simulating".to_owned(), length, Unit::Milliseconds);
        let mut messages = 0_u64;
        while let Some((receive_time, text)) = self.simulator.next() {
            recorder.message(receive_time, text)?;
            messages += 1;
            if messages.is_multiple_of(4096) {
                progress.at(receive_time.abs_diff(self.start) / 1_000_000, messages);
            }
        }
        recorder.finish()
    }

    fn tell(&self, written: &RecorderSummary) -> anyhow::Result<Exit> {
        let summary = self.simulator.summary();
        if self.args.json {
            let mut line = serde_json::to_vec(&self.made(summary, written))?;
            line.push(b'\n');
            print(&line)?;
        } else {
            say(&self.told(summary, written));
        }
        Ok(Exit::Done)
    }

    fn told(&self, made: &SimulateSummary, written: &RecorderSummary) -> String {
        let SimulateArgs { out, seed, instruments, accounts, .. } = self.args;
        let name = if out.as_os_str() == "-" {
            "standard output".into()
        } else {
            out.display().to_string()
        };
        format!(
            "{name}: {} of {} in {} ({} unpacked), seed {seed}\n  {}: {} bookTicker, {} trade, \
             {} aggTrade, {} depth, {} executionReport, {} other\n  {}: {}",
            plural(made.messages, "message"),
            duration(self.args.duration),
            bytes(written.file_bytes),
            bytes(written.text_bytes),
            plural(*instruments as u64, "instrument"),
            group(made.book_tickers),
            group(made.trades),
            group(made.aggregate_trades),
            group(made.depth_updates),
            group(made.execution_reports),
            group(made.others),
            plural(*accounts as u64, "account"),
            plural(made.fills, "fill"),
        )
    }

    fn made(&self, made: &SimulateSummary, written: &RecorderSummary) -> Made<'_> {
        Made {
            file: self.args.out.display().to_string(),
            seed: self.args.seed,
            duration_ms: self.args.duration.as_millis(),
            first_time: self.start,
            messages: made.messages,
            book_tickers: made.book_tickers,
            trades: made.trades,
            aggregate_trades: made.aggregate_trades,
            depth_updates: made.depth_updates,
            execution_reports: made.execution_reports,
            fills: made.fills,
            others: made.others,
            text_bytes: made.text_bytes,
            file_bytes: written.file_bytes,
            instruments: self
                .simulator
                .ticks()
                .map(|(symbol, ticks)| Ticks { symbol, ticks })
                .collect(),
            volumes: self.simulator.account_totals().map(Total::of).collect(),
        }
    }
}

impl<'a> Total<'a> {
    fn of(total: &'a AccountTotal) -> Self {
        Self {
            account: &total.account,
            symbol: &total.symbol,
            fills: total.fills,
            bought: hundred_millionths(total.bought),
            sold: hundred_millionths(total.sold),
            notional: hundred_millionths(total.notional),
        }
    }
}

/// A sum kept in 10⁻⁸s as a decimal without trailing zeros, as the gateway writes sums.
fn hundred_millionths(amount: u128) -> String {
    match i128::try_from(amount).ok().and_then(|n| Decimal::try_from_i128_with_scale(n, 8).ok()) {
        Some(decimal) => Sum::from(decimal).to_string(),
        None => format!("{amount}e-8"),
    }
}

/// Where a file is written before it takes its place.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// Whoever reads the recording from a pipe may stop.
fn unread(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Io { error, .. } => OutputError(error).into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_written_as_the_gateway_writes_them() {
        assert_eq!(hundred_millionths(0), "0");
        assert_eq!(hundred_millionths(50_000_000), "0.5");
        assert_eq!(hundred_millionths(6_183_763_000_000), "61837.63");
    }

    #[test]
    fn a_partial_file_stands_beside_the_whole_one() {
        assert_eq!(partial(Path::new("a/b.zst")), Path::new("a/b.zst.partial"));
        assert_eq!(partial(Path::new("b")), Path::new("b.partial"));
    }
}
