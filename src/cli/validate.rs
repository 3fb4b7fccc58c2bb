//! `validate` and `config`: a configuration checked, and the one to start from.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::configuration::{Loaded, Recordings, load};
use super::exit::{Exit, problem_lines, say};
use super::terminal::{plural, print};
use crate::config::{EMBEDDED_DEFAULT, Settings};

const AFTER_HELP: &str = "\
All problems are reported at once on standard error, one a line as FILE:LINE:COLUMN: key: message, \
and the exit code is then 78. Recordings that are not there are warned of; with --recordings they \
are problems too, as they are for serve.

Examples:
  tidegate validate my.toml
  tidegate validate my.toml --show        the settings in force, defaults filled in";

/// Arguments of `validate`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ValidateArgs {
    /// The configuration
    #[arg(value_name = "FILE", required_unless_present = "config")]
    file: Option<PathBuf>,
    /// The same, as serve spells it
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    /// Recordings that are not there are problems
    #[arg(long)]
    recordings: bool,
    /// Print the settings in force as TOML, instead of ok
    #[arg(long)]
    show: bool,
}

pub(super) fn run(args: &ValidateArgs) -> anyhow::Result<Exit> {
    let file = args.file.as_ref().or(args.config.as_ref()).context("no file was named")?;
    let recordings = if args.recordings { Recordings::Required } else { Recordings::Ignored };
    let Loaded { source, content, settings } = load(file, recordings)?;
    if let Err(absent) = source.parse_with_files(&content) {
        for line in problem_lines(&absent) {
            say(&format!("warning: {line}"));
        }
    }
    let text = if args.show {
        settings.to_toml().context("writing the settings as TOML")?
    } else {
        format!("ok: {}: {}\n", file.display(), summary(&settings))
    };
    print(text.as_bytes())?;
    Ok(Exit::Done)
}

/// Prints the documented default.
pub(super) fn print_default() -> anyhow::Result<Exit> {
    print(EMBEDDED_DEFAULT.as_bytes())?;
    Ok(Exit::Done)
}

fn summary(settings: &Settings) -> String {
    let names: Vec<&str> = settings.feeds.iter().map(|feed| feed.name.as_str()).collect();
    format!(
        "{} ({}), gateway {}, admin {}",
        plural(names.len() as u64, "feed"),
        names.join(", "),
        settings.gateway.listen,
        settings.admin.listen,
    )
}
