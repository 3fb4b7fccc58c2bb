//! Limits in force, shown and changed.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/limits` | what is in force for all |
//! | `GET /v1/limits?subscriber=ID` | what is in force for one, and under `all` what is for all |
//! | `PATCH /v1/limits` `{"capacity":4,…}` | changes hot keys for all; the new state |
//! | `PATCH /v1/limits` `{"subscriber":"ID","capacity":4,"max_hz":2.5}` | changes one or both for one; its new state |
//!
//! For all, every key that a reload takes while running may be given, by its last word or in full,
//! and is checked by the rules of the file; it holds until a file changes that key. For one,
//! `capacity` and `max_hz` may, until they change for all. A change is taken whole or not at all:
//! 400 names the keys and what is wrong with them, 404 says that there is no such subscriber.
//!
//! `max_hz` is the operator's ceiling; a client's own wish may be lower still, and then
//! `/v1/subscribers` shows that.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::admin::Inner;
use super::answer::{Problem, json};
use super::change::Changes;
use crate::config::{ReloadError, format_duration};
use crate::gateway::{Limits, Retune, RetuneError, Subscriber};

/// Everything that limits a running gateway, spelled as in the configuration.
#[derive(Debug, Serialize)]
struct Shown {
    generation: u64,
    capacity: usize,
    max_hz: Number,
    max_subscribers: usize,
    confirm: &'static str,
    stall_timeout: String,
    max_instruments: usize,
    max_batch_bytes: usize,
    max_in_flight_ms: u64,
    max_message_bytes: usize,
    max_ops_per_s: u32,
    pace: String,
    heartbeat: String,
    handshake_timeout: String,
    max_header_bytes: usize,
    allowed_origins: Vec<String>,
}

impl From<&Limits> for Shown {
    fn from(limits: &Limits) -> Self {
        Self {
            generation: limits.generation,
            capacity: limits.capacity,
            max_hz: hertz(limits.max_hz),
            max_subscribers: limits.max_subscribers,
            confirm: limits.confirm.as_str(),
            stall_timeout: format_duration(limits.stall_timeout),
            max_instruments: limits.max_instruments,
            max_batch_bytes: limits.max_batch_bytes,
            max_in_flight_ms: u64::try_from(limits.max_in_flight.as_millis()).unwrap_or(u64::MAX),
            max_message_bytes: limits.max_message_bytes,
            max_ops_per_s: limits.max_ops_per_s,
            pace: format_duration(limits.pace),
            heartbeat: format_duration(limits.heartbeat),
            handshake_timeout: format_duration(limits.handshake_timeout),
            max_header_bytes: limits.max_header_bytes,
            allowed_origins: limits.allowed_origins.clone(),
        }
    }
}

/// What is in force for one subscriber.
#[derive(Debug, Serialize)]
struct ShownOfOne {
    generation: u64,
    subscriber: String,
    capacity: usize,
    max_hz: Number,
    in_flight: usize,
    all: Shown,
}

impl ShownOfOne {
    fn new(subscriber: &Subscriber, limits: &Limits) -> Self {
        let held = subscriber.limiter().snapshot();
        Self {
            generation: limits.generation,
            subscriber: subscriber.id().to_string(),
            capacity: held.capacity,
            max_hz: hertz(subscriber.ceiling_hz()),
            in_flight: held.active,
            all: limits.into(),
        }
    }
}

/// A rate as people write it: without a fraction if it has none.
pub(super) fn hertz(hz: f64) -> Number {
    if hz.fract() == 0.0 && (0.0..=1e15).contains(&hz) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number in the range of the integer"
        )]
        return Number::from(hz as u64);
    }
    // Rates are finite: they are checked when they are set.
    Number::from_f64(hz).unwrap_or_else(|| Number::from(0))
}

#[derive(Debug, Deserialize)]
pub(super) struct Whose {
    subscriber: Option<String>,
}

