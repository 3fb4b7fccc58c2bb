//! The admin server's routes, and what all their answers have in common.
//!
//! | route | answer |
//! |---|---|
//! | `GET /-/healthy` | 200 while the process serves |
//! | `GET /-/ready` | 200 once started and until told to stop; 503 with the reason otherwise |
//! | `POST /-/reload` | 200 `{"generation","applied","needs_restart"}`; 422 `{"errors":[{"line","column","key","message"}]}`; 500 alike if a part of the program refused |
//! | `GET /metrics` | the figures, as OpenMetrics or Prometheus text, whichever is asked for |
//! | `GET`, `PATCH /v1/limits` | limits in force; `limits` beside this file |
//! | `GET /v1/subscribers` | who is connected, and each one's accounts |
//! | `GET /v1/instruments` | every instrument with its newest quote and its feed's health |
//! | `GET /v1/feeds` | every feed with its health and its figures |
//! | `GET`, `PATCH /v1/feeds/NAME/replay` | where a replay is; hold, go on, jump, speed; `replay` beside this file |
//! | `GET /v1/volumes` | every account's volume, and the audit of fills |
//! | `GET /v1/config` | the settings in effect |
//! | `GET /` | a page for a person |
//!
//! The lists take `?limit=N` and `?contains=TEXT`, and tell the whole number in the header
//! `tidegate-total` (the volumes in the field `total`). Whatever is wrong with a request is
//! answered as `{"error":"…"}`: 400, 403 (a browser, from a foreign page), 404, 405, 409, 413, 503
//! (no answer within ten seconds).

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use serde_json::json;
use tokio::sync::Semaphore;

use super::answer::{Problem, json, typed};
use super::health::Readiness;
use super::metrics::{Format, Metrics};
use super::reload::Reload;
use super::{guard, limits, page, replay, views};
use crate::config::{Key, ReloadError};
use crate::gateway::Gateway;

/// Longest body of a request, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// How long an answer may take, the reading of the request's body included.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Threads that work on answers at a time. A change that hangs, on a file say, takes one of them
/// even when its sender has been told so and is gone.
const MAX_WORKING: usize = 8;

/// What the admin server shows and moves.
#[derive(Clone)]
pub struct Admin {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    /// The configuration.
    pub reload: Arc<dyn Reload>,
    /// What `/-/ready` answers; the program sets it.
    pub readiness: Arc<Readiness>,
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin").field("readiness", &self.readiness).finish_non_exhaustive()
    }
}

/// What handlers share.
pub(super) struct Inner {
    pub(super) gateway: Arc<Gateway>,
    pub(super) reload: Arc<dyn Reload>,
    readiness: Arc<Readiness>,
    metrics: Metrics,
    working: Arc<Semaphore>,
}

impl Inner {
    /// Does blocking work where that is allowed, to its end even if nobody waits for it any more.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let failed = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the work has failed");
        let place = self.working.clone().acquire_owned().await.map_err(|_| failed())?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        done.await.map_err(|error| {
            tracing::error!(%error, "answering a request of the admin server failed");
            failed()
        })
    }
}

/// Every route.
pub fn router(admin: Admin) -> Router {
    let metrics = Metrics::new(admin.clone());
    let Admin { gateway, reload, readiness } = admin;
    let working = Arc::new(Semaphore::new(MAX_WORKING));
    let inner = Arc::new(Inner { gateway, reload, readiness, metrics, working });
    Router::new()
        .route("/-/healthy", get(healthy))
        .route("/-/ready", get(ready))
        .route("/-/reload", post(reload_now))
        .route("/metrics", get(show_metrics))
        .route("/v1/limits", get(limits::get).patch(limits::patch))
        .route("/v1/subscribers", get(views::subscribers))
        .route("/v1/instruments", get(views::instruments))
        .route("/v1/feeds", get(views::feeds))
        .route("/v1/feeds/{name}/replay", get(replay::get).patch(replay::patch))
        .route("/v1/volumes", get(views::volumes))
        .route("/v1/config", get(config))
        .route("/", get(page::get))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn(bounded))
        .with_state(inner)
}

/// Refuses what a foreign page sends, bounds the time, and sets the headers of every answer.
async fn bounded(request: Request, next: Next) -> Response {
    let mut answer = match guard::check(request.method(), request.headers()) {
        Err(reason) => Problem::new(StatusCode::FORBIDDEN, reason).into_response(),
        Ok(()) => match tokio::time::timeout(ANSWER_TIMEOUT, next.run(request)).await {
            Ok(answer) => answer,
            Err(_) => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("no answer within {ANSWER_TIMEOUT:?}; a change may still be taken"),
            )
            .into_response(),
        },
    };
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

async fn healthy() -> Response {
    json(StatusCode::OK, &json!({"healthy": true}))
}

async fn ready(State(inner): State<Arc<Inner>>) -> Response {
    match inner.readiness.why_not() {
        None => json(StatusCode::OK, &json!({"ready": true})),
        Some(reason) => {
            json(StatusCode::SERVICE_UNAVAILABLE, &json!({"ready": false, "reason": reason}))
        }
    }
}

#[derive(Serialize)]
struct Reloaded {
    generation: u64,
    applied: Vec<Key>,
    needs_restart: Vec<Key>,
}

async fn reload_now(State(inner): State<Arc<Inner>>) -> Result<Response, Problem> {
    let (reload, gateway) = (inner.reload.clone(), inner.gateway.clone());
    let outcome = inner
        .work(move || {
            let report = reload.reload()?;
            let generation = gateway.control().limits().generation;
            let (applied, needs_restart) = (report.applied, report.needs_restart);
            Ok::<_, ReloadError>(Reloaded { generation, applied, needs_restart })
        })
        .await?;
    Ok(match outcome {
        Ok(reloaded) => json(StatusCode::OK, &reloaded),
        Err(error) => {
            let status = match error {
                ReloadError::Part { .. } => StatusCode::INTERNAL_SERVER_ERROR,
                ReloadError::Unreadable { .. } | ReloadError::Refused(_) => {
                    StatusCode::UNPROCESSABLE_ENTITY
                }
            };
            json(status, &json!({"errors": error.errors()}))
        }
    })
}

async fn config(State(inner): State<Arc<Inner>>) -> Result<Response, Problem> {
    let reload = inner.reload.clone();
    inner.work(move || json(StatusCode::OK, &reload.effective())).await
}

async fn show_metrics(
    State(inner): State<Arc<Inner>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = Format::accepted(headers.get(header::ACCEPT));
    let shared = inner.clone();
    let text = inner.work(move || shared.metrics.write(format)).await?;
    let text = text.map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the figures could not be written")
    })?;
    Ok(typed(StatusCode::OK, format.content_type(), text))
}

async fn unknown(request: Request) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at {}", request.uri().path()))
}

async fn wrong_method(request: Request) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{} takes no {}", request.uri().path(), request.method()),
    )
}
