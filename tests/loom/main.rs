//! Model checks under loom: `cargo test --release --features loom --test loom`.

#![cfg(feature = "loom")]

mod worker_keyed;
mod worker_support;
