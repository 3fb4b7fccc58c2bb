//! One body of tests for every worker: order, backpressure, every way to the end, errors.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::worker_subjects::{
    Consumer, Control, Kind, Producer, Start, Subject, Waits, Why, block_on,
};
use crate::worker_support::{Census, Event, PATIENCE, Probe, eventually};
use std::sync::LazyLock;
use std::task::{Context, Waker};
use std::thread;
use tidegate::worker::{CapacityError, CloseReason, CompletionError, StartError};
use tokio_util::sync::CancellationToken;

/// Runs every body against one worker.
macro_rules! conformance {
    ($name:ident, $kind:ident, $consumer:ident, $waits:ident, [$($body:ident),* $(,)?]) => {
        mod $name {
            use super::*;
            const SUBJECT: Subject = Subject {
                kind: Kind::$kind,
                consumer: Consumer::$consumer,
                waits: Waits::$waits,
            };
            $(#[test] fn $body() { super::$body(SUBJECT); })*
        }
    };
}

macro_rules! conformance_of_all {
    ($($name:ident: $kind:ident $consumer:ident $waits:ident),* $(,)?) => {
        $(conformance!($name, $kind, $consumer, $waits, [
            items_come_in_the_order_they_went_across_the_wrap_of_positions,
            b73_capacity_rounds_up_and_impossible_ones_are_refused,
            a_full_ring_refuses_or_blocks_and_goes_on_when_there_is_room,
            complete_handles_what_was_accepted_and_refuses_the_rest,
            dropping_the_producer_drains,
            a_fault_drains_and_then_fails_the_completion,
            b72_items_are_dropped_once_in_every_order_of_teardown,
            b76_a_blocked_producer_is_freed_with_the_reason,
            b77_errors_and_panics_are_reported_and_the_next_item_is_handled,
            panics_in_the_last_callbacks_do_not_keep_the_completion_back,
            b78_completion_comes_after_the_last_handler_and_on_completed,
            b79_every_way_to_stop_ends_in_every_state,
            b79_nothing_blocks_a_current_thread_runtime,
            b80_idle_and_blocked_workers_use_no_processor_time,
            b81_a_handled_item_is_not_kept_by_its_place,
            a_token_that_is_cancelled_before_the_start_ends_the_worker_at_once,
            counts_and_queue_tell_what_happened,
            nothing_of_the_starting_thread_flows_into_the_handler,
            an_awaiting_dispatch_that_is_given_up_leaves_the_worker_as_it_was,
            a_handler_that_dispatches_to_its_own_full_worker_is_refused_at_once,
            nothing_is_left_behind_by_a_hard_stop,
        ]);)*
    };
}

conformance_of_all! {
    byvalue_thread_blocking: ByValue Thread Blocking,
    byvalue_thread_awaiting: ByValue Thread Awaiting,
    byvalue_task_blocking: ByValue Task Blocking,
    byvalue_task_awaiting: ByValue Task Awaiting,
    byvalue_stepped_blocking: ByValue Stepped Blocking,
    byvalue_stepped_awaiting: ByValue Stepped Awaiting,
    inslots_thread_blocking: InSlots Thread Blocking,
    inslots_thread_awaiting: InSlots Thread Awaiting,
    inslots_task_blocking: InSlots Task Blocking,
    inslots_task_awaiting: InSlots Task Awaiting,
    inslots_stepped_blocking: InSlots Stepped Blocking,
    inslots_stepped_awaiting: InSlots Stepped Awaiting,
    conflation_thread_blocking: Conflation Thread Blocking,
    conflation_thread_awaiting: Conflation Thread Awaiting,
    conflation_task_blocking: Conflation Task Blocking,
    conflation_task_awaiting: Conflation Task Awaiting,
    conflation_stepped_blocking: Conflation Stepped Blocking,
    conflation_stepped_awaiting: Conflation Stepped Awaiting,
    coalescing_thread_blocking: Coalescing Thread Blocking,
    coalescing_thread_awaiting: Coalescing Thread Awaiting,
    coalescing_task_blocking: Coalescing Task Blocking,
    coalescing_task_awaiting: Coalescing Task Awaiting,
    coalescing_stepped_blocking: Coalescing Stepped Blocking,
    coalescing_stepped_awaiting: Coalescing Stepped Awaiting,
}

fn start(subject: Subject, capacity: usize, probe: &Probe) -> (Producer, Box<dyn Control>) {
    subject.start(Start::with_capacity(capacity), probe.clone()).unwrap()
}

fn handled(numbers: impl IntoIterator<Item = u32>) -> Vec<Event> {
    numbers.into_iter().map(Event::Handled).collect()
}

fn items_come_in_the_order_they_went_across_the_wrap_of_positions(subject: Subject) {
    for capacity in [1, 2, 3, 64] {
        let (census, probe) = (Census::default(), Probe::default());
        let (mut producer, worker) = start(subject, capacity, &probe);
        for number in 0..200 {
            producer.send(census.item(number)).unwrap();
        }
        assert!(producer.complete());
        worker.completion().wait().unwrap();
        let mut expected = handled(0..200);
        expected.push(Event::Drained);
        assert_eq!(probe.events(), expected);
        assert_eq!(census.living(), 0);
    }
}

fn b73_capacity_rounds_up_and_impossible_ones_are_refused(subject: Subject) {
    for (asked, got) in [(1, 1), (3, 4), (1000, 1024)] {
        let (_producer, worker) = start(subject, asked, &Probe::default());
        assert_eq!(worker.queue().capacity(), got);
    }
    for asked in [0, usize::MAX, (1 << 63) + 1] {
        let refused = subject.start(Start::with_capacity(asked), Probe::default()).map(drop);
        let Err(StartError::Capacity(error)) = refused else { panic!("{asked} was accepted") };
        match asked {
            0 => assert_eq!(error, CapacityError::Zero),
            requested => assert_eq!(error, CapacityError::TooLarge { requested }),
        }
    }
    let refused = subject.start(Start::with_capacity(1 << 61), Probe::default()).map(drop);
    assert!(matches!(refused, Err(StartError::Capacity(CapacityError::OutOfMemory { .. }))));
}

/// A worker of `capacity` whose handler stands at the gate with item 0 and whose ring is full.
fn filled(
    subject: Subject,
    capacity: usize,
    probe: &Probe,
    census: &Census,
) -> (Producer, Box<dyn Control>) {
    filled_under(subject, Start::with_capacity(capacity), probe, census)
}

fn filled_under(
    subject: Subject,
    settings: Start,
    probe: &Probe,
    census: &Census,
) -> (Producer, Box<dyn Control>) {
    let capacity = settings.capacity as u32;
    probe.gate.shut();
    let (mut producer, worker) = subject.start(settings, probe.clone()).unwrap();
    producer.send(census.item(0)).unwrap();
    probe.gate.wait_for_arrival();
    for number in 1..=capacity {
        producer.send(census.item(number)).unwrap();
    }
    (producer, worker)
}

fn a_full_ring_refuses_or_blocks_and_goes_on_when_there_is_room(subject: Subject) {
    let (census, probe) = (Census::default(), Probe::default());
    let (mut producer, worker) = filled(subject, 2, &probe, &census);
    let refused = producer.try_send(census.item(3)).unwrap_err();
    assert_eq!((refused.item.number, refused.why), (3, Why::Full));
    let blocked = thread::spawn(move || {
        producer.send(refused.item).unwrap();
        producer
    });
    thread::sleep(std::time::Duration::from_millis(20));
    assert!(!blocked.is_finished(), "a full ring took an item");
    probe.gate.open();
    drop(blocked.join().unwrap());
    worker.completion().wait().unwrap();
    assert_eq!(probe.events()[..4], handled(0..4));
    assert_eq!(census.living(), 0);
}

fn complete_handles_what_was_accepted_and_refuses_the_rest(subject: Subject) {
    let (census, probe) = (Census::default(), Probe::default());
    let (mut producer, worker) = filled(subject, 4, &probe, &census);
    assert!(worker.complete());
    assert!(!worker.complete(), "a second completion says so");
    assert!(!worker.fault("too late"));
    assert!(!producer.complete());
    for refused in [producer.send(census.item(9)), producer.try_send(census.item(9))] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.item.number, 9);
        assert_eq!(refused.why, Why::Closed(CloseReason::Completed));
    }
    assert!(worker.completion().outcome().is_none());
    probe.gate.open();
    worker.completion().wait().unwrap();
    let mut expected = handled(0..5);
    expected.push(Event::Drained);
    assert_eq!(probe.events(), expected);
    assert!(!worker.cancel(), "what has ended cannot be cancelled");
    assert!(worker.completion().wait().is_ok());
    assert_eq!(census.living(), 0);
}

