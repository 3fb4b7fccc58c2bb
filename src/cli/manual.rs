//! `completions` and `man`: the command line told to a shell and to a manual.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command};
use clap_complete::Shell;

use super::exit::{Exit, say};
use super::terminal::print;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate
  tidegate completions zsh > ~/.zfunc/_tidegate
  tidegate completions fish > ~/.config/fish/completions/tidegate.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tidegate man | man -l -
  tidegate man --out ~/.local/share/man/man1")]
pub(super) struct ManArgs {
    /// Write the pages of all commands into this folder, instead of printing the first
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub(super) fn completions(args: &CompletionsArgs, command: &mut Command) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "tidegate", &mut script);
    print(&script)?;
    Ok(Exit::Done)
}

pub(super) fn man(args: &ManArgs, command: Command) -> anyhow::Result<Exit> {
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).context("making the manual page")?;
        print(&page)?;
        return Ok(Exit::Done);
    };
    let writing = || format!("writing manual pages to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(writing)?;
    clap_mangen::generate_to(command, folder).with_context(writing)?;
    say(&format!("manual pages are in {}", folder.display()));
    Ok(Exit::Done)
}
