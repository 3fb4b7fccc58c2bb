//! Sleeping and waking.
//!
//! One side sleeps until the other has published something or the worker stops. Told as paths:
//!
//! * *The waker publishes*, passes a [`light`](super::fence::light) fence and looks at the flag of
//!   the sleeper; only if it is up does it take it down and wake who is registered.
//! * *The sleeper registers*, puts its flag up, passes a [`heavy`](super::fence::heavy) fence, and
//!   looks again for what it waits for. Only then does it sleep.
//! * *They meet*: by the pair of fences the waker sees the flag, or the sleeper sees what was
//!   published, or both. In the last case one wake is spurious, and every sleeper looks again.
//!
//! A sleeper registers anew after every wake. Otherwise a slow waker of an earlier round could take
//! its registration away while the flag of this round is up, and the next waker would find nobody.
//!
//! The two flags are bits of the word that also says whether the worker stops, so a stop and a
//! sleeper meet in the order of that one word and need no fence.

use super::sync::{Mutex, SPINS, TASK_SPINS, TASK_YIELDS, YIELDS, lock, spin_hint, thread};
use std::pin::pin;
use std::task::{Context, Waker};

/// Who sleeps on one side: a thread or a task.
pub(super) enum Waiter {
    Thread(thread::Thread),
    Task(Waker),
}

impl Waiter {
    pub(super) fn this_thread() -> Self {
        Self::Thread(thread::current())
    }

    fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => waker.wake(),
        }
    }
}

/// Where the sleeper of one side is registered.
pub(super) struct WaitSlot(Mutex<Option<Waiter>>);

impl WaitSlot {
    pub(super) fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn register(&self, waiter: Waiter) {
        let former = lock(&self.0).replace(waiter);
        drop(former);
    }

    /// Registers a task, unless it is the one that is registered.
    pub(super) fn register_task(&self, waker: &Waker) {
        let mut slot = lock(&self.0);
        if !matches!(&*slot, Some(Waiter::Task(known)) if known.will_wake(waker)) {
            let former = slot.replace(Waiter::Task(waker.clone()));
            drop(slot);
            drop(former);
        }
    }

    pub(super) fn clear(&self) {
        let former = lock(&self.0).take();
        drop(former);
    }

    /// Wakes who is registered, outside the lock.
    pub(super) fn wake(&self) {
        let waiter = lock(&self.0).take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

/// What a side does while it has nothing to do: a consumer without items, a producer without room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitStrategy {
    /// Sleep at once. Right where items are rare or the processors are needed elsewhere: every item
    /// that finds the consumer asleep costs a wake.
    Park,
    /// Look again 64 times, yield 4 times, then sleep: some microseconds of patience, and both sides
    /// on one processor do not spend their time slices on each other. A task looks 8 times and then
    /// gives way to its executor up to 64 times.
    #[default]
    SpinThenPark,
    /// Never sleep: look again, with a yield every 64 turns. The shortest delay, for a processor of
    /// its own; **an idle worker then uses all of it**.
    Spin,
}

/// The busy wait before a sleep.
#[derive(Debug)]
pub(super) struct Patience {
    strategy: WaitStrategy,
    spins: u32,
    yields: u32,
    turns: u32,
}

/// What to do between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Spin,
    Yield,
    Sleep,
}

impl Patience {
    /// Of a thread: mostly spins, since the other side is most likely at work on another processor.
    pub(super) const fn of_thread(strategy: WaitStrategy) -> Self {
        Self { strategy, spins: SPINS, yields: YIELDS, turns: 0 }
    }

    /// Of a task: mostly yields, since the other side may be the next task of this thread; and a
    /// sleep costs a fence across all threads, which is worth some patience.
    pub(super) const fn of_task(strategy: WaitStrategy) -> Self {
        Self { strategy, spins: TASK_SPINS, yields: TASK_YIELDS, turns: 0 }
    }

    /// Whether it never comes to a sleep.
    pub(super) fn is_endless(&self) -> bool {
        self.strategy == WaitStrategy::Spin
    }

    /// The next turn.
    pub(super) const fn turn(&mut self) -> Turn {
        let turns = self.turns;
        self.turns = match self.strategy {
            WaitStrategy::Park => return Turn::Sleep,
            WaitStrategy::SpinThenPark if turns >= self.spins + self.yields => return Turn::Sleep,
            WaitStrategy::SpinThenPark => turns + 1,
            WaitStrategy::Spin if turns >= self.spins => 0,
            WaitStrategy::Spin => turns + 1,
        };
        if turns < self.spins { Turn::Spin } else { Turn::Yield }
    }

    /// Waits a little on this thread; `false` once it is time to sleep.
    pub(super) fn wait(&mut self) -> bool {
        match self.turn() {
            Turn::Spin => spin_hint(),
            Turn::Yield => thread::yield_now(),
            Turn::Sleep => return false,
        }
        true
    }

    /// Waits a little inside of a task; `Sleep` once it is time to register, `Yield` if the task is
    /// to give way to others: its waker has been told.
    pub(super) fn wait_in_task(&mut self, context: &mut Context<'_>) -> Turn {
        let turn = self.turn();
        match turn {
            Turn::Spin => spin_hint(),
            Turn::Yield => give_way(context),
            Turn::Sleep => {}
        }
        turn
    }
}

/// Has the task polled again once others had their turn; the caller is to return `Pending`. In a tokio
/// runtime that is tokio's own way to yield, which does not rouse other threads to steal the task;
/// elsewhere it is a plain wake.
pub(super) fn give_way(context: &mut Context<'_>) {
    let _ = pin!(tokio::task::yield_now()).poll(context);
}

/// A wait for something that the other side is in the middle of: spins, then yields, without end.
pub(super) fn wait_out(turn: &mut u32) {
    *turn = turn.saturating_add(1);
    if *turn < SPINS {
        spin_hint();
    } else {
        thread::yield_now();
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    fn turns(strategy: WaitStrategy, count: usize) -> Vec<Turn> {
        let mut patience = Patience::of_thread(strategy);
        (0..count).map(|_| patience.turn()).collect()
    }

    #[test]
    fn each_strategy_is_as_patient_as_it_says() {
        assert_eq!(turns(WaitStrategy::Park, 2), [Turn::Sleep; 2]);
        let both = turns(WaitStrategy::SpinThenPark, 70);
        assert_eq!(both[..64], [Turn::Spin; 64]);
        assert_eq!(both[64..68], [Turn::Yield; 4]);
        assert_eq!(both[68..], [Turn::Sleep; 2], "and it stays so");
        let spin = turns(WaitStrategy::Spin, 65 * 3);
        assert!(!spin.contains(&Turn::Sleep));
        assert_eq!(spin.iter().filter(|turn| **turn == Turn::Yield).count(), 3);
    }
}