fn dropping_the_producer_drains(subject: Subject) {
    let (census, probe) = (Census::default(), Probe::default());
    let (producer, worker) = filled(subject, 4, &probe, &census);
    drop(producer);
    probe.gate.open();
    worker.completion().wait().unwrap();
    let mut expected = handled(0..5);
    expected.push(Event::Drained);
    assert_eq!(probe.events(), expected);
}

fn a_fault_drains_and_then_fails_the_completion(subject: Subject) {
    let (census, probe) = (Census::default(), Probe::default());
    let (mut producer, worker) = filled(subject, 4, &probe, &census);
    assert!(worker.fault("the venue left"));
    assert!(!worker.fault("again"));
    let refused = producer.send(census.item(9)).unwrap_err();
    assert_eq!(refused.why, Why::Closed(CloseReason::Faulted));
    drop(refused);
    probe.gate.open();
    let error = worker.completion().wait().unwrap_err();
    assert!(matches!(&error, CompletionError::Faulted(f) if f.to_string() == "the venue left"));
    let mut expected = handled(0..5);
    expected.push(Event::Faulted("the venue left".into()));
    assert_eq!(probe.events(), expected);
    assert_eq!(census.living(), 0);
}

fn b72_items_are_dropped_once_in_every_order_of_teardown(subject: Subject) {
    type Teardown = fn(Producer, Box<dyn Control>, &CancellationToken, &Probe) -> bool;
    let orders: [(&str, Teardown); 6] = [
        ("producer first, then the worker", |producer, worker, _, probe| {
            drop(producer);
            probe.gate.open();
            worker.completion().wait().is_ok()
        }),
        ("worker first", |producer, worker, _, probe| {
            worker.cancel();
            probe.gate.open();
            drop(worker);
            drop(producer);
            true
        }),
        ("worker first, its handler still busy", |producer, worker, _, probe| {
            let gate = probe.gate.clone();
            let opener = thread::spawn(move || {
                thread::sleep(std::time::Duration::from_millis(20));
                gate.open();
            });
            drop(worker);
            opener.join().unwrap();
            drop(producer);
            true
        }),
        ("token", |producer, worker, token, probe| {
            token.cancel();
            probe.gate.open();
            let cancelled = matches!(worker.completion().wait(), Err(CompletionError::Cancelled));
            drop(producer);
            cancelled
        }),
        ("completed, then cancelled", |producer, worker, _, probe| {
            worker.complete();
            worker.cancel();
            probe.gate.open();
            drop(producer);
            matches!(worker.completion().wait(), Err(CompletionError::Cancelled))
        }),
        (
            "producer dropped, then the worker, before the handler is done",
            |producer, worker, _, probe| {
                drop(producer);
                worker.cancel();
                probe.gate.open();
                drop(worker);
                true
            },
        ),
    ];
    for (order, teardown) in orders {
        let (census, mut probe) = (Census::default(), Probe::default());
        probe.panic_on = vec![0];
        let token = CancellationToken::new();
        let settings = Start { capacity: 4, position: usize::MAX - 2, token: token.clone() };
        let (producer, worker) = filled_under(subject, settings, &probe, &census);
        let (queue, completion) = (worker.queue(), worker.completion());
        assert!(teardown(producer, worker, &token, &probe), "{order}");
        let _ = completion.wait();
        assert_eq!(census.living(), 0, "{order}");
        let counters = queue.counters();
        assert_eq!(counters.dispatched, 5, "{order}");
        assert_eq!(counters.handled + counters.discarded, 5, "{order}");
        assert_eq!(queue.queued(), 0, "{order}");
        let ends = probe
            .events()
            .iter()
            .filter(|e| matches!(e, Event::Drained | Event::Cancelled))
            .count();
        assert_eq!(ends, 1, "{order}");
    }
}

