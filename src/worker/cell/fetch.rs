//! Hints to the processor: memory asked for ahead of its use, and pages that are large.

/// Whether memory is asked for ahead of its use.
pub(in crate::worker) const FETCHES: bool =
    cfg!(all(target_arch = "x86_64", not(feature = "loom"), not(miri)));

/// Lines of a place that are asked for at most.
const MOST_LINES: usize = 4;

/// Asks for the first lines of a place, to be written soon. A hint: nothing is read or waited for.
#[inline(always)]
pub(in crate::worker) fn fetch_for_writing<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(feature = "loom"), not(miri)))]
    for line in 0..size_of::<T>().div_ceil(64).min(MOST_LINES) {
        let address = place.cast::<u8>().wrapping_add(line * 64);
        // SAFETY: `prefetchw` changes no memory, register or flag, and faults on no address; every
        // x86-64 processor takes it, older ones as no operation.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(feature = "loom"), not(miri))))]
    let _ = (place, MOST_LINES);
}

/// Asks for the first lines of a place, to be read soon. A hint, too.
#[inline(always)]
pub(in crate::worker) fn fetch_for_reading<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(feature = "loom"), not(miri)))]
    for line in 0..size_of::<T>().div_ceil(64).min(MOST_LINES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = place.cast::<i8>().wrapping_add(line * 64);
        // SAFETY: the instruction changes nothing and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(feature = "loom"), not(miri))))]
    let _ = place;
}

/// Asks for large pages under an array that was allocated and not used yet. With many keys most of a
/// dispatch's wait is for the translation of addresses otherwise. A hint: refused it changes nothing.
pub(in crate::worker) fn on_large_pages<T>(array: &[T]) {
    #[cfg(all(target_os = "linux", not(feature = "loom"), not(miri)))]
    {
        const LARGE: usize = 2 << 20;
        let bytes = size_of_val(array);
        let start = array.as_ptr().addr();
        let aligned = start.next_multiple_of(LARGE);
        let end = (start + bytes) & !(LARGE - 1);
        if aligned < end {
            let from = array.as_ptr().cast::<u8>().wrapping_add(aligned - start).cast_mut();
            // SAFETY: whole pages inside of an allocation of ours; the advice changes no content.
            unsafe { libc::madvise(from.cast(), end - aligned, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(all(target_os = "linux", not(feature = "loom"), not(miri))))]
    let _ = array;
}