pub(super) async fn get(
    State(inner): State<Arc<Inner>>,
    whose: Result<Query<Whose>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(Whose { subscriber }) = whose.map_err(|error| Problem::bad(error.body_text()))?;
    let control = inner.gateway.control();
    let Some(id) = subscriber else {
        return Ok(json(StatusCode::OK, &Shown::from(&*control.limits())));
    };
    let subscriber = subscriber_of(&inner, &id)?;
    Ok(json(StatusCode::OK, &ShownOfOne::new(&subscriber, &control.limits())))
}

pub(super) async fn patch(
    State(inner): State<Arc<Inner>>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    let Changes(changes) = Changes::read(&body, "{\"capacity\":4}")?;
    if let Some(subscriber) = changes.get("subscriber") {
        let id = subscriber.as_str().ok_or_else(|| {
            Problem::bad("subscriber: a text with the id as /v1/subscribers shows it")
        })?;
        return change_one(&inner, id, &changes);
    }
    if changes.contains_key("generation") {
        return Err(Problem::bad("generation: counts the changes and cannot be set"));
    }
    let reload = inner.reload.clone();
    inner.work(move || reload.retune(&changes)).await?.map_err(|error| not_taken(&error))?;
    Ok(json(StatusCode::OK, &Shown::from(&*inner.gateway.control().limits())))
}

fn change_one(inner: &Inner, id: &str, changes: &Map<String, Value>) -> Result<Response, Problem> {
    let mut retune = Retune::default();
    let mut wrong = Vec::new();
    for (key, value) in changes {
        match key.as_str() {
            "subscriber" => {}
            "capacity" => match value.as_u64().and_then(|value| usize::try_from(value).ok()) {
                Some(value) => retune.capacity = Some(value),
                None => wrong.push(format!("capacity: a whole number from 0 up, not {value}")),
            },
            "max_hz" => match value.as_f64() {
                Some(value) => retune.max_hz = Some(value),
                None => wrong.push(format!("max_hz: a number, not {value}")),
            },
            other => wrong.push(format!(
                "{other}: for one subscriber, only capacity and max_hz can be changed"
            )),
        }
    }
    if !wrong.is_empty() {
        return Err(Problem::bad(wrong.join("; ")));
    }
    let subscriber = subscriber_of(inner, id)?;
    retune.subscriber = Some(subscriber.id());
    let limits = inner.gateway.control().retune(retune).map_err(|error| match error {
        RetuneError::UnknownSubscriber(_) => Problem::new(StatusCode::NOT_FOUND, error.to_string()),
        RetuneError::Empty => Problem::bad("nothing to change: give capacity or max_hz"),
        other => Problem::bad(other.to_string()),
    })?;
    Ok(json(StatusCode::OK, &ShownOfOne::new(&subscriber, &limits)))
}

fn subscriber_of(inner: &Inner, id: &str) -> Result<Arc<Subscriber>, Problem> {
    let found = id.parse().ok().and_then(|id| inner.gateway.control().subscriber(id));
    found.ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            format!("subscriber: no subscriber has the id {id:?} now; /v1/subscribers lists them"),
        )
    })
}

/// A refused change is the sender's matter, a part that could not follow is ours.
fn not_taken(error: &ReloadError) -> Problem {
    let status = match error {
        ReloadError::Refused(_) => StatusCode::BAD_REQUEST,
        ReloadError::Unreadable { .. } | ReloadError::Part { .. } => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    let errors: Vec<String> = error.errors().iter().map(ToString::to_string).collect();
    Problem::new(status, errors.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_written_without_a_fraction_it_does_not_have() {
        let written: Vec<_> = [0.0, 10.0, 2.5].map(|hz| hertz(hz).to_string()).into();
        assert_eq!(written, ["0", "10", "2.5"]);
    }

    #[test]
    fn what_is_shown_has_every_limit() {
        let shown = serde_json::to_value(Shown::from(&Limits::default())).unwrap();
        // Counted by the compiler's own list of the fields.
        let fields = format!("{:?}", Limits::default()).matches(": ").count();
        assert_eq!(shown.as_object().unwrap().len(), fields);
        assert_eq!(shown["stall_timeout"], "30s");
        assert_eq!(shown["pace"], "3ms");
    }
}
