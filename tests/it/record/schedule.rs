//! The schedule in real time; in virtual time, `feed::replay`'s own tests hold it to the nanosecond.

use std::time::Duration;

use tidegate::clock::Clock;
use tidegate::feed::{Recording, Replay, ReplayOptions, Speed, Step, wait_until};
use tokio_util::sync::CancellationToken;

#[test]
#[ignore = "takes five seconds and wants a machine that is not busy with anything else"]
fn b25_a_hundred_thousand_records_at_speed_twenty_thousand_are_on_time() {
    let mut text = String::new();
    for second in 0..100_000_i64 {
        text += &format!("{} {second}\n", 1_700_000_000 + second);
    }
    let recording = Recording::from_bytes("a day", text.into(), 1 << 30).unwrap();
    let options = ReplayOptions { speed: Speed::times(20_000.0).unwrap(), ..Default::default() };
    let mut replay = Replay::new(vec![recording], options).unwrap();
    let (clock, stop) = (Clock::system(), CancellationToken::new());
    let began = clock.now();
    let mut records = 0_u32;
    loop {
        match replay.next(clock.now()) {
            Step::Record { .. } => {
                records += 1;
                if records.is_multiple_of(10_000) {
                    let ideal = Duration::from_secs(u64::from(records) - 1) / 20_000;
                    let error = clock.now().since(began).abs_diff(ideal);
                    println!("record {records}: {error:?} off {ideal:?}");
                    assert!(error <= ideal / 100, "record {records}: {error:?} off {ideal:?}");
                }
            }
            Step::WaitUntil(due) => assert!(wait_until(&clock, due, &stop)),
            Step::Ended => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(records, 100_000);
}
