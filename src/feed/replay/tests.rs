use std::collections::HashMap;
use std::fmt::Write as _;

use bytes::Bytes;

use super::super::report::DamageKind;
use super::super::seeded::Seeded;
use super::*;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
/// A receive time to start from.
const T: i64 = 1_700_000_000 * SECOND;
const PLENTY: u64 = 1 << 30;

/// A recording with these receive times, in ns; each message is its own number.
fn stamped(times: &[i64]) -> Recording {
    let mut text = String::new();
    for (number, time) in times.iter().enumerate() {
        // Nineteen digits, so that the unit is ns; leading zeros are digits.
        writeln!(text, "{time:019} {number}").unwrap();
    }
    from_text(text)
}

fn from_text(text: impl Into<Bytes>) -> Recording {
    Recording::from_bytes("memory", text.into(), PLENTY).unwrap()
}

fn at_speed(factor: f64) -> ReplayOptions {
    ReplayOptions { speed: Speed::times(factor).unwrap(), ..ReplayOptions::default() }
}

fn at_max() -> ReplayOptions {
    ReplayOptions { speed: Speed::Max, ..ReplayOptions::default() }
}

/// What a replay did: each record with the time it came, the source, the pass and the text.
#[derive(Debug, Default)]
struct Played {
    records: Vec<(Duration, usize, u64, String)>,
    damaged: Vec<(usize, Damage)>,
    passes_started: Vec<Duration>,
    end: Duration,
}

impl Played {
    fn texts(&self) -> Vec<&str> {
        self.records.iter().map(|record| record.3.as_str()).collect()
    }

    fn times(&self) -> Vec<Duration> {
        self.records.iter().map(|record| record.0).collect()
    }
}

/// Plays to the end (or `limit` records); every wait lasts longer than asked for by `oversleep`.
fn play(replay: &mut Replay, oversleep: Duration, limit: usize) -> Played {
    let start = Instant::from_nanos(77);
    let mut now = start;
    let mut played = Played::default();
    let mut pass = 0;
    while played.records.len() < limit {
        match replay.next(now) {
            Step::Record { source, record } => {
                let text = String::from_utf8(record.text.to_vec()).unwrap();
                played.records.push((now.since(start), source, pass, text));
            }
            Step::WaitUntil(due) => {
                assert!(due > now, "a wait lies ahead");
                now = due + oversleep;
            }
            Step::Damaged { source, damage } => played.damaged.push((source, damage.clone())),
            Step::Unreadable { error, .. } => panic!("{error}"),
            Step::Jumped { .. } | Step::Paused => panic!("nobody asked for that"),
            Step::NextPass { pass: number } => {
                pass = number;
                played.passes_started.push(now.since(start));
            }
            Step::Ended => break,
        }
    }
    played.end = now.since(start);
    played
}

fn play_all(recordings: Vec<Recording>, options: ReplayOptions) -> Played {
    let mut replay = Replay::new(recordings, options).unwrap();
    let played = play(&mut replay, Duration::ZERO, usize::MAX);
    assert!(matches!(replay.next(Instant::default()), Step::Ended), "the end stays the end");
    played
}

#[test]
fn several_recordings_are_merged_by_receive_time_and_named_order_at_equal_times() {
    let recordings =
        vec![stamped(&[T, T + 20, T + 20, T + 50]), stamped(&[T, T + 10, T + 20]), stamped(&[])];
    let played = play_all(recordings, at_max());
    let order: Vec<(usize, &str)> =
        played.records.iter().map(|(_, source, _, text)| (*source, text.as_str())).collect();
    assert_eq!(order, [(0, "0"), (1, "0"), (1, "1"), (0, "1"), (0, "2"), (1, "2"), (0, "3")]);
}

#[test]
fn a_record_comes_when_its_gap_divided_by_the_speed_has_passed() {
    for (factor, milliseconds) in
        [(1.0, [0, 100, 1100]), (0.5, [0, 200, 2200]), (100.0, [0, 1, 11])]
    {
        let played = play_all(vec![stamped(&[T, T + 100 * MS, T + 1100 * MS])], at_speed(factor));
        assert_eq!(played.times(), milliseconds.map(Duration::from_millis), "speed {factor}");
    }
}