fn b76_a_blocked_producer_is_freed_with_the_reason(subject: Subject) {
    type Stop = fn(Box<dyn Control>, &CancellationToken) -> Option<Box<dyn Control>>;
    let stops: [(CloseReason, Stop); 5] = [
        (CloseReason::Completed, |w, _| w.complete().then_some(w)),
        (CloseReason::Faulted, |w, _| w.fault("fault").then_some(w)),
        (CloseReason::Cancelled, |w, _| w.cancel().then_some(w)),
        (CloseReason::Cancelled, |w, token| {
            token.cancel();
            Some(w)
        }),
        (CloseReason::Cancelled, |w, _| {
            thread::spawn(move || drop(w));
            None
        }),
    ];
    for (reason, stop) in stops {
        let (census, probe) = (Census::default(), Probe::default());
        let settings = Start::with_capacity(1);
        let token = settings.token.clone();
        let (mut producer, worker) = filled_under(subject, settings, &probe, &census);
        let completion = worker.completion();
        let item = census.item(2);
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        let blocked = thread::spawn(move || {
            let _ = answer.send(producer.send(item));
            producer
        });
        thread::sleep(std::time::Duration::from_millis(5));
        let _worker = stop(worker, &token);
        // The handler is still busy: the producer does not have to wait for it.
        let refused = answered.recv_timeout(PATIENCE).expect("the producer stayed blocked");
        let refused = refused.expect_err("a stopped worker took an item");
        assert_eq!((refused.item.number, refused.why), (2, Why::Closed(reason)));
        drop(refused.item);
        probe.gate.open();
        drop(blocked.join().unwrap());
        let _ = completion.wait();
        assert_eq!(census.living(), 0);
    }
}

