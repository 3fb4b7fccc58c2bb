//! What a caller holds while it is in.

use std::sync::Arc;

use super::dynamic::DynamicConcurrencyLimiter;

/// One permit, given back when dropped.
///
/// A permit cannot be cloned, and giving it back consumes it, so it comes back once:
///
/// ```compile_fail,E0382
/// # let limiter = tidegate::limiter::DynamicConcurrencyLimiter::new(1).unwrap();
/// let permit = limiter.try_acquire().unwrap();
/// drop(permit);
/// drop(permit); // use of moved value
/// ```
#[derive(Debug)]
#[must_use = "a permit that is not kept is given back at once"]
pub struct Permit<'a> {
    limiter: &'a DynamicConcurrencyLimiter,
}

impl<'a> Permit<'a> {
    #[inline]
    pub(super) const fn new(limiter: &'a DynamicConcurrencyLimiter) -> Self {
        Self { limiter }
    }

    /// Keeps the place in the limiter and lets go of the guard. Whoever does this owes the limiter
    /// one [`release`](DynamicConcurrencyLimiter::release).
    #[inline]
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        // Refused only if somebody released a permit that was not theirs; `misuses` has it.
        let _ = self.limiter.release();
    }
}

/// One permit that keeps its limiter alive, given back when dropped.
#[derive(Debug)]
#[must_use = "a permit that is not kept is given back at once"]
pub struct OwnedPermit {
    /// `None` once forgotten.
    limiter: Option<Arc<DynamicConcurrencyLimiter>>,
}

impl OwnedPermit {
    #[inline]
    pub(super) const fn new(limiter: Arc<DynamicConcurrencyLimiter>) -> Self {
        Self { limiter: Some(limiter) }
    }

    /// Keeps the place in the limiter and lets go of the guard. Whoever does this owes the limiter
    /// one [`release`](DynamicConcurrencyLimiter::release).
    #[inline]
    pub fn forget(mut self) {
        self.limiter = None;
    }
}

impl Drop for OwnedPermit {
    #[inline]
    fn drop(&mut self) {
        if let Some(limiter) = &self.limiter {
            // As for `Permit`.
            let _ = limiter.release();
        }
    }
}
