//! `verify`: whether recordings are whole, and their repair.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;

use super::exit::{Exit, chain, say};
use super::output::Output;
use super::terminal::{Progress, Unit, bytes, group, plural, print};
use crate::feed::{
    IndexState, Mark, OpenError, Reader, RecordKind, Recorder, RecorderOptions, Verification,
    verify,
};

const AFTER_HELP: &str = "\
A recording whose recorder was killed is torn: it ends in the middle, and all that can be read of it \
is good. One in which bytes have changed is corrupt: it is proven up to the last frame whose \
checksum is right, and what can be read behind that may be wrong.

A repair writes what is good anew, with its end and its index: of a torn recording every record that \
can be read, of a corrupt one those that are proven. Without --out it takes the place of the file, \
which needs --force.

Exit codes: 0 if all are whole (or were repaired), 2 if one is damaged, 1 if one cannot be opened.

Examples:
  tidegate verify recordings/*.jsonl.zst
  tidegate verify killed.jsonl.zst --repair --out whole.jsonl.zst
  tidegate verify killed.jsonl.zst --repair --force";

/// Arguments of `verify`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct VerifyArgs {
    /// The recordings
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write anew what is good of a damaged recording
    #[arg(long)]
    repair: bool,
    /// Where the repaired recording goes; without it, it replaces FILE
    #[arg(short, long, value_name = "FILE", requires = "repair")]
    out: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(short, long, requires = "repair")]
    force: bool,
    /// Print one JSON object a line for each recording
    #[arg(long)]
    json: bool,
}

/// What is known of a recording, as `--json` prints it. Names and meanings of the members are
/// stable.
#[derive(Serialize)]
struct Verified {
    file: String,
    /// `whole`, `torn` or `corrupt`.
    state: &'static str,
    file_bytes: u64,
    compression: String,
    format: Option<String>,
    messages: u64,
    marks: u64,
    /// Records that the recorder says are missing.
    gaps_lost: u64,
    bad_lines: u64,
    frames: Option<u64>,
    proven_records: u64,
    proven_bytes: u64,
    /// `good`, `missing`, `joined` or `damaged`.
    index: &'static str,
    /// Where the frame that is not good begins, and how far it was read, in bytes of the file.
    broken_frame: Option<(u64, u64)>,
    damage: Option<String>,
    /// Records that the repair kept.
    repaired: Option<u64>,
}

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<Exit> {
    if args.repair && args.files.len() > 1 {
        bail!("one recording at a time is repaired");
    }
    if args.repair && args.out.is_none() && !args.force {
        bail!("a repair in place replaces the file: give --force, or --out FILE");
    }
    let mut worst = Exit::Done;
    for file in &args.files {
        let found = match look(file) {
            Ok(found) => found,
            Err(error) => {
                say(&format!("tidegate: {}", chain(&error.into())));
                worst = worst.max(Exit::Failed);
                continue;
            }
        };
        let mut repaired = None;
        if args.repair {
            repaired = Some(repair(file, &found, args)?);
        } else if !found.is_whole() {
            worst = worst.max(Exit::Damaged);
        }
        let verified = Verified::of(file, &found, repaired);
        if args.json {
            print((serde_json::to_string(&verified)? + "\n").as_bytes())?;
        } else {
            print((verified.for_people() + "\n").as_bytes())?;
        }
    }
    Ok(worst)
}

fn look(file: &Path) -> Result<Verification, OpenError> {
    let length = std::fs::metadata(file).map_or(0, |data| data.len());
    let mut progress = Progress::new(file.display().to_string(), length * 2, Unit::Bytes);
    verify(file, |used| progress.at(used, 0))
}

/// Writes anew what is good; answers how many records that is.
fn repair(file: &Path, found: &Verification, args: &VerifyArgs) -> anyhow::Result<u64> {
    let place = args.out.as_deref().unwrap_or(file);
    let output = Output::create(place, args.force)?;
    let writing = || format!("writing {}", place.display());
    let mut recorder = Recorder::new(output, RecorderOptions::default()).with_context(writing)?;
    let mut reader = Reader::open(file)?;
    let mut kept = 0;
    let mut last = 0;
    while kept < found.kept_by_repair()
        && let Some(record) = reader.read_next()
    {
        last = record.receive_time.unwrap_or(last);
        match record.kind {
            RecordKind::Message => recorder.message(last, record.text),
            RecordKind::Mark(mark) => recorder.mark(last, mark),
        }
        .with_context(writing)?;
        kept += 1;
    }
    // What is behind the damage is missing; how much it is, nobody knows.
    if !found.is_torn() && found.damage.is_some() {
        recorder.mark(last, Mark::Gap { lost: 0 }).with_context(writing)?;
    }
    let (output, _) = recorder.finish().with_context(writing)?;
    output.keep()?;
    Ok(kept)
}

impl Verified {
    fn of(file: &Path, found: &Verification, repaired: Option<u64>) -> Self {
        Self {
            file: file.display().to_string(),
            state: match (found.is_whole(), found.is_torn()) {
                (true, _) => "whole",
                (_, true) => "torn",
                _ => "corrupt",
            },
            file_bytes: found.file_bytes,
            compression: found.compression.to_string(),
            format: found.format.map(|format| format.to_string()),
            messages: found.tally.messages,
            marks: found.tally.marks,
            gaps_lost: found.gaps_lost,
            bad_lines: found.tally.bad_lines(),
            frames: found.frames,
            proven_records: found.proven_records,
            proven_bytes: found.proven_bytes,
            index: match found.index {
                IndexState::Good(_) => "good",
                IndexState::Missing => "missing",
                IndexState::Joined => "joined",
                IndexState::Damaged => "damaged",
            },
            broken_frame: found.broken_frame,
            damage: found.damage.as_ref().map(ToString::to_string),
            repaired,
        }
    }

    fn for_people(&self) -> String {
        let records = self.messages + self.marks;
        let mut told = format!(
            "{}: {}, {} in {}",
            self.file,
            self.state,
            plural(records, "record"),
            bytes(self.file_bytes)
        );
        if let Some(damage) = &self.damage {
            told += &format!("\n  {damage}");
        }
        if let Some((from, to)) = self.broken_frame {
            told +=
                &format!("\n  the frame from byte {from} on is not good, as read up to byte {to}");
        }
        if self.state != "whole" {
            told += &format!(
                "\n  {} of {} proven by checksums, up to byte {} of the file",
                group(self.proven_records),
                plural(records, "readable record"),
                self.proven_bytes
            );
        }
        if self.gaps_lost > 0 {
            told += &format!(
                "\n  {} missing, as its recorder marked",
                plural(self.gaps_lost, "record")
            );
        }
        if self.bad_lines > 0 {
            let lines = plural(self.bad_lines, "bad line");
            told += &format!("\n  {lines}; `tidegate inspect` tells why");
        }
        if self.index == "damaged" {
            told += "\n  the index is damaged: a time is found by reading all before it";
        }
        if let Some(kept) = self.repaired {
            told += &format!("\n  repaired: {} kept", plural(kept, "record"));
        }
        told
    }
}