#[test]
fn full_speed_never_waits() {
    let played = play_all(vec![stamped(&[T, T + SECOND, T + 3600 * SECOND])], at_max());
    assert_eq!((played.records.len(), played.end), (3, Duration::ZERO));
}

#[test]
fn b25_oversleeping_does_not_add_up() {
    let times: Vec<i64> = (0..100_000).map(|n| T + n * SECOND).collect();
    let options = at_speed(20_000.0);
    let mut replay = Replay::new(vec![stamped(&times)], options).unwrap();
    let oversleep = Duration::from_micros(60);
    let played = play(&mut replay, oversleep, usize::MAX);
    assert_eq!(played.records.len(), 100_000);
    for checkpoint in (1..=10).map(|tenth| tenth * 10_000 - 1) {
        let ideal = Duration::from_secs(checkpoint as u64) / 20_000;
        let actual = played.records[checkpoint].0;
        let error = actual.checked_sub(ideal).expect("never early");
        assert!(error <= oversleep, "record {checkpoint} is {error:?} late");
    }
}

#[test]
fn b26_the_second_of_two_recordings_a_year_apart_starts_after_the_gap_cap() {
    let year = 365 * 24 * 3600 * SECOND;
    for order in [[0, year], [year, 0]] {
        let recordings = order.map(|shift| stamped(&[T + shift, T + shift + SECOND])).to_vec();
        let played = play_all(recordings, ReplayOptions::default());
        assert_eq!(played.times(), [0, 1, 11, 12].map(Duration::from_secs));
    }
    // The same within one recording.
    let played = play_all(vec![stamped(&[T, T + year, T + year + SECOND])], at_speed(1.0));
    assert_eq!(played.times(), [0, 10, 11].map(Duration::from_secs));
}

#[test]
fn b27_each_pass_takes_its_span_divided_by_the_speed_and_the_delay_stands_between_all() {
    let recording = stamped(&[T, T + SECOND, T + 3 * SECOND, T + 6 * SECOND]);
    let delay = Duration::from_secs(2);
    for factor in [0.5, 1.0, 2.0] {
        for passes in [Some(1), Some(3), None] {
            let options = ReplayOptions {
                passes: passes.and_then(NonZeroU64::new),
                pass_delay: delay,
                ..at_speed(factor)
            };
            let mut replay = Replay::new(vec![recording.clone()], options).unwrap();
            // An endless replay is stopped after five passes.
            let limit = 4 * usize::try_from(passes.unwrap_or(5)).unwrap();
            let played = play(&mut replay, Duration::from_micros(50), limit);
            assert_eq!(played.records.len(), limit);
            let mut by_pass: HashMap<u64, Vec<f64>> = HashMap::new();
            for (time, _, pass, _) in &played.records {
                by_pass.entry(*pass).or_default().push(time.as_secs_f64());
            }
            assert_eq!(by_pass.len() * 4, limit);
            for (pass, times) in &by_pass {
                let begun = *pass as f64 * (6.0 / factor + 2.0);
                for (time, recorded) in times.iter().zip([0.0, 1.0, 3.0, 6.0]) {
                    let late = time - (begun + recorded / factor);
                    assert!((0.0..0.0001).contains(&late), "pass {pass} at {factor}: {late} late");
                }
            }
        }
    }
}

#[test]
fn a_pass_at_full_speed_is_followed_by_the_delay_too() {
    let options = ReplayOptions {
        passes: NonZeroU64::new(3),
        pass_delay: Duration::from_secs(1),
        ..at_max()
    };
    let played = play_all(vec![stamped(&[T, T + 1]), stamped(&[T])], options);
    assert_eq!(played.times(), [0, 0, 0, 1, 1, 1, 2, 2, 2].map(Duration::from_secs));
    assert_eq!(played.passes_started, [0, 1].map(Duration::from_secs));
}

#[test]
fn a_recording_without_records_is_not_looped_for_ever() {
    for text in ["", "\n", "garbage\n"] {
        let options = ReplayOptions { passes: None, ..at_max() };
        let played = play_all(vec![from_text(text)], options);
        assert_eq!((played.records.len(), played.passes_started.len()), (0, 0));
    }
}

