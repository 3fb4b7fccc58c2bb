//! `convert`, `cut` and `merge`: recordings written anew.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::exit::{Exit, say};
use super::output::Output;
use super::terminal::{Progress, Unit, bytes, plural, print};
use super::values;
use crate::feed::{
    Recording, Replay, ReplayOptions, Rewritten, Selection, Sink, Speed, Target, rewrite,
};
use crate::ingest::about;

const AFTER_CONVERT: &str = "\
Packing and format of FILE are told by content. Into `recording` nothing is lost. `lines` have no \
marks, and no message that one line cannot hold: empty ones, with a line's end inside, with a blank \
in front, or not UTF-8. `cryptofeed` has no marks and no message that is not UTF-8. Of a capture, \
what was received is read; requests and HTTP answers are not. What is lost is counted.

Exit codes: 2 if FILE is damaged; what is whole before the damage is converted all the same.

Examples:
  tidegate convert capture.jsonl.zst --out monday.jsonl.zst
  tidegate convert monday.jsonl.zst --to lines --out monday.gz";

const AFTER_CUT: &str = "\
A time is 2026-01-05T10:00:00Z, with a fraction if need be, or digits since 1970: up to 11 are s, 12 \
to 14 ms, 15 to 17 us, from 18 on ns. Records of the first time are in, those of the last are not. \
If FILE has an index, what is outside is not read.

With --instruments, quotes and fills of these are kept, and what is of no instrument: marks, \
answers to requests, errors, messages that the venue's codec does not know. Messages that it has no \
use for, such as candles, are left out, because it does not tell whose they are.

Examples:
  tidegate cut monday.jsonl.zst --from 2026-01-05T10:00:00Z --to 2026-01-05T10:05:00Z --out five.jsonl.zst
  tidegate cut perp.gz --venue binance-usdm --instruments BTCUSDT 'ETH*' --out two.jsonl.zst";

const AFTER_MERGE: &str = "\
The earliest receive time goes first, at equal times the file named first; each file keeps its \
order, also where its stamps are out of order. That is how `replay` plays several files.

Examples:
  tidegate merge spot-*.jsonl.zst --out spot.jsonl.zst";

/// Where what is made goes.
#[derive(Debug, Args)]
struct OutArgs {
    /// The file to write; it takes its place once it is whole
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
    /// Print a summary as JSON on standard output, instead of one for people on standard error
    #[arg(long)]
    json: bool,
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_CONVERT)]
pub(super) struct ConvertArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The format to write
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = To::Recording)]
    to: To,
    #[command(flatten)]
    out: OutArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum To {
    /// Tidegate's own, with an index
    Recording,
    /// `<time> <raw text>` lines, gzip
    Lines,
    /// A capture as cryptofeed writes them, zstd
    Cryptofeed,
}

/// Arguments of `cut`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_CUT)]
pub(super) struct CutArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The first receive time that is wanted
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    from: Option<i64>,
    /// The receive time from which on nothing is wanted
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    to: Option<i64>,
    /// Only messages of these instruments; a * at the end stands for anything
    #[arg(long, value_name = "NAME", num_args = 1..)]
    instruments: Vec<String>,
    /// The venue whose messages the recording holds
    #[arg(long, default_value = "binance", value_parser = values::venue())]
    venue: String,
    #[command(flatten)]
    out: OutArgs,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_MERGE)]
pub(super) struct MergeArgs {
    /// The recordings
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    out: OutArgs,
}

pub(super) fn convert(args: &ConvertArgs) -> anyhow::Result<Exit> {
    let target = match args.to {
        To::Recording => Target::Recording,
        To::Lines => Target::Stamped,
        To::Cryptofeed => Target::Cryptofeed,
    };
    let files = std::slice::from_ref(&args.file);
    write("converting", files, &Selection::default(), target, &args.out)
}

pub(super) fn cut(args: &CutArgs) -> anyhow::Result<Exit> {
    if args.from.is_none() && args.to.is_none() && args.instruments.is_empty() {
        bail!("nothing is cut: give --from, --to or --instruments");
    }
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        bail!("--from is not before --to, so that nothing is left");
    }
    let selection = about::selection(&args.venue, args.from, args.to, &args.instruments)?;
    let files = std::slice::from_ref(&args.file);
    write("cutting", files, &selection, Target::Recording, &args.out)
}

