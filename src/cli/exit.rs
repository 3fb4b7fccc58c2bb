//! The exit codes, and what is said on the way out: both decided here and nowhere else.

use std::io::Write as _;
use std::process::ExitCode;

use super::configuration::Unreadable;
use super::subscribe::Ended;
use super::terminal::OutputError;
use crate::config::ConfigErrors;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exit {
    /// Done, or stopped as asked.
    Done,
    /// A recording is damaged. A wrong command line has the same code; clap gives it.
    Damaged,
    /// It failed.
    Failed,
    /// The gateway cannot be reached, refused, or ended the connection (`EX_UNAVAILABLE` of
    /// sysexits.h).
    Unavailable,
    /// The configuration is wrong or cannot be read (`EX_CONFIG` of sysexits.h).
    Configuration,
}

impl Exit {
    #[cfg(test)]
    pub(super) const ALL: [Self; 5] =
        [Self::Done, Self::Damaged, Self::Failed, Self::Unavailable, Self::Configuration];

    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Damaged => 2,
            Self::Unavailable => 69,
            Self::Configuration => 78,
        }
    }

    /// The one that an error ends the program with.
    fn of(error: &anyhow::Error) -> Self {
        if error.chain().any(|cause| cause.is::<ConfigErrors>() || cause.is::<Unreadable>()) {
            Self::Configuration
        } else if error.chain().any(|cause| cause.is::<Ended>()) {
            Self::Unavailable
        } else if is_unread(error) {
            Self::Done
        } else {
            Self::Failed
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Says on standard error what went wrong, and answers what to exit with.
pub(super) fn report(error: &anyhow::Error) -> Exit {
    if !is_unread(error) {
        say(&message(error));
    }
    Exit::of(error)
}

/// Writes to standard error. There is nowhere to complain if that fails.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Whether nobody reads the output any more, as with `| head`: no fault, and nothing to say.
fn is_unread(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref()).any(OutputError::is_unread)
}

fn message(error: &anyhow::Error) -> String {
    match error.chain().find_map(|cause| cause.downcast_ref::<ConfigErrors>()) {
        Some(errors) => problems(errors),
        None => format!("tidegate: {}", chain(error)),
    }
}

/// The error and its causes, each told once: many an error tells its cause itself.
pub(super) fn chain(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

/// All problems of a configuration, and how many they are.
fn problems(errors: &ConfigErrors) -> String {
    let count = match errors.errors.len() {
        1 => "1 problem".to_owned(),
        many => format!("{many} problems"),
    };
    let lines: Vec<String> = problem_lines(errors).collect();
    let file = errors.file.display();
    format!("{}\ntidegate: {count} in the configuration {file}", lines.join("\n"))
}

/// Each problem of a configuration as `FILE:LINE:COLUMN: key: message`, which editors can jump to.
pub(super) fn problem_lines(errors: &ConfigErrors) -> impl Iterator<Item = String> + '_ {
    let file = errors.file.display();
    errors.errors.iter().map(move |error| {
        let line = error.line.map(|line| format!("{line}:")).unwrap_or_default();
        let column = error.column.map(|column| format!("{column}:")).unwrap_or_default();
        let key = if error.key.is_empty() { String::new() } else { format!(" {}:", error.key) };
        format!("{file}:{line}{column}{key} {}", error.message)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::config::{Source, VENUES};

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow!("no such file").context("opening x: no such file").context("reading");
        assert_eq!(chain(&error), "reading: opening x: no such file");
        assert_eq!(chain(&anyhow!("b").context("a")), "a: b");
    }

    #[test]
    fn problems_of_a_configuration_are_places_that_an_editor_can_jump_to() {
        let errors =
            Source::file("my.toml", VENUES).parse(b"[gateway]\nlissten = 1\n").unwrap_err();
        let error = anyhow::Error::from(errors);
        let told = message(&error);
        assert!(told.starts_with("my.toml:"), "{told}");
        assert!(told.contains("my.toml:2:1: gateway.lissten: is not a known key"), "{told}");
        assert!(told.ends_with("problems in the configuration my.toml"), "{told}");
        assert_eq!(Exit::of(&error), Exit::Configuration);
        assert_eq!(Exit::of(&error.context("while starting")), Exit::Configuration);
    }

    #[test]
    fn an_output_that_nobody_reads_is_no_failure() {
        let unread = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(Exit::of(&OutputError(unread).into()), Exit::Done);
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert_eq!(Exit::of(&OutputError(full).into()), Exit::Failed);
        assert_eq!(Exit::of(&anyhow!("anything")), Exit::Failed);
    }
}