fn b77_errors_and_panics_are_reported_and_the_next_item_is_handled(subject: Subject) {
    let (census, mut probe) = (Census::default(), Probe::default());
    probe.fail_on = vec![3];
    probe.panic_on = vec![7];
    let (mut producer, worker) = start(subject, 16, &probe);
    for number in 1..=10 {
        producer.send(census.item(number)).unwrap();
    }
    drop(producer);
    worker.completion().wait().unwrap();
    let mut expected = handled(1..=10);
    expected[2] = Event::Failed(3);
    expected[6] = Event::Panicked("item 7".into());
    expected.push(Event::Drained);
    assert_eq!(probe.events(), expected);
    assert_eq!(worker.counters().errors, 2);
    assert_eq!(worker.counters().handled, 10);
    assert_eq!(census.living(), 0);
}

fn panics_in_the_last_callbacks_do_not_keep_the_completion_back(subject: Subject) {
    let (census, mut probe) = (Census::default(), Probe::default());
    probe.fail_on = vec![1];
    probe.panic_in_on_error = true;
    probe.panic_in_on_completed = true;
    let (mut producer, worker) = start(subject, 4, &probe);
    for number in 0..3 {
        producer.send(census.item(number)).unwrap();
    }
    drop(producer);
    assert!(worker.completion().wait_timeout(PATIENCE));
    let expected = [Event::Handled(0), Event::Failed(1), Event::Handled(2), Event::Drained];
    assert_eq!(probe.events(), expected);
}