pub(super) fn merge(args: &MergeArgs) -> anyhow::Result<Exit> {
    for (at, file) in args.files.iter().enumerate() {
        if args.files[..at].contains(file) {
            bail!("{} is named twice", file.display());
        }
    }
    write("merging", &args.files, &Selection::default(), Target::Recording, &args.out)
}

/// What was written, as `--json` prints it. Names and meanings of the members are stable.
#[derive(Serialize)]
struct Made {
    file: String,
    messages: u64,
    marks: u64,
    left_out: u64,
    messages_lost: u64,
    marks_lost: u64,
    times_made_up: u64,
    bad_lines: u64,
    first_time: Option<i64>,
    last_time: Option<i64>,
    text_bytes: u64,
    file_bytes: u64,
    damage: Vec<Hurt>,
}

#[derive(Serialize)]
struct Hurt {
    file: String,
    record: u64,
    message: String,
}

fn write(
    what: &str,
    files: &[PathBuf],
    selection: &Selection,
    target: Target,
    out: &OutArgs,
) -> anyhow::Result<Exit> {
    let mut length = 0;
    let mut recordings = Vec::with_capacity(files.len());
    for file in files {
        if is_same(file, &out.out) {
            bail!("{} is read, so it cannot be written", file.display());
        }
        length += std::fs::metadata(file).map_or(0, |data| data.len());
        recordings.push(Recording::stream(file)?.selecting(selection.clone()));
    }
    let output = Output::create(&out.out, out.force)?;
    let options = ReplayOptions { speed: Speed::Max, ..ReplayOptions::default() };
    let mut replay = Replay::new(recordings, options)?;
    let mut progress = Progress::new(what.to_owned(), length, Unit::Bytes);
    let writing = || format!("writing {}", out.out.display());
    let mut sink = Sink::new(target, output).with_context(writing)?;
    let done = rewrite(&mut replay, &mut sink, |records, replay| {
        progress.at(replay.readers().map(crate::feed::Reader::file_offset).sum(), records);
    })
    .with_context(writing)?;
    drop(progress);
    let file_bytes = sink.finish().with_context(writing)?.keep()?;
    tell(files, &replay, &done, file_bytes, out)
}

/// Whether two names are of one file.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

fn tell(
    files: &[PathBuf],
    replay: &Replay,
    done: &Rewritten,
    file_bytes: u64,
    out: &OutArgs,
) -> anyhow::Result<Exit> {
    let sum = |count: fn(&crate::feed::Tally) -> u64| {
        replay.readers().map(|reader| count(reader.tally())).sum()
    };
    let made = Made {
        file: out.out.display().to_string(),
        messages: done.messages,
        marks: done.marks,
        left_out: sum(|tally| tally.left_out),
        messages_lost: done.messages_lost,
        marks_lost: done.marks_lost,
        times_made_up: done.times_made_up,
        bad_lines: sum(crate::feed::Tally::bad_lines),
        first_time: done.span.map(|(first, _)| first),
        last_time: done.span.map(|(_, last)| last),
        text_bytes: done.text_bytes,
        file_bytes,
        damage: done
            .damaged
            .iter()
            .map(|(source, damage)| Hurt {
                file: files[*source].display().to_string(),
                record: damage.record,
                message: damage.to_string(),
            })
            .collect(),
    };
    for hurt in &made.damage {
        say(&format!("tidegate: {}: {}", hurt.file, hurt.message));
    }
    if out.json {
        print((serde_json::to_string(&made)? + "\n").as_bytes())?;
    } else {
        say(&made.for_people());
    }
    Ok(if made.damage.is_empty() { Exit::Done } else { Exit::Damaged })
}

impl Made {
    fn for_people(&self) -> String {
        let mut told = format!(
            "{}: {} and {} in {} ({} of messages)",
            self.file,
            plural(self.messages, "message"),
            plural(self.marks, "mark"),
            bytes(self.file_bytes),
            bytes(self.text_bytes),
        );
        for (count, thing, why) in [
            (self.left_out, "record", "left out, as asked"),
            (self.messages_lost, "message", "lost: the format cannot hold them"),
            (self.marks_lost, "mark", "lost: the format has none"),
            (self.times_made_up, "record", "without a time got that of the one before"),
            (self.bad_lines, "bad line", "skipped; `tidegate inspect` tells why"),
        ] {
            if count > 0 {
                told += &format!("\n  {} {why}", plural(count, thing));
            }
        }
        told
    }
}
