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
    pub(super) fn opens(self) -> Opens<'a> {
        Opens { door: self, wait: Wait::default() }
    }
}

/// How far a wait for room has come. Who drops one that [`is_registered`](Self::is_registered)
/// calls [`Core::forget_room`].
#[derive(Default)]
pub(super) struct Wait {
    patience: Option<Patience>,
    /// A wake may have taken the registration down already; taking it down twice does no harm.
    registered: bool,
}

impl Wait {
    /// Whether it was polled.
    #[inline(always)]
    pub(super) const fn begun(&self) -> bool {
        self.patience.is_some()
    }

    #[inline(always)]
    pub(super) const fn is_registered(&self) -> bool {
        self.registered
    }

    /// Ready once a place is free, or the worker stops.
    #[cold]
    pub(super) fn poll(
        &mut self,
        door: Door<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), NoRoom>> {
        door.core.poll_room(door.cursor, &mut self.patience, &mut self.registered, context)
    }
}

/// The future of [`Door::opens`]. It carries nothing, so dropping it loses nothing; its registration
/// goes with it.
pub(super) struct Opens<'a> {
    door: Door<'a>,
    wait: Wait,
}

impl Future for Opens<'_> {
    type Output = Result<(), NoRoom>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { door: Door { core, cursor }, wait } = &mut *self;
        wait.poll(Door { core, cursor }, context)
    }
}

impl Drop for Opens<'_> {
    fn drop(&mut self) {
        if self.wait.registered {
            self.door.core.forget_room();
        }
    }
}
