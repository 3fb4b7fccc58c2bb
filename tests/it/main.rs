//! Integration tests: one binary, one module a subject.

mod counting;
mod worker_allocation;
mod worker_conformance;
mod worker_keyed;
mod worker_model;
mod worker_sp;
mod worker_support;
