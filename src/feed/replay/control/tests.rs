use std::fmt::Write as _;

use super::super::super::seeded::Seeded;
use super::super::*;
use super::*;

const SECOND: i64 = 1_000_000_000;
const T: i64 = 1_700_000_000 * SECOND;

/// A recording with these times after `T`, in ms; each message is its own time.
fn recording(times: &[i64]) -> Recording {
    let mut text = String::new();
    for time in times {
        writeln!(text, "{:019} {time}", T + time * 1_000_000).unwrap();
    }
    Recording::from_bytes("memory", text.into(), 1 << 30).unwrap()
}

fn every_100_ms(count: i64) -> Recording {
    recording(&(0..count).map(|n| n * 100).collect::<Vec<_>>())
}

fn replay(speed: Speed, recordings: Vec<Recording>) -> (Replay, ReplayControl) {
    let options = ReplayOptions { speed, ..ReplayOptions::default() };
    let mut replay = Replay::new(recordings, options).unwrap();
    let control = replay.control();
    (replay, control)
}

/// A replay and its virtual time.
struct Player {
    replay: Replay,
    now: Instant,
    jumps: Vec<i64>,
}

impl Player {
    fn new(replay: Replay) -> Self {
        Self { replay, now: Instant::from_nanos(77), jumps: Vec::new() }
    }

