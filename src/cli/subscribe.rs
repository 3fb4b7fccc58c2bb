//! `subscribe`: a client of the gateway's protocol, for looking and for scripts.

mod ended;
mod message;
mod show;
mod socket;

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tungstenite::Message;

pub(super) use ended::Ended;

use super::exit::{Exit, say};
use super::terminal::{OutputError, Paint, is_coloured};
use super::values;
use show::{Form, Show};
use socket::Socket;

const AFTER_HELP: &str = "\
A line tells the time of receipt (UTC), the instrument, bid × size, ask × size, the last trade, the \
instrument's tick, and how many ticks were conflated into this one since the line before. Whoever \
reads slowly gets fewer lines, each with newer prices. Where the gateway wants batches acknowledged \
(confirm = \"client\"), they are, once printed.

--json prints one object a line: a quote or a volume with its batch's members beside it, any other \
message as it came.

Examples:
  tidegate subscribe ws://127.0.0.1:9010/v1/stream 'binance:*'
  tidegate subscribe localhost:9010 binance:BTCUSDT binance:ETHUSDT --max-hz 2
  tidegate subscribe localhost:9010 --volume desk-1 --volume desk-2
  tidegate subscribe localhost:9010 'binance:*' --json --count 100 | jq -r .instrument";

/// Arguments of `subscribe`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct SubscribeArgs {
    /// The gateway: ws://HOST:PORT/v1/stream, or HOST:PORT
    #[arg(value_parser = socket::url)]
    url: String,
    /// Instruments as venue:SYMBOL, or all of a venue as 'venue:*'
    #[arg(value_name = "NAME", required_unless_present = "volume")]
    names: Vec<String>,
    /// Volume of an account, or of all with '*'; may be given several times
    #[arg(long, value_name = "ACCOUNT")]
    volume: Vec<String>,
    /// Batches a second, at most; the gateway may have a lower ceiling
    #[arg(long, value_name = "N", value_parser = values::max_hz, allow_negative_numbers = true)]
    max_hz: Option<f64>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    /// Print every message just as it came, one a line
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// End after this many quotes and volumes (with --raw: messages that hold some)
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Withhold acknowledgements, to see what becomes of a client that does
    #[arg(long)]
    no_ack: bool,
}

/// How long a polite goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// The ids of the operations that are sent.
const QUOTES: &str = "quotes";
const VOLUME: &str = "volume";
/// Answered after the others, which tells that they have been.
const ANSWERED: &str = "answered";

pub(super) fn run(args: &SubscribeArgs) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let outcome = runtime.block_on(subscribe(args));
    // A write to an output that takes nothing more would hold up the end for ever.
    runtime.shutdown_background();
    outcome
}

async fn subscribe(args: &SubscribeArgs) -> anyhow::Result<Exit> {
    let form = match (args.json, args.raw) {
        (true, _) => Form::Json,
        (_, true) => Form::Raw,
        _ => Form::Lines,
    };
    let notes = Paint::from(is_coloured(io::stderr().is_terminal()));
    let mut show = Show::new(form, Paint::stdout(), notes, args.count);
    let stopped = async { tokio::signal::ctrl_c().await.context("waiting for Ctrl-C") };
    tokio::pin!(stopped);

    let mut socket = tokio::select! {
        socket = socket::connect(&args.url) => socket?,
        stopped = &mut stopped => return stopped.map(|()| Exit::Done),
    };
    let outcome = tokio::select! {
        outcome = follow(&mut socket, args, &mut show) => outcome,
        stopped = &mut stopped => stopped,
    };
    if !matches!(&outcome, Err(error) if error.is::<Ended>()) {
        socket::say_goodbye(&mut socket, GOODBYE).await;
    }
    if form == Form::Lines && show.printed() > 0 {
        // The terminal shows ^C at the beginning of this line otherwise.
        if io::stderr().is_terminal() {
            let _ = io::stderr().lock().write_all(b"\r");
        }
        say(&show.summary());
    }
    outcome.map(|()| Exit::Done)
}

/// Subscribes and prints until enough was printed.
async fn follow(socket: &mut Socket, args: &SubscribeArgs, show: &mut Show) -> anyhow::Result<()> {
    let mut out = tokio::io::stdout();
    let mut lines = Vec::new();
    for operation in operations(args) {
        send(socket, operation).await?;
    }
    while let Some(message) = socket.next().await {
        let text = match message.map_err(|error| Ended::broken(&error))? {
            Message::Text(text) => text,
            Message::Close(frame) => {
                socket::finish_closing(socket, GOODBYE).await;
                return Err(Ended::closed(frame.as_ref()).into());
            }
            // Pings are answered below this; a binary message is nothing that is asked for.
            _ => continue,
        };
        lines.clear();
        let effect = show.message(&text, &mut lines)?;
        if let Some(note) = effect.note {
            say(&note);
        }
        if !lines.is_empty() {
            out.write_all(&lines).await.map_err(OutputError)?;
            out.flush().await.map_err(OutputError)?;
        }
        if effect.refused {
            return Err(Ended::NothingSubscribed.into());
        }
        if show.is_enough() {
            return Ok(());
        }
        if let Some(batch) = effect.acknowledge.filter(|_| !args.no_ack) {
            send(socket, json!({"op": "ack", "batch": batch}).to_string()).await?;
        }
    }
    Err(Ended::closed(None).into())
}

async fn send(socket: &mut Socket, operation: String) -> Result<(), Ended> {
    socket.send(Message::text(operation)).await.map_err(|error| Ended::broken(&error))
}

/// What is said after connecting.
fn operations(args: &SubscribeArgs) -> Vec<String> {
    let mut operations = Vec::new();
    if !args.names.is_empty() {
        operations.push(json!({"op": "subscribe", "id": QUOTES, "instruments": args.names}));
    }
    if !args.volume.is_empty() {
        operations.push(
            json!({"op": "subscribe", "id": VOLUME, "channel": "volume", "accounts": args.volume}),
        );
    }
    if let (Some(max_hz), Some(first)) = (args.max_hz, operations.first_mut()) {
        first["max_hz"] = json!(max_hz);
    }
    operations.push(json!({"op": "ping", "id": ANSWERED}));
    operations.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: SubscribeArgs,
    }

    fn parsed(line: &str) -> Result<SubscribeArgs, clap::Error> {
        Line::try_parse_from(line.split(' ')).map(|line| line.args)
    }

    #[test]
    fn what_is_sent_is_what_was_asked_for() {
        let args = parsed("subscribe h:1 binance:A binance:* --volume d --max-hz 2.5").unwrap();
        assert_eq!(
            operations(&args),
            [
                r#"{"id":"quotes","instruments":["binance:A","binance:*"],"max_hz":2.5,"op":"subscribe"}"#,
                r#"{"accounts":["d"],"channel":"volume","id":"volume","op":"subscribe"}"#,
                r#"{"id":"answered","op":"ping"}"#,
            ]
        );
        let args = parsed("subscribe h:1 --volume * --max-hz 1").unwrap();
        assert_eq!(operations(&args).len(), 2);
        assert!(operations(&args)[0].contains("\"max_hz\":1.0"));
    }

    #[test]
    fn something_must_be_asked_for() {
        assert!(parsed("subscribe h:1").is_err());
        assert!(parsed("subscribe h:1 a:B --count 0").is_err());
        assert!(parsed("subscribe h:1 a:B --json --raw").is_err());
    }
}