#[test]
fn b28_one_stamp_far_in_the_future_neither_stalls_nor_ends_the_pacing() {
    let far = T + 65_536 * SECOND;
    let played = play_all(vec![stamped(&[T, far, T + MS, T + 3 * MS])], at_speed(1.0));
    assert_eq!(played.times(), [0, 0, 1, 3].map(Duration::from_millis));
    assert_eq!(played.texts(), ["0", "1", "2", "3"]);
    // Two in a row are taken for a move of the clock: the gap is cut once, pacing goes on.
    let played = play_all(vec![stamped(&[T, far, far + MS, T + MS, T + 3 * MS])], at_speed(1.0));
    assert_eq!(played.times(), [0, 10_000, 10_001, 10_001, 10_003].map(Duration::from_millis));
    // At the end nothing tells that it is wrong: the gap is cut.
    let played = play_all(vec![stamped(&[T, far])], at_speed(1.0));
    assert_eq!(played.times(), [0, 10].map(Duration::from_secs));
}

#[test]
fn b28_stamps_of_zero_and_beyond_all_times_wait_for_nothing() {
    let text = format!(
        "{T} 0\n0 1\n{} 2\n{} 3\n{} 4\n0 5\n{} 6\n",
        T + MS,
        u64::MAX,
        T + 2 * MS,
        T + 3 * MS
    );
    let played = play_all(vec![from_text(text)], at_speed(1.0));
    assert_eq!(played.texts(), ["0", "1", "2", "3", "4", "5", "6"]);
    assert_eq!(played.times(), [0, 0, 1, 1, 2, 2, 3].map(Duration::from_millis));
    let text = format!("{} 0\n{T} 1\n{} 2\n", u64::MAX, T + MS);
    let played = play_all(vec![from_text(text)], at_speed(1.0));
    assert_eq!(played.times(), [0, 0, 1].map(Duration::from_millis));
}

#[test]
fn one_bad_stamp_does_not_hold_its_recording_back_in_a_merge() {
    let bad = stamped(&[T, T + 65_536 * SECOND, T + 2 * MS, T + 4 * MS]);
    let good = stamped(&[T + MS, T + 3 * MS, T + 5 * MS]);
    let played = play_all(vec![bad, good], at_speed(1.0));
    let sources: Vec<usize> = played.records.iter().map(|record| record.1).collect();
    assert_eq!(sources, [0, 0, 1, 0, 1, 0, 1]);
    assert_eq!(played.times(), [0, 0, 1, 2, 3, 4, 5].map(Duration::from_millis));
}

#[test]
fn a_file_keeps_its_order_and_its_span_when_stamps_are_in_disorder() {
    let played = play_all(
        vec![stamped(&[T, T + 5 * MS, T + 3 * MS, T + 6 * MS, T + 4 * MS, T + 10 * MS])],
        at_speed(1.0),
    );
    assert_eq!(played.texts(), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(played.times(), [0, 5, 5, 6, 6, 10].map(Duration::from_millis));
}

#[test]
fn a_slow_feed_is_paced_although_every_gap_is_above_the_cap() {
    let times: Vec<i64> = (0..5).map(|n| T + n * 60 * SECOND).collect();
    let played = play_all(vec![stamped(&times)], at_speed(1.0));
    assert_eq!(played.times(), [0, 10, 20, 30, 40].map(Duration::from_secs));
    let uncut = ReplayOptions { max_gap: Duration::MAX, ..at_speed(1.0) };
    let played = play_all(vec![stamped(&times)], uncut);
    assert_eq!(played.end, Duration::from_secs(240));
}

#[test]
fn messages_without_a_time_come_at_once() {
    let options = ReplayOptions { passes: NonZeroU64::new(2), ..at_speed(1.0) };
    let played = play_all(vec![from_text("{\"a\":1}\n{\"a\":2}\n")], options);
    assert_eq!((played.records.len(), played.end), (4, Duration::ZERO));
}

#[test]
fn damage_is_told_once_although_the_recording_is_looped() {
    let torn = format!("{T} {{\"a\":1}}\n{} {{\"a\":2", T + MS);
    let options = ReplayOptions { passes: NonZeroU64::new(3), ..at_max() };
    let played = play_all(vec![stamped(&[T, T + SECOND]), from_text(torn)], options);
    assert_eq!(played.records.len(), 9);
    let [(1, damage)] = &played.damaged[..] else { panic!("{:?}", played.damaged) };
    assert_eq!((damage.record, damage.line, &damage.kind), (1, 2, &DamageKind::TornLine));
}

#[test]
fn a_recording_that_is_gone_by_the_next_pass_is_left_out_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("there");
    std::fs::write(&path, format!("{T} 0\n")).unwrap();
    let recordings = vec![Recording::stream(&path).unwrap(), stamped(&[T])];
    let options = ReplayOptions { passes: NonZeroU64::new(2), ..at_max() };
    let mut replay = Replay::new(recordings, options).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (mut by_source, mut unreadable) = ([0, 0], 0);
    loop {
        match replay.next(Instant::default()) {
            Step::Record { source, .. } => by_source[source] += 1,
            Step::Unreadable { source: 0, error } => {
                assert!(error.to_string().contains("there"), "{error}");
                unreadable += 1;
            }
            Step::Ended => break,
            _ => {}
        }
    }
    assert_eq!((by_source, unreadable), ([1, 2], 1));
}

