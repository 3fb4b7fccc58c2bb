//! A task that waits for room.

use super::lifecycle::{Core, NoRoom};
use super::ring::PushCursor;
use super::sync::Arc;
use super::wait::Patience;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What a producing end waits for room with.
pub(super) struct Door<'a> {
    core: &'a Arc<Core>,
    cursor: &'a mut PushCursor,
}

impl<'a> Door<'a> {
    pub(super) const fn new(core: &'a Arc<Core>, cursor: &'a mut PushCursor) -> Self {
        Self { core, cursor }
    }

    /// Ready once a place is free, or the worker stops.
    pub(super) const fn opens(self) -> Opens<'a> {
        Opens { door: self, patience: None, registered: false }
    }
}

/// The future of [`Door::opens`]. It carries nothing, so dropping it loses nothing; its registration
/// goes with it.
pub(super) struct Opens<'a> {
    door: Door<'a>,
    patience: Option<Patience>,
    registered: bool,
}

impl Future for Opens<'_> {
    type Output = Result<(), NoRoom>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { door, patience, registered } = &mut *self;
        let polled = door.core.poll_room(door.cursor, patience, context);
        // A wake, or this poll, may have taken the registration down already; taking it down twice
        // does no harm.
        *registered |= polled.is_pending();
        polled
    }
}

impl Drop for Opens<'_> {
    fn drop(&mut self) {
        if self.registered {
            self.door.core.forget_room();
        }
    }
}
