//! `replay`: recordings served without a configuration.

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};

mod digest;
mod named;

use super::exit::Exit;
use super::serve::ListenArgs;
use super::values;
use crate::app::{Plan, Program};
use crate::config::{FeedSettings, Input, Recording, Settings, Source, Speed, Start, VENUES};
use crate::feed::Reader;
use crate::ingest::about;
use digest::{DigestArgs, Play};
use named::Named;

const AFTER_HELP: &str = "\
Packing (plain, gzip, zstd) and format (Tidegate's own, `<time> <raw text>` lines, plain JSON \
lines) are told by content. Several files are merged by receive time.

A time is 2026-01-05T10:00:00Z, with a fraction if need be, or digits since 1970: up to 11 are s, 12 \
to 14 ms, 15 to 17 us, from 18 on ns. Records of the first time are in, those of the last are not. \
What is about no instrument, such as a mark of a disconnect, is played whatever --instruments says.

While it plays, PATCH /v1/feeds/replay/replay of the admin address holds it, lets it go on, jumps and \
changes the speed.

Examples:
  tidegate replay monday.jsonl.zst
  tidegate replay btc.gz eth.gz --speed max --start first-subscriber
  tidegate replay binance=spot.gz binance-usdm=perp.gz
  tidegate replay btc.gz --from 2026-01-05T10:00:00Z --to 2026-01-05T10:05:00Z --instruments BTCUSDT
  tidegate replay perp.gz --venue binance-usdm --loop --speed 5
  tidegate replay btc.gz --digest --subscriber 'binance:*,max_hz=10,capacity=2,reads=64KiB'";

/// Arguments of `replay`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ReplayArgs {
    /// The recordings, each with its venue where that is not --venue's
    #[arg(value_name = "[VENUE=]FILE", required = true)]
    files: Vec<String>,
    /// The venue whose messages they hold
    #[arg(long, default_value = "binance", value_parser = values::venue())]
    venue: String,
    /// How fast to play: 1 as recorded (the default), 2 twice as fast, max as fast as possible
    #[arg(
        long,
        value_name = "N|max",
        value_parser = values::speed,
        allow_negative_numbers = true
    )]
    speed: Option<Speed>,
    /// Start again at the end
    #[arg(long = "loop", conflicts_with = "digest")]
    looped: bool,
    /// When to begin
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = When::AtOnce)]
    start: When,
    /// Longest pause between two records, in the recording's time; 0s: as recorded
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = max_gap)]
    max_gap: Duration,
    /// Play only what was received then or later
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    from: Option<i64>,
    /// Play only what was received before then
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    to: Option<i64>,
    /// Play only these instruments, as BTCUSDT, kraken:BTC/USD or ETH*; may be several
    #[arg(long, value_name = "NAME", num_args = 1..)]
    instruments: Vec<String>,
    /// Whose fills the recordings carry, if their messages do not say
    #[arg(long, value_name = "NAME", value_parser = account)]
    account: Option<String>,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    digest: DigestArgs,
}

impl ReplayArgs {
    /// Whether it serves, rather than print a digest.
    pub(super) const fn serves(&self) -> bool {
        !self.digest.digest
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum When {
    /// With the program
    AtOnce,
    /// With the first subscriber
    FirstSubscriber,
}

pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    // Signals first: none kills while recordings are looked at, unless nothing is to be served.
    let program = if args.digest.digest { None } else { Some(Program::prepare()?) };
    let recordings = recordings(args);
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        bail!("--from is not before --to, so that nothing is left");
    }
    named::check_instruments(&args.instruments, &recordings)?;
    for (at, named) in recordings.iter().enumerate() {
        if recordings[..at].iter().any(|before| before.file == named.file) {
            bail!("{} is named twice", named.file.display());
        }
        check(&named.file)?;
    }
    let Some(program) = program else {
        let play = Play {
            recordings: &recordings,
            account: args.account.as_deref(),
            max_gap: args.max_gap,
            speed: args.speed,
            selected: &|venue| {
                let only = named::instruments_of(venue, &args.instruments);
                about::selection(venue, args.from, args.to, &only).map_err(Into::into)
            },
        };
        return digest::run(&args.digest, &play);
    };
    program.run(Plan {
        settings: settings(args),
        source: Source::embedded(VENUES),
        content: None,
        hint: false,
    })?;
    Ok(Exit::Done)
}

