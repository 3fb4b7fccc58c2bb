//! Integration tests: one binary, one module a subject.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

mod autobahn;
mod cli;
mod cli_subscribe;
mod config_files;
mod config_reload;
mod config_watch;
mod counting;
mod feed;
mod gateway_confirm;
mod gateway_endings;
mod gateway_flow;
mod gateway_isolation;
mod gateway_pace;
mod gateway_protocol;
mod gateway_refusals;
mod gateway_retune;
mod gateway_support;
mod limiter;
mod live;
mod ops;
mod record;
mod reproduce;
mod serve_hostile;
mod serve_limits;
mod serve_recordings;
mod serve_reload;
mod serve_replay;
mod serve_shutdown;
mod serve_stages;
mod serve_support;
mod support_http;
mod tidy;
mod venue;
mod worker_allocation;
mod worker_async;
mod worker_conformance;
mod worker_fairness;
mod worker_keyed;
mod worker_merge;
mod worker_model;
mod worker_sp;
mod worker_stress;
mod worker_subjects;
mod worker_support;