fn b78_completion_comes_after_the_last_handler_and_on_completed(subject: Subject) {
    for _ in 0..200 {
        let (census, probe) = (Census::default(), Probe::default());
        let (mut producer, worker) = start(subject, 8, &probe);
        for number in 0..5 {
            producer.send(census.item(number)).unwrap();
        }
        drop(producer);
        worker.completion().wait().unwrap();
        assert_eq!(probe.events().last(), Some(&Event::Drained));
        assert_eq!(probe.events().len(), 6);
        assert_eq!(std::sync::Arc::strong_count(&probe.alive), 1, "the handler is gone");
        assert_eq!(census.living(), 0);
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    Busy,
    Full,
    Blocked,
    Completing,
    Ended,
}

#[derive(Clone, Copy, Debug)]
enum Stop {
    Complete,
    Fault,
    Cancel,
    Token,
    DropProducer,
    DropWorker,
}

const STATES: [State; 6] =
    [State::Idle, State::Busy, State::Full, State::Blocked, State::Completing, State::Ended];
const STOPS: [Stop; 6] =
    [Stop::Complete, Stop::Fault, Stop::Cancel, Stop::Token, Stop::DropProducer, Stop::DropWorker];

/// Brings a worker into a state, stops it one way, and sees it to its end.
fn stop_in(subject: Subject, state: State, stop: Stop) {
    let (census, probe) = (Census::default(), Probe::default());
    let settings = Start::with_capacity(2);
    let token = settings.token.clone();
    let (producer, worker) = match state {
        State::Idle | State::Ended => subject.start(settings, probe.clone()).unwrap(),
        State::Busy => {
            probe.gate.shut();
            let (mut producer, worker) = subject.start(settings, probe.clone()).unwrap();
            producer.send(census.item(0)).unwrap();
            probe.gate.wait_for_arrival();
            (producer, worker)
        }
        State::Full | State::Blocked | State::Completing => {
            filled_under(subject, settings, &probe, &census)
        }
    };
    let completion = worker.completion();
    let (mut producer, mut blocked) = (Some(producer), None);
    match state {
        State::Completing => assert!(worker.complete()),
        State::Ended => {
            assert!(worker.complete());
            completion.wait().unwrap();
        }
        State::Blocked => {
            let (mut producer, item) = (producer.take().unwrap(), census.item(3));
            // It drops the producer as soon as it is free again.
            blocked = Some(thread::spawn(move || drop(producer.send(item))));
        }
        _ => {}
    }
    let mut worker = Some(worker);
    let control = worker.as_ref().unwrap();
    match stop {
        Stop::Complete => drop(control.complete()),
        Stop::Fault => drop(control.fault("stop")),
        Stop::Cancel => drop(control.cancel()),
        Stop::Token => token.cancel(),
        Stop::DropProducer => drop(producer.take()),
        Stop::DropWorker => {
            // Whoever is at the gate must be able to leave: the drop waits for it.
            probe.gate.open();
            worker = None;
        }
    }
    probe.gate.open();
    if let Some(blocked) = blocked {
        blocked.join().unwrap();
    }
    assert!(completion.wait_timeout(PATIENCE), "{state:?} {stop:?}");
    drop((producer, worker));
    let ends = probe
        .events()
        .iter()
        .filter(|e| matches!(e, Event::Drained | Event::Cancelled | Event::Faulted(_)))
        .count();
    assert_eq!(ends, 1, "{state:?} {stop:?}");
    assert!(!matches!(probe.events().last(), Some(Event::Handled(_))), "{state:?} {stop:?}");
    assert_eq!(census.living(), 0, "{state:?} {stop:?}");
}

fn b79_every_way_to_stop_ends_in_every_state(subject: Subject) {
    for state in STATES {
        for stop in STOPS {
            stop_in(subject, state, stop);
        }
    }
}

fn b79_nothing_blocks_a_current_thread_runtime(subject: Subject) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        for stop in STOPS {
            let (census, probe) = (Census::default(), Probe::default());
            let (producer, worker) = filled(subject, 2, &probe, &census);
            let completion = worker.completion();
            let mut producer = Some(producer);
            let mut worker = Some(worker);
            let begun = tokio::time::Instant::now();
            match stop {
                Stop::Complete => drop(worker.as_ref().unwrap().complete()),
                Stop::Fault => drop(worker.as_ref().unwrap().fault("stop")),
                Stop::Cancel | Stop::Token => drop(worker.as_ref().unwrap().cancel()),
                Stop::DropProducer => producer = None,
                Stop::DropWorker => worker = None,
            }
            // The handler is still at the gate: whoever waited for it would never return.
            assert!(begun.elapsed() < PATIENCE);
            probe.gate.open();
            let ended = tokio::time::timeout(PATIENCE, completion).await;
            assert!(ended.is_ok(), "{stop:?}");
            drop((producer.take(), worker.take()));
            assert_eq!(census.living(), 0, "{stop:?}");
        }
    });
}

