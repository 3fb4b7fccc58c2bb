//! A recording on the command line, with or without the name of its venue.

use std::path::PathBuf;

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

#[cfg(test)]
mod tests {
    use super::*;

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
