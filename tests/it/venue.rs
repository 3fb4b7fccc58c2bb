//! Venue codecs, held to one list of cases for every venue, to an oracle on real recordings, and to
//! mutated messages.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod cases;
mod containers;
mod control;
mod executions;
mod fills;
mod fixtures;
mod fuzzed;
mod golden;
mod merging;
mod mutation;
mod oracle;
mod peculiar;
mod recordings;
pub(crate) mod samples;
mod shapes;
mod subject;
