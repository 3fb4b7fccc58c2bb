//! The command line: what a person types, turned into a run of one of the parts.
//!
//! | command | does | module |
//! |---|---|---|
//! | (none) | serves the default inside the program, and says what to try next | `serve` |
//! | `serve` | serves a configuration | `serve` |
//! | `replay` | serves recordings, without a configuration | `replay` |
//! | `subscribe` | prints the quotes of a running gateway | `subscribe` |
//! | `inspect` | tells what recordings hold | `inspect` |
//! | `record` | writes down what feeds receive | `record` |
//! | `convert`, `cut`, `merge` | write recordings anew | `rewrite` |
//! | `verify` | tells whether recordings are whole, and repairs them | `verify` |
//! | `simulate` | makes a recording | `simulate` |
//! | `validate` | checks a configuration | `validate` |
//! | `config` | prints the documented default configuration | `validate` |
//! | `completions`, `man` | what a shell and a manual want | `manual` |
//!
//! What a command is for goes to standard output; everything said *about* it (logs, progress,
//! summaries, errors) goes to standard error. Whoever reads the output may stop reading at any
//! time: that ends the program quietly. Exit codes are decided in one place, `exit`:
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done, or stopped as asked |
//! | 1 | it failed; standard error says why |
//! | 2 | the command line is wrong, or a recording that was read is damaged |
//! | 69 | `subscribe`: the gateway cannot be reached, refused, or ended the connection |
//! | 78 | the configuration is wrong or cannot be read |

mod configuration;
mod exit;
mod inspect;
mod log;
mod manual;
mod mock_venue;
mod output;
mod record;
mod replay;
mod rewrite;
mod serve;
mod simulate;
mod subscribe;
mod table;
mod terminal;
mod validate;
mod values;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use exit::Exit;

/// Runs the program on its command line. Answers its exit code; `--help`, `--version` and a wrong
/// command line end the process from within.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = cli.log.start(cli.command.as_ref().is_none_or(Command::serves));
    match outcome.and_then(|()| run(cli.command)) {
        Ok(exit) => exit.into(),
        Err(error) => exit::report(&error).into(),
    }
}

const ABOUT: &str = "A market-data conflation gateway";

const LONG_ABOUT: &str = "\
A market-data conflation gateway: venue ticks come in, and each WebSocket subscriber gets the \
newest quote of every instrument it asked for, as fast as it can take them.

Without a command, tidegate serves the configuration inside the program: a minute of simulated \
ticks, over and over, on ws://127.0.0.1:9010/v1/stream, with the operators' side on \
http://127.0.0.1:9011.";

const AFTER_HELP: &str = "\
Examples:
  tidegate                                      serve a simulated market
  tidegate subscribe ws://127.0.0.1:9010/v1/stream 'binance:*'
                                                watch it, in a second terminal
  tidegate config > my.toml                     start a configuration of your own
  tidegate serve --config my.toml               serve it
  tidegate replay monday.jsonl.zst --speed 10   serve a recording, ten times as fast
  tidegate replay monday.jsonl.zst --digest     what a subscriber gets of it, the same every time

Exit codes:
   0  done, or stopped as asked
   1  it failed; standard error says why
   2  the command line is wrong, or a recording that was read is damaged
  69  subscribe: the gateway cannot be reached, refused, or ended the connection
  78  the configuration is wrong or cannot be read";

#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = AFTER_HELP,
    max_term_width = 100,
    disable_help_subcommand = true,
    infer_subcommands = true
)]
struct Cli {
    #[command(flatten)]
    log: log::LogArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a configuration to WebSocket subscribers
    Serve(serve::ServeArgs),
    /// Serve recordings, without a configuration file
    Replay(replay::ReplayArgs),
    /// Connect to a gateway and print the quotes it sends
    Subscribe(subscribe::SubscribeArgs),
    /// Tell what recordings hold: counts, instruments, span, damage
    Inspect(inspect::InspectArgs),
    /// Record what the feeds of a configuration receive
    Record(record::RecordArgs),
    /// Write a recording in another format
    Convert(rewrite::ConvertArgs),
    /// Keep a range of time or some instruments of a recording
    Cut(rewrite::CutArgs),
    /// Merge recordings by receive time
    Merge(rewrite::MergeArgs),
    /// Check that recordings are whole, and repair torn ones
    Verify(verify::VerifyArgs),
    /// Make a recording of a simulated market
    Simulate(simulate::SimulateArgs),
    /// Serve recordings in the venue's own dialect, as if they were live
    MockVenue(mock_venue::MockVenueArgs),
    /// Check a configuration file without serving it
    Validate(validate::ValidateArgs),
    /// Print the documented default configuration
    Config,
    /// Print a completion script for a shell
    Completions(manual::CompletionsArgs),
    /// Print the manual page, or write all of them to a folder
    Man(manual::ManArgs),
}

impl Command {
    /// Whether it runs for long, so that what happens is worth a line.
    const fn serves(&self) -> bool {
        match self {
            Self::Serve(_) | Self::Record(_) | Self::MockVenue(_) => true,
            Self::Replay(args) => args.serves(),
            _ => false,
        }
    }
}

fn run(command: Option<Command>) -> anyhow::Result<Exit> {
    match command {
        None => serve::run_default(),
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Replay(args)) => replay::run(&args),
        Some(Command::Subscribe(args)) => subscribe::run(&args),
        Some(Command::Inspect(args)) => inspect::run(&args),
        Some(Command::Record(args)) => record::run(&args),
        Some(Command::Convert(args)) => rewrite::convert(&args),
        Some(Command::Cut(args)) => rewrite::cut(&args),
        Some(Command::Merge(args)) => rewrite::merge(&args),
        Some(Command::Verify(args)) => verify::run(&args),
        Some(Command::Simulate(args)) => simulate::run(&args),
        Some(Command::MockVenue(args)) => mock_venue::run(&args),
        Some(Command::Validate(args)) => validate::run(&args),
        Some(Command::Config) => validate::print_default(),
        Some(Command::Completions(args)) => manual::completions(&args, &mut Cli::command()),
        Some(Command::Man(args)) => manual::man(&args, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_free_of_contradictions() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_and_this_module_tell_every_exit_code() {
        let module = include_str!("cli.rs");
        for exit in Exit::ALL {
            let code = exit.code();
            assert!(AFTER_HELP.lines().any(|line| line.starts_with(&format!("  {code:>2}  "))));
            assert!(module.contains(&format!("//! | {code} | ")), "{code}");
        }
    }

    #[test]
    fn no_command_is_a_command_and_a_beginning_of_one_will_do() {
        assert!(Cli::try_parse_from(["tidegate"]).unwrap().command.is_none());
        let cli = Cli::try_parse_from(["tidegate", "insp", "a", "b", "-v"]).unwrap();
        assert!(matches!(cli.command, Some(Command::Inspect(_))));
        assert!(Cli::try_parse_from(["tidegate", "s"]).is_err(), "of several");
    }
}
