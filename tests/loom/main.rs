//! Model checks under loom: `cargo test --release --features loom --test loom`.

#![cfg(feature = "loom")]

mod lane;
mod limiter;
mod worker_family;
mod worker_keyed;
mod worker_support;
