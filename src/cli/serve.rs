//! `serve`, and what `tidegate` alone does.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::configuration::{Loaded, Recordings, load};
use super::exit::Exit;
use crate::app::{Plan, Program};
use crate::config::{EMBEDDED_DEFAULT, Settings, Source, VENUES};

const AFTER_HELP: &str = "\
Once it is ready, one line on standard output tells the gateway's and then the operators' address. \
It goes on serving after recordings have ended. The configuration is read again when it is saved, \
on SIGHUP, and on POST /-/reload; SIGTERM and Ctrl-C end it in good order.

Examples:
  tidegate serve --config my.toml
  tidegate serve --listen 127.0.0.1:0     the default, on a port that the system chooses";

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ServeArgs {
    /// The configuration; without it, the default inside the program is served
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    listen: ListenArgs,
}

/// Where to listen, whatever the configuration says.
#[derive(Debug, Args)]
pub(super) struct ListenArgs {
    /// Where subscribers connect, whatever is configured (the default is 127.0.0.1:9010); port 0:
    /// any that is free
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Where operators connect, whatever is configured (the default is 127.0.0.1:9011); port 0:
    /// any that is free
    #[arg(long, value_name = "ADDR:PORT")]
    admin_listen: Option<SocketAddr>,
}

impl ListenArgs {
    /// Puts the addresses that were given in place.
    pub(super) fn apply(&self, settings: &mut Settings) {
        if let Some(address) = self.listen {
            settings.gateway.listen = address;
        }
        if let Some(address) = self.admin_listen {
            settings.admin.listen = address;
        }
    }
}

/// Serves the default and says what to try next.
pub(super) fn run_default() -> anyhow::Result<Exit> {
    Program::prepare()?.run(Plan { hint: true, ..default_plan() })?;
    Ok(Exit::Done)
}

pub(super) fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    let program = Program::prepare()?;
    let mut plan = match &args.config {
        None => default_plan(),
        Some(file) => {
            let Loaded { source, content, settings } = load(file, Recordings::Required)?;
            Plan { settings, source, content: Some(content), hint: false }
        }
    };
    args.listen.apply(&mut plan.settings);
    program.run(plan)?;
    Ok(Exit::Done)
}

fn default_plan() -> Plan {
    Plan {
        settings: Settings::embedded(),
        source: Source::embedded(VENUES),
        content: Some(EMBEDDED_DEFAULT.as_bytes().to_vec()),
        hint: false,
    }
}