    /// Plays until `until` ms; each record as (when in ms, text).
    fn until(&mut self, until: u64) -> Vec<(u64, String)> {
        let end = Instant::from_nanos(77 + until * 1_000_000);
        let mut played = Vec::new();
        loop {
            match self.replay.next(self.now) {
                Step::Record { record, .. } => {
                    let at = (self.now.as_nanos() - 77) / 1_000_000;
                    played.push((at, String::from_utf8(record.text.to_vec()).unwrap()));
                }
                Step::WaitUntil(due) if due > end => {
                    self.now = end;
                    return played;
                }
                Step::WaitUntil(due) => self.now = due,
                Step::Jumped { time } => self.jumps.push(time),
                Step::Ended => return played,
                Step::NextPass { .. } | Step::Paused => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn rest(&mut self) -> Vec<(u64, String)> {
        self.until(1 << 40)
    }
}

fn expected(pairs: &[(u64, i64)]) -> Vec<(u64, String)> {
    pairs.iter().map(|(at, time)| (*at, time.to_string())).collect()
}

#[test]
fn a_pause_holds_the_replay_and_what_was_left_of_a_wait_is_kept() {
    let (replay, control) = replay(Speed::ORIGINAL, vec![every_100_ms(4)]);
    let mut player = Player::new(replay);
    assert_eq!(player.until(140), expected(&[(0, 0), (100, 100)]));
    control.pause().unwrap();
    assert!(control.status().paused);
    assert_eq!(player.until(5000), []);
    control.resume().unwrap();
    // 60 ms of the gap were left. The wish is seen with the next step, at 5000.
    assert_eq!(player.rest(), expected(&[(5060, 200), (5160, 300)]));
    assert!(control.status().ended);
    assert_eq!(control.pause(), Err(ReplayEnded));
}

#[test]
fn another_speed_holds_from_where_the_replay_is() {
    let (replay, control) = replay(Speed::ORIGINAL, vec![every_100_ms(6)]);
    let mut player = Player::new(replay);
    assert_eq!(player.until(150), expected(&[(0, 0), (100, 100)]));
    control.set_speed(Speed::times(0.5).unwrap()).unwrap();
    // Half a gap was left; it takes twice as long.
    assert_eq!(player.until(300), expected(&[(250, 200)]));
    control.set_speed(Speed::times(10.0).unwrap()).unwrap();
    assert_eq!(control.status().speed, Speed::times(10.0).unwrap());
    // Three quarters of a gap were left.
    assert_eq!(player.until(305), []);
    assert_eq!(player.until(310), expected(&[(307, 300)]));
    control.set_speed(Speed::Max).unwrap();
    assert_eq!(player.rest(), expected(&[(310, 400), (310, 500)]));
}

#[test]
fn from_full_speed_back_to_a_pace_the_next_record_is_due_at_once_and_the_pace_holds_behind_it() {
    let (replay, control) = replay(Speed::Max, vec![every_100_ms(5)]);
    let mut player = Player::new(replay);
    assert!(matches!(player.replay.next(player.now), Step::Record { .. }));
    control.set_speed(Speed::ORIGINAL).unwrap();
    assert_eq!(player.rest(), expected(&[(0, 100), (100, 200), (200, 300), (300, 400)]));
}

#[test]
fn a_speed_changed_while_paused_holds_once_resumed() {
    let (replay, control) = replay(Speed::ORIGINAL, vec![every_100_ms(3)]);
    let mut player = Player::new(replay);
    assert_eq!(player.until(50), expected(&[(0, 0)]));
    control.pause().unwrap();
    assert_eq!(player.until(100), []);
    control.set_speed(Speed::times(5.0).unwrap()).unwrap();
    assert_eq!(player.until(200), []);
    control.resume().unwrap();
    assert_eq!(player.rest(), expected(&[(210, 100), (230, 200)]));
}

#[test]
fn many_changes_of_speed_and_pauses_add_up_to_no_error() {
    let (replay, control) = replay(Speed::ORIGINAL, vec![every_100_ms(201)]);
    let mut player = Player::new(replay);
    let mut random = Seeded::new(3);
    let (mut ideal, mut real) = (0.0_f64, 0_u64);
    let mut played = player.until(0).len();
    let mut speed = 1.0;
    while ideal < 19_000.0 {
        let step = random.between(1, 90);
        real += step;
        ideal += step as f64 * speed;
        played += player.until(real).len();
        assert_eq!(played, (ideal / 100.0 + 1e-6) as usize + 1, "at {real} ms");
        if random.chance(4) {
            control.pause().unwrap();
            real += 500;
            assert_eq!(player.until(real), []);
            control.resume().unwrap();
        }
        // Powers of two, so that the ideal is exact.
        speed = [0.25, 0.5, 1.0, 2.0][usize::try_from(random.below(4)).unwrap()];
        control.set_speed(Speed::times(speed).unwrap()).unwrap();
    }
}

#[test]
fn a_jump_plays_on_from_the_first_record_of_that_time_forward_and_back() {
    let (replay, control) =
        replay(Speed::ORIGINAL, vec![every_100_ms(50), recording(&[50, 1050, 2050, 3050])]);
    let mut player = Player::new(replay);
    assert_eq!(player.until(120).len(), 3);
    control.seek(T + 2040 * 1_000_000).unwrap();
    assert_eq!(player.until(200), expected(&[(120, 2050), (170, 2100)]));
    assert_eq!(control.status().time, Some(T + 2100 * 1_000_000));
    control.seek(T + 990 * 1_000_000).unwrap();
    assert_eq!(player.until(300), expected(&[(200, 1000), (250, 1050), (300, 1100)]));
    assert_eq!(player.jumps, [T + 2040 * 1_000_000, T + 990 * 1_000_000]);
    control.pause().unwrap();
    control.seek(i64::MIN).unwrap();
    assert_eq!(player.until(1000), [], "paused it stays");
    control.resume().unwrap();
    assert_eq!(player.until(1060), expected(&[(1000, 0), (1050, 50)]));
    control.seek(i64::MAX).unwrap();
    assert_eq!(player.rest(), []);
    assert!(control.status().ended);
}

#[test]
fn a_jump_in_a_file_with_an_index_goes_where_one_without_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("indexed");
    let options = super::super::super::RecorderOptions {
        flush_records: 5,
        frame_bytes: 500,
        ..Default::default()
    };
    let mut recorder = super::super::super::Recorder::create(&path, options).unwrap();
    let mut random = Seeded::new(5);
    let mut time = T;
    for number in 0..500 {
        // Mostly forward, sometimes back, now and then a slip far ahead.
        time += i64::try_from(random.below(30_000_000)).unwrap() - 5_000_000;
        let slip = if random.chance(40) { 3600 * SECOND } else { 0 };
        recorder.message(time + slip, number.to_string().as_bytes()).unwrap();
    }
    recorder.finish().unwrap();
    let from = |recording: &Recording, target: i64| {
        let (replay, control) = replay(Speed::Max, vec![recording.clone()]);
        control.seek(target).unwrap();
        Player::new(replay).rest()
    };
    let (indexed, scanned) =
        (Recording::stream(&path).unwrap(), Recording::load(&path, 1 << 20).unwrap());
    for _ in 0..100 {
        let target = T + i64::try_from(random.below(6 * 1_000_000_000)).unwrap() - SECOND;
        assert_eq!(from(&indexed, target), from(&scanned, target), "to {target}");
    }
}

#[test]
fn a_wish_from_another_thread_cuts_a_long_wait_short() {
    let clock = crate::clock::Clock::system();
    // An hour, which nobody cuts.
    let hour = recording(&[0, 3_600_000]);
    let options = ReplayOptions { max_gap: Duration::MAX, ..ReplayOptions::default() };
    let mut replay = Replay::new(vec![hour], options).unwrap();
    let control = replay.control();
    let stop = tokio_util::sync::CancellationToken::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            control.seek(T + SECOND).unwrap();
        });
        let mut played = 0;
        while played < 2 {
            match replay.next(clock.now()) {
                Step::Record { .. } => played += 1,
                Step::WaitUntil(due) => {
                    assert!(super::super::super::wait_until(&clock, due, &stop))
                }
                Step::Jumped { time } => assert_eq!(time, T + SECOND),
                other => panic!("{other:?}"),
            }
        }
    });
    assert!(clock.now().as_nanos() < 60_000_000_000);
}
