//! What can live in a slot for ever.

/// A value that lives in a place of the ring for as long as the worker does, and is used again and
/// again.
///
/// ```
/// use tidegate::worker::Slot;
/// use std::sync::Arc;
///
/// #[derive(Default)]
/// struct Order {
///     venue: Option<Arc<str>>,
///     levels: Vec<(u64, u64)>,
/// }
///
/// impl Slot for Order {
///     fn clear(&mut self) {
///         self.venue = None; // pins nothing
///         self.levels.clear(); // but keeps its memory
///     }
/// }
/// ```
///
/// Implemented for numbers and arrays of slots (nothing is cleared: they pin nothing, and the
/// producer finds what was there), for `Option` (becomes `None`), `Vec` and `String` (become empty
/// and keep their memory).
pub trait Slot: Send + 'static {
    /// Lets go of what must not outlive the item: shared things, connections, what is large. Runs
    /// each time a slot is released by the handler, dropped unhandled or abandoned by the producer.
    fn clear(&mut self);
}

macro_rules! pins_nothing {
    ($($plain:ty),*) => {
        $(impl Slot for $plain {
            #[inline(always)]
            fn clear(&mut self) {}
        })*
    };
}

pins_nothing!(
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64,
    bool,
    char,
    ()
);

impl<T: Slot, const N: usize> Slot for [T; N] {
    #[inline]
    fn clear(&mut self) {
        self.iter_mut().for_each(Slot::clear);
    }
}

impl<T: Send + 'static> Slot for Option<T> {
    #[inline]
    fn clear(&mut self) {
        *self = None;
    }
}

impl<T: Send + 'static> Slot for Vec<T> {
    #[inline]
    fn clear(&mut self) {
        self.clear();
    }
}

impl Slot for String {
    #[inline]
    fn clear(&mut self) {
        self.clear();
    }
}
