//! Logs: to standard error, as much as was asked for.

use std::io::{IsTerminal as _, stderr};

use anyhow::anyhow;
use clap::{ArgAction, Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use super::terminal;

/// Every command has these.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub(super) struct LogArgs {
    /// Log more; twice for everything
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,
    /// Log less; twice for errors only, three times for nothing
    #[arg(short, long, global = true, action = ArgAction::Count)]
    quiet: u8,
    /// What to log, instead of -v and -q: error, warn, info, debug, trace or off, also by part, as
    /// warn,tidegate::feed=debug
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        env = "TIDEGATE_LOG",
        hide_env_values = true,
        value_parser = filter
    )]
    log: Option<String>,
    /// How log lines are written
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    log_format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

impl LogArgs {
    /// Begins to log. A program that `serves` tells what happens, another only what is wrong.
    pub(super) fn start(&self, serves: bool) -> anyhow::Result<()> {
        let directives = match self.log.as_deref() {
            Some(given) if !given.trim().is_empty() => given.to_owned(),
            _ => self.level(serves),
        };
        let builder = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::try_new(directives)?)
            .with_writer(stderr)
            .with_ansi(terminal::is_coloured(stderr().is_terminal()));
        match self.log_format {
            Format::Text => builder.try_init(),
            Format::Json => builder.json().flatten_event(true).try_init(),
        }
        .map_err(|error| anyhow!("starting to log: {error}"))
    }

    fn level(&self, serves: bool) -> String {
        const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
        let normal = if serves { 3 } else { 2 };
        let level = usize::saturating_sub(normal + usize::from(self.verbose), self.quiet.into());
        let level = level.min(LEVELS.len() - 1);
        // What the libraries below have to say is seldom wanted before everything is.
        let others = if level == LEVELS.len() - 1 { level } else { level.min(2) };
        format!("{},tidegate={}", LEVELS[others], LEVELS[level])
    }
}

fn filter(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "{error}; write a level (error, warn, info, debug, trace, off) or part=level, \
             with commas between"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(verbose: u8, quiet: u8, serves: bool) -> String {
        LogArgs { verbose, quiet, log: None, log_format: Format::Text }.level(serves)
    }

    #[test]
    fn more_and_less_move_the_level_from_what_the_command_wants() {
        assert_eq!(level(0, 0, true), "warn,tidegate=info");
        assert_eq!(level(0, 0, false), "warn,tidegate=warn");
        assert_eq!(level(1, 0, true), "warn,tidegate=debug");
        assert_eq!(level(9, 0, true), "trace,tidegate=trace");
        assert_eq!(level(0, 2, true), "error,tidegate=error");
        assert_eq!(level(0, 9, true), "off,tidegate=off");
    }

    #[test]
    fn what_is_no_level_is_refused_with_what_would_be_right() {
        assert!(filter("warn,tidegate::feed=debug").is_ok());
        assert!(filter("tidegate=loud").unwrap_err().contains("debug"));
    }
}
