//! `replay --digest`: the reproducible mode on the command line.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio_util::sync::CancellationToken;

use super::super::exit::Exit;
use super::super::table::{Align, Table};
use super::super::terminal::{self, Paint};
use super::super::values;
use super::named::Named;
use crate::app::reproduce::{self, Outcome, Script};
use crate::config::{Settings, Speed};
use crate::feed::Selection;
use crate::gateway::stepped::ClientModel;

/// Options of the reproducible mode.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reproducible mode")]
pub(super) struct DigestArgs {
    /// Play under virtual time, to modelled subscribers, and print a digest of the bytes that each
    /// gets: the same for the same recordings and options, at any speed (max unless --speed says
    /// otherwise)
    #[arg(long)]
    pub(super) digest: bool,
    /// A modelled subscriber: instruments and patterns, then account=NAME, max_hz=N, capacity=N and
    /// reads=BYTES (bytes it reads a second, as 64KiB or 2MB), separated by commas; may be repeated.
    /// Without any, one that takes everything
    #[arg(
        long,
        value_name = "SPEC",
        value_parser = spec,
        requires = "digest",
        allow_hyphen_values = true
    )]
    subscriber: Vec<ClientModel>,
    /// Write each frame that a subscriber reads, one a line, as JSON
    #[arg(long, value_name = "FILE", requires = "digest")]
    out: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long, requires = "out")]
    force: bool,
}

/// What the reproducible mode shares with any replay.
pub(super) struct Play<'a> {
    pub(super) recordings: &'a [Named],
    pub(super) account: Option<&'a str>,
    pub(super) max_gap: Duration,
    pub(super) speed: Option<Speed>,
    /// What is played of a recording of this venue.
    pub(super) selected: &'a dyn Fn(&str) -> anyhow::Result<Selection>,
}

pub(super) fn run(args: &DigestArgs, play: &Play<'_>) -> anyhow::Result<Exit> {
    let recordings = play
        .recordings
        .iter()
        .map(|Named { venue, file }| {
            let recording = reproduce::open(file)?.selecting((play.selected)(venue)?);
            Ok((venue.clone(), recording))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let clients = if args.subscriber.is_empty() {
        vec![ClientModel { instruments: everything(play.recordings), ..ClientModel::default() }]
    } else {
        args.subscriber.clone()
    };
    let script = Script {
        settings: Settings::embedded(),
        recordings,
        account: play.account.map(str::to_owned),
        clients,
        max_gap: if play.max_gap.is_zero() { Duration::MAX } else { play.max_gap },
        speed: play.speed.unwrap_or(Speed::Max),
    };
    let mut out = args.out.as_deref().map(|path| create(path, args.force)).transpose()?;
    let outcome = reproduce::reproduce(&script, &CancellationToken::new(), |client, frame| {
        if let (Some(out), Some(path)) = (&mut out, &args.out) {
            out.write_all(&reproduce::line(client, frame)).with_context(|| writing(path))?;
        }
        Ok(())
    })?;
    if let (Some(mut out), Some(path)) = (out, &args.out) {
        out.flush().with_context(|| writing(path))?;
    }
    terminal::print(show(&script, &outcome, Paint::stdout()).as_bytes())?;
    Ok(if outcome.damaged { Exit::Damaged } else { Exit::Done })
}

/// Patterns for every venue that is played.
fn everything(recordings: &[Named]) -> Vec<String> {
    let mut patterns: Vec<String> =
        recordings.iter().map(|named| format!("{}:*", named.venue)).collect();
    patterns.sort_unstable();
    patterns.dedup();
    patterns
}

fn create(path: &Path, force: bool) -> anyhow::Result<BufWriter<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    if !force {
        options.create_new(true);
    }
    let file = options.open(path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AlreadyExists => "; --force writes over it",
            _ => "",
        };
        anyhow::Error::new(error).context(format!("creating {}{hint}", path.display()))
    })?;
    Ok(BufWriter::new(file))
}

fn writing(path: &Path) -> String {
    format!("writing frames to {}", path.display())
}

fn show(script: &Script, outcome: &Outcome, paint: Paint) -> String {
    let columns = [
        ("subscriber", Align::Right),
        ("received", Align::Right),
        ("delivered", Align::Right),
        ("conflated", Align::Right),
        ("pending", Align::Right),
        ("frames", Align::Right),
        ("bytes", Align::Right),
        ("sha256", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for (number, client) in (1..).zip(&outcome.clients) {
        // Ticks of a subscriber whose connection has ended early are not known any more.
        let ticks = client.report.as_ref().map_or([None; 4], |report| {
            [report.received, report.delivered, report.conflated, report.pending].map(Some)
        });
        let mut cells = vec![format!("{number}")];
        cells.extend(ticks.map(|tick| tick.map_or("-".to_owned(), |tick| tick.to_string())));
        cells.extend([client.frames.to_string(), client.bytes.to_string(), client.digest.clone()]);
        table.row(cells);
    }
    let mut text = format!(
        "{} messages of {} recording(s), {:.3} s of virtual time\n\n",
        outcome.messages,
        script.recordings.len(),
        outcome.played.as_secs_f64(),
    );
    table.write(paint, &mut text);
    text.push_str(&format!("\nsha256 {}\n", outcome.digest));
    text
}

/// Reads a modelled subscriber.
fn spec(text: &str) -> Result<ClientModel, String> {
    let mut model = ClientModel::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            None => model.instruments.push(part.to_owned()),
            Some(("account", name)) => model.accounts.push(name.to_owned()),
            Some(("max_hz", value)) => model.max_hz = Some(values::max_hz(value)?),
            Some(("capacity", value)) => {
                let capacity = value.parse();
                model.capacity =
                    Some(capacity.map_err(|_| format!("capacity={value}: write a whole number"))?);
            }
            Some(("reads", value)) => {
                model.reads_per_s = Some(bytes(value).ok_or_else(|| {
                    format!("reads={value}: write bytes a second, as 8000, 64KiB or 2MB")
                })?);
            }
            Some((key, _)) => {
                return Err(format!(
                    "{key}= is no setting of a subscriber: account, max_hz, capacity and reads are"
                ));
            }
        }
    }
    if model.instruments.is_empty() && model.accounts.is_empty() {
        return Err("name at least one instrument, as binance:BTCUSDT or binance:*".to_owned());
    }
    Ok(model)
}

/// A number of bytes with an optional unit.
fn bytes(text: &str) -> Option<NonZeroU64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match &text[digits..] {
        "" | "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    NonZeroU64::new(text[..digits].parse::<u64>().ok()?.checked_mul(unit)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_is_spelled_in_one_word() {
        let model =
            spec("binance:*,kraken:BTC/USD, max_hz=10,capacity=2,reads=64KiB,account=desk-1")
                .unwrap();
        assert_eq!(
            model,
            ClientModel {
                instruments: vec!["binance:*".into(), "kraken:BTC/USD".into()],
                accounts: vec!["desk-1".into()],
                max_hz: Some(10.0),
                capacity: Some(2),
                reads_per_s: NonZeroU64::new(65_536),
            }
        );
        for (bad, says) in [
            ("", "at least one instrument"),
            ("max_hz=1", "at least one instrument"),
            ("a:*,max_hz=x", "batches a second"),
            ("a:*,capacity=-1", "whole number"),
            ("a:*,reads=fast", "64KiB"),
            ("a:*,reads=0", "64KiB"),
            ("a:*,hz=1", "is no setting"),
        ] {
            let error = spec(bad).unwrap_err();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
