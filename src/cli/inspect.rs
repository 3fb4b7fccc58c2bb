//! `inspect`: what recordings hold.

mod contents;
mod show;
mod stream;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{Exit, chain, say};
use super::terminal::{Paint, Progress, Unit, print};
use super::values;
use crate::feed::{OpenError, Reader, RecordKind, inspect};
use contents::{Contents, Counter};

const AFTER_HELP: &str = "\
Exit codes: 0 if all is whole, 2 if a recording is damaged, 1 if one cannot be opened. Bad lines \
and refused messages are counted, with their reasons; they are no damage.

Examples:
  tidegate inspect monday.jsonl.zst
  tidegate inspect perp.gz --venue binance-usdm
  tidegate inspect *.gz --json | jq '{file, quotes, refused, damage}'";

/// Arguments of `inspect`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct InspectArgs {
    /// The recordings, each told for itself; - for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The venue whose messages they hold
    #[arg(long, default_value = "binance", value_parser = values::venue())]
    venue: String,
    /// Whose fills they carry, if the messages do not say
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Print one JSON object a line for each recording
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &InspectArgs) -> anyhow::Result<Exit> {
    let paint = Paint::stdout();
    let mut worst = Exit::Done;
    for (at, file) in args.files.iter().enumerate() {
        let contents = match open(file) {
            Ok((reader, length)) => read(reader, length, args),
            Err(error) => {
                say(&format!("tidegate: {}", chain(&error.into())));
                worst = worst.max(Exit::Failed);
                continue;
            }
        };
        if contents.damage.is_some() {
            worst = worst.max(Exit::Damaged);
        }
        let text = if args.json {
            serde_json::to_string(&contents)? + "\n"
        } else {
            let space = if at == 0 { "" } else { "\n" };
            format!("{space}{}", show::for_people(&contents, paint))
        };
        print(text.as_bytes())?;
    }
    Ok(worst)
}

/// A recording, and how many bytes it has, if that is known.
fn open(file: &Path) -> Result<(Reader, u64), OpenError> {
    if file.as_os_str() == "-" {
        let reader = Reader::from_reader("(standard input)", Box::new(io::stdin()))?;
        return Ok((reader, 0));
    }
    let length = std::fs::metadata(file).map_or(0, |data| data.len());
    Ok((Reader::open(file)?, length))
}

fn read(mut reader: Reader, length: u64, args: &InspectArgs) -> Contents {
    let mut progress = Progress::new(reader.name().to_owned(), length, Unit::Bytes);
    let mut counter = Counter::new(&args.venue, args.account.clone());
    let mut messages = 0_u64;
    let inspection = inspect(&mut reader, |record, used| {
        if record.kind == RecordKind::Message {
            counter.message(record);
            messages += 1;
            if messages.is_multiple_of(4096) {
                progress.at(used, messages);
            }
        }
    });
    drop(progress);
    counter.finish(&inspection)
}