fn recordings(args: &ReplayArgs) -> Vec<Named> {
    args.files.iter().map(|file| Named::read(file, &args.venue)).collect()
}

/// Refuses what is no recording before anything is started.
fn check(file: &Path) -> anyhow::Result<()> {
    if file.is_dir() {
        bail!("opening recording {}: it is a folder; name the files in it", file.display());
    }
    Reader::open(file)?;
    Ok(())
}

/// A feed for each venue; all of them play on one timeline.
fn settings(args: &ReplayArgs) -> Settings {
    let named = recordings(args);
    let mut feeds: Vec<FeedSettings> = Vec::new();
    for Named { venue, file } in &named {
        let recording = Recording::File(file.clone());
        match feeds.iter_mut().find(|feed| feed.venue == *venue) {
            Some(FeedSettings { input: Input::Recording(recordings), .. }) => {
                recordings.push(recording);
            }
            _ => feeds.push(FeedSettings {
                account: args.account.clone(),
                speed: args.speed.unwrap_or(Speed::Times(1.0)),
                looped: args.looped,
                start: match args.start {
                    When::AtOnce => Start::AtOnce,
                    When::FirstSubscriber => Start::FirstSubscriber,
                },
                max_gap: args.max_gap,
                from: args.from,
                to: args.to,
                only: named::instruments_of(venue, &args.instruments),
                ..FeedSettings::new("replay", venue, Input::Recording(vec![recording]))
            }),
        }
    }
    if feeds.len() > 1 {
        for feed in &mut feeds {
            feed.name = format!("replay-{}", feed.venue);
            feed.timeline = Some("replay".to_owned());
        }
    }
    let mut settings = Settings { feeds, ..Settings::embedded() };
    args.listen.apply(&mut settings);
    settings
}

fn max_gap(text: &str) -> Result<Duration, String> {
    const MOST: Duration = Duration::from_secs(24 * 3600);
    let gap = values::duration(text)?;
    if gap > MOST { Err("write at most 24h".to_owned()) } else { Ok(gap) }
}

fn account(text: &str) -> Result<String, String> {
    if (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err("write 1 to 64 visible ASCII characters".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ReplayArgs,
    }

    fn of(line: &str) -> Settings {
        settings(&Line::try_parse_from(line.split(' ')).unwrap().args)
    }

    #[test]
    fn what_is_not_asked_for_is_as_documented() {
        let recording = vec![Recording::File("a.gz".into())];
        let expected = Settings {
            feeds: vec![FeedSettings::new("replay", "binance", Input::Recording(recording))],
            ..Settings::embedded()
        };
        assert_eq!(of("replay a.gz"), expected);
    }

    #[test]
    fn every_option_reaches_the_settings() {
        let settings = of("replay a b --venue binance-cm --speed max --loop --max-gap 2s \
             --start first-subscriber --account desk-1 --listen 127.0.0.1:0 --admin-listen [::1]:7");
        assert_eq!(settings.gateway.listen.to_string(), "127.0.0.1:0");
        assert_eq!(settings.admin.listen.to_string(), "[::1]:7");
        let feed = &settings.feeds[0];
        assert_eq!(feed.venue, "binance-cm");
        assert_eq!((feed.speed, feed.looped), (Speed::Max, true));
        assert_eq!(feed.start, Start::FirstSubscriber);
        assert_eq!(feed.max_gap, Duration::from_secs(2));
        assert_eq!(feed.account.as_deref(), Some("desk-1"));
        assert_eq!(feed.input.recordings().unwrap().len(), 2);
    }

    #[test]
    fn settings_made_from_options_pass_the_checks_of_a_file() {
        let settings = of("replay a b --speed 0.5 --max-gap 0s --account desk-1 \
             --from 2026-01-05T10:00:00.5Z --to 1767607260 --instruments BTCUSDT binance:ETH*");
        let text = settings.to_toml().unwrap();
        let checked = Source::embedded(VENUES).parse(text.as_bytes()).unwrap();
        assert_eq!(checked, settings);
        let feed = &checked.feeds[0];
        let time = Some(1_767_607_200_500_000_000);
        assert_eq!((feed.from, feed.to), (time, Some(1_767_607_260_000_000_000)));
        assert_eq!(feed.only, ["BTCUSDT", "ETH*"]);
    }
}
