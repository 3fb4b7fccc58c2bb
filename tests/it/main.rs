//! Integration tests: one binary, one module a subject.
mod cli;
mod cli_subscribe;
mod config_files;
mod config_reload;
mod config_watch;
mod counting;
mod feed;
mod limiter;
mod tidy;
mod venue;
mod ops;
mod support_http;
mod worker_conformance;
mod worker_support;
