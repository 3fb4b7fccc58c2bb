//! Integration tests: one binary, one module a subject.

mod worker_conformance;
mod worker_support;
