//! One value and one total: how a contribution is folded, exactly once, also if that panics.

use super::super::cell::{FoldCell, Held, WriterEnd};
use super::super::handler::{Panicked, catch};
use super::super::keyed::{DispatchError, KeyedProducer, Patient};
use super::super::keyed_batch::{Give, Put};
use super::CoalescingHandler;
use std::marker::PhantomData;

/// A fold that panicked: the value, and what it said.
struct Failed<V>(V, Panicked);

/// Folds a value into the pending total, in place; gives it back if none is pending.
///
/// What the total was before is kept while the fold runs, and the value too. Where both are plain
/// bytes and the fold cannot panic, the compiler makes neither.
#[inline(always)]
fn merge<K, V, H>(pending: Option<Held<'_, V>>, value: V) -> Result<Option<V>, Failed<V>>
where
    V: Clone,
    H: CoalescingHandler<K, V>,
{
    let Some(mut held) = pending else { return Ok(Some(value)) };
    let spare = value.clone();
    let (folded, outdated) = held.with(|total| {
        let mut before = None;
        let folded = catch(|| {
            before = Some(total.clone());
            H::coalesce(total, value);
        });
        match (folded, before) {
            // What needs no drop is not carried out.
            (Ok(()), before) => (Ok(()), before.filter(|_| std::mem::needs_drop::<V>())),
            (Err(panicked), None) => (Err(panicked), None),
            (Err(panicked), Some(before)) => {
                (Err(panicked), Some(std::mem::replace(total, before)))
            }
        }
    });
    drop(held);
    // Not while it is held: that may take long.
    drop(outdated);
    folded.map(|()| None).map_err(|panicked| Failed(spare, panicked))
}

/// A fresh total of one value.
#[inline(always)]
fn fresh<K, V, H>(value: V) -> Result<V, Failed<V>>
where
    V: Default + Clone,
    H: CoalescingHandler<K, V>,
{
    let spare = value.clone();
    let folded = catch(|| {
        let mut total = V::default();
        H::coalesce(&mut total, value);
        total
    });
    folded.map_err(|panicked| Failed(spare, panicked))
}

/// In a batch, too, values are folded as the handler says.
pub(super) struct AddUp<H>(PhantomData<H>);

impl<K, V, H, S> Give<K, FoldCell<V>, S> for AddUp<H>
where
    V: Default + Clone,
    H: CoalescingHandler<K, V>,
{
    #[inline(always)]
    fn put(writer: &mut WriterEnd<K, FoldCell<V>>) -> Put<V> {
        let value = writer.unstage();
        let total = match merge::<K, V, H>(writer.hold_aim(), value) {
            Ok(None) => return Put::Merged,
            Ok(Some(value)) => fresh::<K, V, H>(value),
            Err(failed) => Err(failed),
        };
        match total {
            Ok(total) => {
                writer.start_aim(total);
                Put::Fresh
            }
            Err(Failed(value, panicked)) => Put::Failed(value, panicked),
        }
    }

    fn dispatch(
        half: &mut KeyedProducer<K, FoldCell<V>, S>,
        index: u32,
        value: V,
    ) -> Result<(), DispatchError<V>> {
        put_one::<K, V, H, S>(half, index, value, Patient::Yes)
    }
}

#[inline(always)]
pub(super) fn put_one<K, V, H, S>(
    half: &mut KeyedProducer<K, FoldCell<V>, S>,
    index: u32,
    value: V,
    patient: Patient,
) -> Result<(), DispatchError<V>>
where
    V: Default + Clone,
    H: CoalescingHandler<K, V>,
{
    if let Some(reason) = half.core().refuses() {
        return Err(DispatchError::Closed(value, reason));
    }
    let value = match merge::<K, V, H>(half.writer.hold(index), value) {
        Ok(None) => {
            half.count_conflated();
            return Ok(());
        }
        Ok(Some(value)) => value,
        Err(Failed(value, panicked)) => {
            return Err(DispatchError::CoalescePanicked(value, panicked));
        }
    };
    // The key is clean, and stays so until it is started below: the consumer leaves a clean cell
    // alone.
    if !half.has_room()
        && let Err(refusal) = half.make_room(patient)
    {
        return Err(refusal.of(value));
    }
    match fresh::<K, V, H>(value) {
        Ok(total) => half.writer.start(index, total),
        Err(Failed(value, panicked)) => {
            return Err(DispatchError::CoalescePanicked(value, panicked));
        }
    }
    let Err(refusal) = half.push(index) else { return Ok(()) };
    // It is there: the consumer never looks at an index that it was not given.
    half.writer.retract(index).map_or(Ok(()), |total| Err(refusal.of(total)))
}
