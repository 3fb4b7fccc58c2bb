//! Partial updates merged by a coalescing worker say what they said one by one.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::HashMap;
use tidegate::worker::{CoalescingHandler, CoalescingSpWorker, Outcome, WorkerError};

/// What an update says of a field. The identity is to say nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Field {
    /// Absent: as it was.
    #[default]
    Keep,
    /// Null: there is none any more.
    Clear,
    /// There is one, and 0 is one.
    Set(u32),
}

impl Field {
    fn after(self, former: Self) -> Self {
        if self == Self::Keep { former } else { self }
    }

    fn apply(self, field: &mut Option<u32>) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }
}

/// An update of a quote that names some of its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Partial {
    bid: Field,
    ask: Field,
}

/// A quote as a consumer has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Quote {
    bid: Option<u32>,
    ask: Option<u32>,
}

/// The quotes of each key, built from the updates that came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Book {
    quotes: HashMap<u8, Quote>,
}

impl Book {
    fn apply(&mut self, key: u8, update: Partial) {
        let quote = self.quotes.entry(key).or_default();
        update.bid.apply(&mut quote.bid);
        update.ask.apply(&mut quote.ask);
    }
}

impl CoalescingHandler<u8, Partial> for Book {
    type Error = std::convert::Infallible;

    fn coalesce(current: &mut Partial, incoming: Partial) {
        current.bid = incoming.bid.after(current.bid);
        current.ask = incoming.ask.after(current.ask);
    }

    fn handle(&mut self, key: &u8, merged: Partial) -> Result<(), Self::Error> {
        self.apply(*key, merged);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

#[test]
fn b56_absent_keeps_null_clears_and_zero_is_a_value() {
    let (mut producer, mut stepper) =
        CoalescingSpWorker::builder().stepped(Book::default()).unwrap();
    let updates = [
        Partial { bid: Field::Set(61), ask: Field::Set(62) },
        Partial { bid: Field::Set(0), ask: Field::Keep },
        Partial { bid: Field::Keep, ask: Field::Clear },
    ];
    for update in updates {
        producer.dispatch(&1, update).unwrap();
    }
    assert_eq!(stepper.step(9), 1, "one merged update");
    assert_eq!(stepper.handler().unwrap().quotes[&1], Quote { bid: Some(0), ask: None });
}

fn field() -> impl Strategy<Value = Field> {
    prop_oneof![
        Just(Field::Keep),
        Just(Field::Clear),
        Just(Field::Set(0)),
        (1..9_u32).prop_map(Field::Set)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(56), failure_persistence: None, ..ProptestConfig::default() })]

    /// Cut where it may be: how many keys are delivered after each update.
    #[test]
    fn b56_merged_updates_build_what_the_single_ones_do(
        updates in prop::collection::vec((0..3_u8, field(), field(), 0..4_usize), 0..60),
    ) {
        let (mut producer, mut stepper) =
            CoalescingSpWorker::builder().capacity(4).stepped(Book::default()).unwrap();
        let mut one_by_one = Book::default();
        for &(key, bid, ask, cut) in &updates {
            let update = Partial { bid, ask };
            one_by_one.apply(key, update);
            producer.try_dispatch(&key, update).unwrap();
            stepper.step(cut);
            if cut == 3 {
                prop_assert_eq!(stepper.handler().unwrap(), &one_by_one);
            }
        }
        stepper.step(3);
        prop_assert_eq!(stepper.handler().unwrap(), &one_by_one);
    }
}
