//! Which records of a recording are wanted.

use std::fmt;
use std::sync::Arc;

use super::format::Record;

/// Whether a record is wanted, by what it is. Called once a record, in the order of the file.
pub type Keep = Arc<dyn Fn(Record<'_>) -> bool + Send + Sync>;

/// A range of receive times, and a judgement on each record within it. The default wants all.
///
/// The range is half open, `from <= time < to`, and each record is judged by its own time, so that
/// records out of order fall where they say they belong. A record without a time goes with the one
/// before it.
#[derive(Clone, Default)]
pub struct Selection {
    from: Option<i64>,
    to: Option<i64>,
    keep: Option<Keep>,
}

impl Selection {
    /// Records received at `from` or later and before `to`, in ns since the Unix epoch.
    #[must_use]
    pub fn between(mut self, from: Option<i64>, to: Option<i64>) -> Self {
        (self.from, self.to) = (from, to);
        self
    }

    /// Records of which `keep` says so. The feed knows no venue: what a record is about, its caller
    /// tells.
    #[must_use]
    pub fn keeping(mut self, keep: Keep) -> Self {
        self.keep = Some(keep);
        self
    }

    /// Whether every record is wanted.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.keep.is_none()
    }

    /// The earliest receive time that is wanted.
    #[must_use]
    pub fn start_time(&self) -> Option<i64> {
        self.from
    }

    /// The receive time from which on none is wanted.
    #[must_use]
    pub fn end_time(&self) -> Option<i64> {
        self.to
    }

    /// Whether the range has a bound.
    pub(super) fn is_bounded(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    pub(super) fn has(&self, time: i64) -> bool {
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time < to)
    }

    pub(super) fn keeps(&self, record: Record<'_>) -> bool {
        self.keep.as_ref().is_none_or(|keep| keep(record))
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection")
            .field("from", &self.from)
            .field("to", &self.to)
            .field("keep", &self.keep.is_some())
            .finish()
    }
}
