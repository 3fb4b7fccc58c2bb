//! Placeholder for the running program.

use crate::config::{Settings, Source};

/// What is to be run.
#[derive(Debug)]
pub struct Plan {
    /// Settings to run on.
    pub settings: Settings,
    /// Where they came from.
    pub source: Source,
    /// The loaded text; empty for settings made from flags.
    pub content: Vec<u8>,
    /// Whether to print the one line to try next.
    pub hint: bool,
}

/// Runs until told to stop.
///
/// # Errors
///
/// Always, here.
pub fn run(plan: Plan) -> anyhow::Result<()> {
    let _ = plan;
    anyhow::bail!("this build cannot serve")
}
