//! `record`: what the feeds of a configuration receive, written down.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;

use super::configuration::{Loaded, Recordings, load};
use super::exit::{Exit, say};
use super::terminal::{Progress, Unit, bytes, plural, print};
use super::values;
use crate::app::{Program, RecordPlan, Recorded};
use crate::config::{RecordSettings, Settings};
use crate::feed::Place;

const AFTER_HELP: &str = "\
Each feed gets files named after it and the time, in its [feed.record] folder, or in the folder that \
--out names, which is the present one if neither is given. If --out names no folder and one feed is \
recorded, it is the file. A file that exists is never written on.

It goes on until every feed has ended, for --duration, or until SIGTERM or Ctrl-C; the files are \
then closed. After a kill they can be read up to the last second, and `tidegate verify --repair` \
closes them. If the disk cannot keep up, records are left out, counted, and marked in the file.

Exit codes: 1 if records were lost.

Examples:
  tidegate record --config my.toml --out recordings/
  tidegate record --config my.toml --feed spot --out monday.jsonl.zst --duration 8h
  tidegate record --config my.toml --feed spot --feed perp --rotate-every 1h --keep-files 24";

/// Arguments of `record`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct RecordArgs {
    /// The configuration whose feeds are recorded
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// A folder for the files, or the file if one feed is recorded
    #[arg(short, long, value_name = "DIR|FILE")]
    out: Option<PathBuf>,
    /// Record this feed; may be repeated. Without it, all are recorded
    #[arg(long = "feed", value_name = "NAME")]
    feeds: Vec<String>,
    /// Stop after this time
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    duration: Option<Duration>,
    /// In a folder, begin the next file at so many bytes; 0: at none
    #[arg(long, value_name = "BYTES")]
    rotate_bytes: Option<u64>,
    /// In a folder, begin the next file at this age; 0s: at none
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    rotate_every: Option<Duration>,
    /// In a folder, keep so many files of each feed; 0: all
    #[arg(long, value_name = "N")]
    keep_files: Option<u32>,
    /// Replace the file of --out if it exists
    #[arg(short, long)]
    force: bool,
    /// Print a summary as JSON on standard output, instead of one for people on standard error
    #[arg(long)]
    json: bool,
}

/// What was recorded of a feed, as `--json` prints it. Names and meanings of the members are stable.
#[derive(Serialize)]
struct Summary<'a> {
    feed: &'a str,
    records: u64,
    files: u64,
    file_bytes: u64,
    /// Records lost because the disk did not keep up.
    lost_to_overflow: u64,
    /// Records lost because they could not be written.
    lost_to_failures: u64,
    last_problem: Option<String>,
}

pub(super) fn run(args: &RecordArgs) -> anyhow::Result<Exit> {
    let program = Program::prepare()?;
    let Loaded { settings, .. } = load(&args.config, Recordings::Required)?;
    let plan = RecordPlan { feeds: chosen(args, settings)?, length: args.duration };
    let length = args.duration.map_or(0, millis);
    let unit = if length == 0 { Unit::Records } else { Unit::Milliseconds };
    let mut progress = Progress::new("recording".to_owned(), length, unit);
    let recorded = program.record(plan, |gone, recorded| {
        let records = recorded.iter().map(|feed| feed.figures.records()).sum();
        let position = if length == 0 { records } else { millis(gone) };
        progress.at(position, records);
    })?;
    tell(&recorded, args.json)
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The feeds to record, each with its place.
fn chosen(
    args: &RecordArgs,
    settings: Settings,
) -> anyhow::Result<Vec<(crate::config::FeedSettings, RecordSettings, Place)>> {
    let known: Vec<String> = settings.feeds.iter().map(|feed| feed.name.clone()).collect();
    for name in &args.feeds {
        if !known.contains(name) {
            bail!("no feed {name:?} in {}; it has {}", args.config.display(), known.join(", "));
        }
    }
    let wanted = |name: &String| args.feeds.is_empty() || args.feeds.contains(name);
    let feeds: Vec<_> = settings.feeds.into_iter().filter(|feed| wanted(&feed.name)).collect();
    let single = feeds.len() == 1;
    feeds
        .into_iter()
        .map(|feed| {
            let configured = feed.record.clone();
            let mut record = configured.clone().unwrap_or_else(|| RecordSettings::new("."));
            record.rotate_bytes = args.rotate_bytes.unwrap_or(record.rotate_bytes);
            record.rotate_every = args.rotate_every.unwrap_or(record.rotate_every);
            record.keep_files = args.keep_files.unwrap_or(record.keep_files);
            let place = match &args.out {
                None => Place::Folder(record.folder.clone()),
                Some(out) => place(out, single, args.force)?,
            };
            Ok((feed, record, place))
        })
        .collect()
}

fn place(out: &Path, single: bool, force: bool) -> anyhow::Result<Place> {
    let folder = out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/');
    if folder || (!single && !out.exists()) {
        return Ok(Place::Folder(out.to_owned()));
    }
    if !single {
        bail!("{} is a file, and several feeds are recorded: name a folder", out.display());
    }
    if out.exists() && !force {
        bail!("{} exists; replace it with --force", out.display());
    }
    Ok(Place::File { path: out.to_owned(), replace: force })
}

fn tell(recorded: &[Recorded], json: bool) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    for Recorded { name, figures } in recorded {
        let summary = Summary {
            feed: name,
            records: figures.records(),
            files: figures.files(),
            file_bytes: figures.file_bytes(),
            lost_to_overflow: figures.lost_to_overflow(),
            lost_to_failures: figures.lost_to_failures(),
            last_problem: figures.last_problem(),
        };
        if summary.lost_to_overflow + summary.lost_to_failures > 0 {
            exit = Exit::Failed;
        }
        if json {
            let line = serde_json::to_string(&summary).context("writing the summary")? + "\n";
            print(line.as_bytes())?;
        } else {
            say(&summary.for_people());
        }
    }
    Ok(exit)
}

impl Summary<'_> {
    fn for_people(&self) -> String {
        let mut told = format!(
            "{}: {} in {} of {}",
            self.feed,
            plural(self.records, "record"),
            plural(self.files, "file"),
            bytes(self.file_bytes)
        );
        if self.lost_to_overflow > 0 {
            let lost = plural(self.lost_to_overflow, "record");
            told += &format!("\n  {lost} lost: the disk did not keep up");
        }
        if self.lost_to_failures > 0 {
            let lost = plural(self.lost_to_failures, "record");
            told += &format!("\n  {lost} lost: they could not be written");
        }
        if let Some(problem) = &self.last_problem {
            told += &format!("\n  {problem}");
        }
        told
    }
}
