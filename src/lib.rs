//! Tidegate: a market-data conflation gateway.
//!
//! Venue ticks come in; each WebSocket subscriber gets the newest quote of every instrument it
//! asked for, as fast as *it* can take them, never faster than the operator allows, and never a
//! silent lie about what was skipped.
//!
//! Two parts stand on their own and use nothing else of this crate: [`worker`], a family of
//! single-producer single-consumer workers, and [`limiter`], a lock-free concurrency limiter whose
//! capacity moves at run time.
//!
//! # Layers
//!
//! A module names only modules before it; a test holds the order.
//!
//! `clock < market < worker < limiter < feed < venue < ingest < board < ledger < gateway < config <
//! ops < app < cli`

pub mod app;
pub mod board;
pub mod cli;
pub mod clock;
pub mod config;
pub mod feed;
pub mod gateway;
pub mod ingest;
pub mod ledger;
pub mod limiter;
pub mod market;
pub mod ops;
pub mod venue;
pub mod worker;
