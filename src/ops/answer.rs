//! How answers are written: JSON, and JSON too where something is wrong.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

/// A request that was not served, with the reason for whoever sent it.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) error: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }

    pub(super) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        json(self.status, &json!({"error": self.error}))
    }
}

/// A JSON answer.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => typed(status, "application/json", text),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written as JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A JSON list, with the number of what it was taken from.
pub(super) fn list(items: &[impl Serialize], total: usize) -> Response {
    let mut answer = json(StatusCode::OK, &items);
    answer.headers_mut().insert("tidegate-total", HeaderValue::from(total));
    answer
}

/// An answer of the given content type.
pub(super) fn typed(status: StatusCode, kind: &'static str, text: impl Into<Body>) -> Response {
    (status, [(header::CONTENT_TYPE, kind)], text.into()).into_response()
}