fn b80_idle_and_blocked_workers_use_no_processor_time(subject: Subject) {
    let (census, probe) = (Census::default(), Probe::default());
    let (_idle, _idle_worker) = start(subject, 4, &Probe::default());
    let (mut producer, worker) = filled(subject, 1, &probe, &census);
    let item = census.item(2);
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let blocked = thread::spawn(move || {
        tell.send(kernel_thread_id()).unwrap();
        let sent = producer.send(item);
        drop(producer);
        sent.is_ok()
    });
    let id = told.recv().unwrap();
    // Past its patience the producer sleeps; from then on its time stands still.
    thread::sleep(std::time::Duration::from_millis(50));
    let before = thread_ticks(&id);
    thread::sleep(std::time::Duration::from_millis(300));
    let used = thread_ticks(&id) - before;
    assert!(used <= 2, "a blocked producer used {used} ticks of 10 ms in 300 ms");
    probe.gate.open();
    assert!(blocked.join().unwrap());
    worker.completion().wait().unwrap();
}

/// The kernel's id of the calling thread.
fn kernel_thread_id() -> String {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Processor time of a thread of this process, in clock ticks.
fn thread_ticks(id: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{id}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn b81_a_handled_item_is_not_kept_by_its_place(subject: Subject) {
    let (census, probe) = (Census::default(), Probe::default());
    let (mut producer, worker) = start(subject, 1024, &probe);
    for number in 0..10 {
        producer.send(census.item(number)).unwrap();
    }
    eventually("all ten are handled", || worker.counters().handled == 10);
    eventually("none is kept", || census.living() == 0);
    drop(producer);
}

fn a_token_that_is_cancelled_before_the_start_ends_the_worker_at_once(subject: Subject) {
    let (census, probe) = (Census::default(), Probe::default());
    let settings = Start::with_capacity(4);
    settings.token.cancel();
    let (mut producer, worker) = subject.start(settings, probe.clone()).unwrap();
    let refused = producer.send(census.item(0)).unwrap_err();
    assert_eq!(refused.why, Why::Closed(CloseReason::Cancelled));
    assert!(matches!(worker.completion().wait(), Err(CompletionError::Cancelled)));
    assert_eq!(probe.events(), [Event::Cancelled]);
}

fn counts_and_queue_tell_what_happened(subject: Subject) {
    let (census, probe) = (Census::default(), Probe::default());
    let (mut producer, worker) = filled(subject, 4, &probe, &census);
    assert_eq!((worker.queue().queued(), worker.queue().capacity()), (4, 4));
    assert!(producer.try_send(census.item(9)).is_err());
    assert_eq!(worker.counters().dispatched, 5);
    drop(producer);
    probe.gate.open();
    worker.completion().wait().unwrap();
    let counters = worker.counters();
    assert_eq!((counters.dispatched, counters.handled), (5, 5));
    assert_eq!((counters.conflated, counters.discarded, counters.errors), (0, 0, 0));
    assert_eq!(worker.queue().queued(), 0);
}

tokio::task_local! {
    static MARK: ();
}

static SPANS: LazyLock<tracing::Dispatch> =
    LazyLock::new(|| tracing::Dispatch::new(tracing_subscriber::registry()));

/// What of the surroundings is in sight here.
fn ambient() -> Vec<&'static str> {
    let mut seen = Vec::new();
    if MARK.try_with(|()| ()).is_ok() {
        seen.push("task-local");
    }
    if tracing::dispatcher::with_default(&SPANS, || tracing::Span::current().id().is_some()) {
        seen.push("span");
    }
    if tokio::runtime::Handle::try_current().is_ok() {
        seen.push("runtime");
    }
    seen
}

fn nothing_of_the_starting_thread_flows_into_the_handler(subject: Subject) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (census, mut probe) = (Census::default(), Probe::default());
    probe.ambient = Some(ambient);
    let seen = probe.seen.clone();
    let _entered = runtime.enter();
    let span = tracing::dispatcher::with_default(&SPANS, || tracing::info_span!("starting"));
    let (mut producer, worker) = MARK.sync_scope((), || {
        span.in_scope(|| {
            assert_eq!(ambient(), ["task-local", "span", "runtime"], "the starter has all");
            start(subject, 4, &probe)
        })
    });
    producer.send(census.item(0)).unwrap();
    drop(producer);
    worker.completion().wait().unwrap();
    // A task is in the runtime that runs it, of course.
    let expected: &[&str] = if subject.consumer == Consumer::Task { &["runtime"] } else { &[] };
    assert_eq!(seen.lock().unwrap().as_slice(), expected);
}

