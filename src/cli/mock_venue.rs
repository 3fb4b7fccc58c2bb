//! `mock-venue`: a recording served in the venue's own dialect.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use super::{terminal, values};
use crate::app::mock::{MockPlan, play};
use crate::app::reproduce;
use crate::config::Speed;
use crate::venue;

const AFTER_HELP: &str = "\
A client that speaks the venue's subscribe messages gets the recording as if it were live: only the \
channels and instruments that it asks for, acknowledged as the venue does. The recording begins with \
the first subscription; connections stay open at its end.

Examples:
  tidegate mock-venue monday.jsonl.zst --venue kraken --listen 127.0.0.1:9020
  tidegate mock-venue btc.gz eth.gz --speed 10 --loop";

/// Arguments of `mock-venue`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct MockVenueArgs {
    /// The recordings, merged by receive time
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The venue whose messages they hold, and whose dialect is spoken
    #[arg(long, default_value = "binance", value_parser = values::venue())]
    venue: String,
    /// Where to listen; port 0 takes any free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9020")]
    listen: SocketAddr,
    /// How fast to play: 1 as recorded, 2 twice as fast, max as fast as possible
    #[arg(
        long,
        value_name = "N|max",
        default_value = "1",
        value_parser = values::speed,
        allow_negative_numbers = true
    )]
    speed: Speed,
    /// Start again at the end
    #[arg(long = "loop")]
    looped: bool,
    /// Longest pause between two records, in the recording's time
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    max_gap: Duration,
}

pub(super) fn run(args: &MockVenueArgs) -> anyhow::Result<Exit> {
    let Some(venue) = venue::find(&args.venue).filter(|venue| venue.desk().is_some()) else {
        bail!("the venue {} has no dialect to speak", args.venue);
    };
    let recordings =
        args.files.iter().map(|file| reproduce::open(file)).collect::<anyhow::Result<_>>()?;
    let plan = MockPlan {
        venue,
        listen: args.listen,
        recordings,
        speed: match args.speed {
            Speed::Max => crate::feed::Speed::Max,
            Speed::Times(factor) => crate::feed::Speed::times(factor)?,
        },
        looped: args.looped,
        max_gap: if args.max_gap.is_zero() { Duration::MAX } else { args.max_gap },
    };
    play(plan, &CancellationToken::new(), |mock| {
        let line = format!("tidegate mocks {} at {}\n", venue.name, mock.url());
        // Nobody may be reading, which is no reason not to serve.
        let _ = terminal::print(line.as_bytes());
    })?;
    Ok(Exit::Done)
}