#[test]
fn a_late_consumer_gets_everything_that_is_due_and_the_schedule_stands() {
    let mut replay =
        Replay::new(vec![stamped(&[T, T + MS, T + 2 * MS, T + SECOND])], at_speed(1.0)).unwrap();
    assert!(matches!(replay.next(Instant::from_nanos(5)), Step::Record { .. }));
    let late = Instant::from_nanos(5 + 500_000_000);
    assert!(matches!(replay.next(late), Step::Record { .. }));
    assert!(matches!(replay.next(late), Step::Record { .. }));
    let Step::WaitUntil(due) = replay.next(late) else { panic!("not due yet") };
    assert_eq!(due, Instant::from_nanos(5 + 1_000_000_000));
    assert!(matches!(replay.next(late), Step::WaitUntil(again) if again == due));
    assert_eq!(replay.position(), Duration::from_secs(1));
}

#[test]
fn whatever_the_stamps_every_record_comes_once_in_its_file_s_order_within_the_cap() {
    let mut seeded = Seeded::new(11);
    for round in 0..300 {
        let mut sizes = Vec::new();
        let recordings: Vec<Recording> = (0..seeded.between(1, 4))
            .map(|_| {
                let mut time = T;
                let stamps: Vec<i64> = (0..seeded.below(30))
                    .map(|_| {
                        time += i64::try_from(seeded.below(50)).unwrap() * MS;
                        match seeded.below(20) {
                            0 => 0,
                            1 => i64::MAX,
                            2 => time + 3600 * SECOND,
                            3 => time - 40 * MS,
                            _ => time,
                        }
                    })
                    .collect();
                sizes.push(stamps.len());
                stamped(&stamps)
            })
            .collect();
        let options = ReplayOptions { max_gap: Duration::from_millis(100), ..at_speed(1.0) };
        let played = play_all(recordings, options);
        let mut next = vec![0; sizes.len()];
        for (_, source, _, text) in &played.records {
            assert_eq!(*text, next[*source].to_string(), "round {round}");
            next[*source] += 1;
        }
        assert_eq!(next, sizes, "round {round}");
        assert!(played.times().is_sorted());
        let most = Duration::from_millis(100) * u32::try_from(played.records.len()).unwrap();
        assert!(played.end <= most, "round {round}");
    }
}

#[test]
fn a_speed_is_read_from_its_words_and_anything_else_is_refused_with_what_would_be_right() {
    assert_eq!("max".parse(), Ok(Speed::Max));
    assert_eq!("0.5".parse(), Speed::times(0.5));
    assert_eq!("1".parse(), Ok(Speed::ORIGINAL));
    for word in ["", "fast", "0", "-1", "NaN", "inf", "1e7", "MAX"] {
        let refused = word.parse::<Speed>().unwrap_err().to_string();
        assert!(refused.contains("a number from 0.001 to 1000000, or \"max\""), "{refused}");
    }
    assert_eq!(Speed::Max.to_string(), "max");
    assert_eq!(Speed::times(2.5).unwrap().to_string(), "2.5");
}
