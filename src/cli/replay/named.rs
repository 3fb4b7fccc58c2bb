//! A recording on the command line, with or without the name of its venue.

use std::path::PathBuf;

use anyhow::bail;

use crate::config::VENUES;

/// A recording and the venue it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) venue: String,
    pub(super) file: PathBuf,
}

impl Named {
    /// Reads `FILE` or `VENUE=FILE`; a prefix that is no venue belongs to the file's name.
    pub(super) fn read(argument: &str, venue: &str) -> Self {
        match argument.split_once('=') {
            Some((prefix, file)) if VENUES.contains(&prefix) && !file.is_empty() => {
                Self { venue: prefix.to_owned(), file: file.into() }
            }
            _ => Self { venue: venue.to_owned(), file: argument.into() },
        }
    }
}

/// Of the instruments named, those that a venue may have: with its own prefix, which is taken off,
/// or without any.
pub(super) fn instruments_of(venue: &str, names: &[String]) -> Vec<String> {
    let symbol = |name: &String| match name.split_once(':') {
        Some((prefix, symbol)) if VENUES.contains(&prefix) => {
            (prefix == venue).then(|| symbol.to_owned())
        }
        _ => Some(name.clone()),
    };
    names.iter().filter_map(symbol).collect()
}

/// Refuses names that would leave nothing of a recording, or are of none.
pub(super) fn check_instruments(names: &[String], recordings: &[Named]) -> anyhow::Result<()> {
    for Named { venue, file } in recordings {
        if !names.is_empty() && instruments_of(venue, names).is_empty() {
            bail!("--instruments names none of {venue}, and {} is read as its", file.display());
        }
    }
    for name in names {
        let of_one =
            |named: &Named| !instruments_of(&named.venue, std::slice::from_ref(name)).is_empty();
        if !recordings.iter().any(of_one) {
            bail!("--instruments {name}: no recording is of that venue");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruments_go_to_the_venues_that_may_have_them() {
        let names = ["BTCUSDT".to_owned(), "kraken:XBT/USD".to_owned()];
        assert_eq!(instruments_of("binance", &names), ["BTCUSDT"]);
        assert_eq!(instruments_of("kraken", &names), ["BTCUSDT", "XBT/USD"]);
        let binance = [Named { venue: "binance".into(), file: "a".into() }];
        let error = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            check_instruments(&names, &binance).unwrap_err().to_string()
        };
        check_instruments(&names[..1], &binance).unwrap();
        check_instruments(&[], &binance).unwrap();
        assert!(error(&["kraken:XBT/USD"]).contains("none of binance"));
        assert!(error(&["BTCUSDT", "kraken:XBT/USD"]).contains("no recording is of that venue"));
    }

    #[test]
    fn a_venue_before_the_file_is_taken_off() {
        let read = |argument| {
            let Named { venue, file } = Named::read(argument, "binance");
            (venue, file.to_str().unwrap().to_owned())
        };
        assert_eq!(read("a.gz"), ("binance".into(), "a.gz".into()));
        assert_eq!(read("binance-cm=a.gz"), ("binance-cm".into(), "a.gz".into()));
        assert_eq!(read("day=1/a.gz"), ("binance".into(), "day=1/a.gz".into()));
        assert_eq!(read("./binance=a"), ("binance".into(), "./binance=a".into()));
    }
}