fn an_awaiting_dispatch_that_is_given_up_leaves_the_worker_as_it_was(subject: Subject) {
    let (census, probe) = (Census::default(), Probe::default());
    let (mut producer, worker) = filled(subject, 2, &probe, &census);
    for _ in 0..3 {
        let mut given_up = producer.send_async(census.item(8));
        // Past its patience it is registered.
        for _ in 0..100 {
            let mut context = Context::from_waker(Waker::noop());
            assert!(given_up.as_mut().poll(&mut context).is_pending());
        }
    }
    assert_eq!(census.living(), 3, "what was not taken is gone with its future");
    let item = census.item(3);
    let blocked = thread::spawn(move || {
        producer.send(item).unwrap();
        block_on(producer.send_async(census.item(4))).unwrap();
        census
    });
    thread::sleep(std::time::Duration::from_millis(5));
    probe.gate.open();
    let census = blocked.join().unwrap();
    worker.completion().wait().unwrap();
    assert_eq!(probe.events()[..5], handled(0..5));
    assert_eq!(census.living(), 0);
}

fn a_handler_that_dispatches_to_its_own_full_worker_is_refused_at_once(subject: Subject) {
    let (census, mut probe) = (Census::default(), Probe::default());
    let own = std::sync::Arc::new(std::sync::Mutex::new(None));
    probe.own = Some((own.clone(), census.clone()));
    let (mut producer, worker) = start(subject, 2, &probe);
    probe.gate.shut();
    producer.send(census.item(0)).unwrap();
    *own.lock().unwrap() = Some(producer);
    probe.gate.open();
    eventually("the handler is refused", || !probe.seen.lock().unwrap().is_empty());
    assert_eq!(probe.seen.lock().unwrap().as_slice(), ["full"]);
    eventually("the handler is done", || own.lock().unwrap().is_some());
    let producer = own.lock().unwrap().take();
    drop(producer);
    worker.completion().wait().unwrap();
    assert!(probe.events().len() >= 3, "what had room was taken");
    assert_eq!(census.living(), 0);
}

fn nothing_is_left_behind_by_a_hard_stop(subject: Subject) {
    let (census, probe) = (Census::default(), Probe::default());
    let (producer, worker) = filled(subject, 4, &probe, &census);
    assert!(worker.cancel());
    assert!(!worker.cancel());
    if subject.consumer != Consumer::Task {
        // A thread finishes the item in hand; a task drops its handler where it waits.
        probe.gate.open();
    }
    assert!(worker.completion().wait_timeout(PATIENCE));
    let kept: &[Event] = &[Event::Handled(0), Event::Cancelled];
    let skip = usize::from(subject.consumer == Consumer::Task);
    assert_eq!(probe.events(), kept[skip..]);
    assert_eq!(census.living(), 0);
    assert_eq!(std::sync::Arc::strong_count(&probe.alive), 1, "the handler is gone");
    let counters = worker.counters();
    assert_eq!((counters.handled, counters.discarded), (1, 4));
    drop(producer);
}
