//! A feed's replay, shown and moved while it runs.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/feeds/NAME/replay` | where it is, how fast it goes, whether it is held |
//! | `PATCH /v1/feeds/NAME/replay` `{"paused":true}` | holds it, or lets it go on |
//! | `PATCH /v1/feeds/NAME/replay` `{"speed":2.5}` or `{"speed":"max"}` | another speed from here on |
//! | `PATCH /v1/feeds/NAME/replay` `{"seek":"2026-01-05T10:00:00Z"}` | jumps: the next record is the first received then or later |
//!
//! One change may have all three, and is taken whole or not at all. A time may also be digits since
//! 1970 (up to 11 are s, 12 to 14 ms, 15 to 17 us, from 18 on ns); 0 is the beginning. The feed obeys
//! within about 20 ms, so the answer shows what was asked for beside where the replay still is.
//! Feeds on one timeline have one replay, whichever of them is named.
//!
//! 400 says what is wrong with a change, 404 that there is no such feed, 409 that it plays no
//! recording, or that the recording is over.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;

use super::admin::Inner;
use super::answer::{Problem, json};
use super::change::Changes;
use super::limits::hertz;
use crate::config::parse_wall_time;
use crate::feed::{ReplayControl, ReplayEnded, Speed};

/// Where a replay is.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    feed: &'a str,
    paused: bool,
    /// A number, or `"max"`.
    speed: Value,
    /// Receive time of the last record.
    time: Option<i64>,
    /// Recorded time played in this pass since its start or the last jump, in microseconds.
    position_us: u64,
    pass: u64,
    ended: bool,
}

impl<'a> Shown<'a> {
    fn of(feed: &'a str, control: &ReplayControl) -> Self {
        let status = control.status();
        Self {
            feed,
            paused: status.paused,
            speed: match status.speed {
                Speed::Times(factor) => Value::Number(hertz(factor.get())),
                Speed::Max => "max".into(),
            },
            time: status.time,
            position_us: u64::try_from(status.position.as_micros()).unwrap_or(u64::MAX),
            pass: status.pass,
            ended: status.ended,
        }
    }
}

/// What is asked for; what is not is left as it is.
#[derive(Debug, Default, PartialEq)]
struct Change {
    paused: Option<bool>,
    speed: Option<Speed>,
    seek: Option<i64>,
}

impl Change {
    fn read(Changes(changes): &Changes) -> Result<Self, Problem> {
        let mut change = Self::default();
        let mut wrong = Vec::new();
        for (key, value) in changes {
            match key.as_str() {
                "paused" => match value.as_bool() {
                    Some(paused) => change.paused = Some(paused),
                    None => wrong.push(format!("paused: true or false, not {value}")),
                },
                "speed" => match speed(value) {
                    Ok(speed) => change.speed = Some(speed),
                    Err(problem) => wrong.push(format!("speed: {problem}")),
                },
                "seek" => match time(value) {
                    Ok(time) => change.seek = Some(time),
                    Err(problem) => wrong.push(format!("seek: {problem}")),
                },
                other => wrong.push(format!("{other}: only paused, speed and seek can be changed")),
            }
        }
        if changes.is_empty() {
            wrong.push("nothing to change: give paused, speed or seek".to_owned());
        }
        if wrong.is_empty() { Ok(change) } else { Err(Problem::bad(wrong.join("; "))) }
    }

    fn make(&self, control: &ReplayControl) -> Result<(), ReplayEnded> {
        // Held before it jumps and let go after it, so that nothing else gets in between.
        if self.paused == Some(true) {
            control.pause()?;
        }
        if let Some(speed) = self.speed {
            control.set_speed(speed)?;
        }
        if let Some(time) = self.seek {
            control.seek(time)?;
        }
        if self.paused == Some(false) {
            control.resume()?;
        }
        Ok(())
    }
}

fn speed(value: &Value) -> Result<Speed, String> {
    match value {
        Value::String(text) => text.parse().map_err(|error| format!("{error}")),
        Value::Number(number) => {
            let factor = number.as_f64().unwrap_or(f64::NAN);
            Speed::times(factor).map_err(|error| error.to_string())
        }
        other => Err(format!("a number or \"max\", not {other}")),
    }
}

fn time(value: &Value) -> Result<i64, String> {
    match value {
        Value::String(text) => parse_wall_time(text),
        Value::Number(number) => parse_wall_time(&number.to_string()),
        other => Err(format!("a time, not {other}")),
    }
}

pub(super) async fn get(
    State(inner): State<Arc<Inner>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let control = control(&inner, &name)?;
    Ok(json(StatusCode::OK, &Shown::of(&name, &control)))
}

pub(super) async fn patch(
    State(inner): State<Arc<Inner>>,
    Path(name): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    let control = control(&inner, &name)?;
    let change = Change::read(&Changes::read(&body, "{\"paused\":true}")?)?;
    change.make(&control).map_err(|error| {
        Problem::new(StatusCode::CONFLICT, format!("the feed {name:?}: {error}"))
    })?;
    tracing::info!(feed = name, ?change, "a replay is moved");
    Ok(json(StatusCode::OK, &Shown::of(&name, &control)))
}

fn control(inner: &Inner, name: &str) -> Result<ReplayControl, Problem> {
    let feeds = inner.gateway.feeds();
    let feed = feeds.iter().find(|feed| feed.name() == name).ok_or_else(|| {
        let message = format!("no feed is called {name:?}; /v1/feeds lists them");
        Problem::new(StatusCode::NOT_FOUND, message)
    })?;
    feed.replay().cloned().ok_or_else(|| {
        let message = format!("the feed {name:?} plays no recording, it comes as it comes");
        Problem::new(StatusCode::CONFLICT, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Change, Problem> {
        Change::read(&Changes::read(text.as_bytes(), "{}")?)
    }

    #[test]
    fn a_change_says_what_it_means_or_what_is_wrong() {
        let change = read(r#"{"paused":true,"speed":2.5,"seek":"1970-01-01T00:00:01Z"}"#).unwrap();
        let speed = Some(Speed::times(2.5).unwrap());
        let expected = Change { paused: Some(true), speed, seek: Some(1_000_000_000) };
        assert_eq!(change, expected);
        assert_eq!(read(r#"{"speed":"max"}"#).unwrap().speed, Some(Speed::Max));
        assert_eq!(read(r#"{"seek":0}"#).unwrap().seek, Some(0));
        for bad in [
            "[]",
            "{}",
            r#"{"paused":1}"#,
            r#"{"speed":0}"#,
            r#"{"speed":-1}"#,
            r#"{"speed":"fast"}"#,
            r#"{"speed":1e300}"#,
            r#"{"seek":"yesterday"}"#,
            r#"{"seek":-1}"#,
            r#"{"seek":1.5}"#,
            r#"{"seek":null}"#,
            r#"{"paused":true,"paused":false}"#,
            r#"{"paused":true,"rewind":true}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
