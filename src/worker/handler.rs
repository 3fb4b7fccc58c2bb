//! What a handler is told, and how its panics are kept from ending its worker.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What goes to `on_error`; the worker goes on with the next item.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError<E> {
    /// `handle` returned this error.
    #[error("handling an item failed: {0}")]
    Handler(E),
    /// A callback panicked.
    #[error("handling an item panicked: {0}")]
    Panicked(Panicked),
}

/// The message of a panic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Panicked {
    message: String,
}

impl Panicked {
    /// What the panic said; a stand-in when it was not a text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    fn from_payload(payload: Box<dyn Any + Send>) -> Self {
        let message = match payload.downcast_ref::<&'static str>() {
            Some(text) => (*text).to_owned(),
            None => payload.downcast_ref::<String>().cloned().unwrap_or_else(|| "no text".into()),
        };
        // A payload may itself panic when it is dropped; that one is let go.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(second);
        }
        Self { message }
    }
}

/// Runs a piece of the user's code and turns its panic into a value.
#[inline]
pub(super) fn catch<R>(work: impl FnOnce() -> R) -> Result<R, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(Panicked::from_payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message_whatever_it_carries() {
        let caught = |work: fn()| catch(work).unwrap_err().message().to_owned();
        assert_eq!(caught(|| panic!("plain")), "plain");
        assert_eq!(caught(|| panic!("number {}", 7)), "number 7");
        assert_eq!(caught(|| std::panic::panic_any(7)), "no text");
    }

    #[test]
    #[cfg_attr(miri, ignore = "the second payload is let go on purpose, which Miri calls a leak")]
    fn a_payload_that_panics_when_dropped_is_contained() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        assert_eq!(catch(|| std::panic::panic_any(Bomb)).unwrap_err().message(), "no text");
    }
}
