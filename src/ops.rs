//! The operators' side: what runs, how much of it, and the hand on it, over HTTP.
//!
//! | module | holds |
//! |---|---|
//! | [`admin`] | the routes, and what every answer has in common |
//! | `answer` | how answers are written |
//! | `change` | what a request wants changed |
//! | `limits` | `GET` and `PATCH /v1/limits` |
//! | `replay` | `GET` and `PATCH /v1/feeds/NAME/replay` |
//! | `views` | the lists of subscribers, instruments, feeds and volumes |
//! | [`metrics`] | the figures for Prometheus |
//! | [`health`] | alive and ready |
//! | [`reload`] | what a running program offers for reloading, and what came of it |
//! | `guard` | which requests of a browser may change something |
//! | `serve` | connections, each with its bounds |
//! | `page` | the page for a person |
//!
//! Nothing is counted here: figures are read where they are kept, at the moment somebody asks.
//! There is no access control: the server listens on loopback unless told otherwise, and whoever
//! reaches it may do everything. What a browser sends on behalf of a foreign page is refused.

pub mod admin;
mod answer;
mod change;
mod guard;
pub mod health;
mod limits;
pub mod metrics;
mod page;
pub mod reload;
mod replay;
mod serve;
mod views;

pub use admin::{Admin, router};
pub use health::Readiness;
pub use reload::{Outcomes, Reload};
pub use serve::serve;
