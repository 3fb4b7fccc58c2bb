use std::num::NonZeroU32;

use super::*;
use crate::feed::live::{Reply, ReplyOutcome, Wish};

const SECOND: Duration = Duration::from_secs(1);

/// Five messages a second, a ping each 20 s, a day of life, a minute of silence.
struct Plain;

impl Dialect for Plain {
    fn rules(&self) -> Rules {
        Rules {
            messages: NonZeroU32::new(5).unwrap(),
            window: SECOND,
            connect_interval: Duration::ZERO,
            ping_every: Some(20 * SECOND),
            heartbeats: true,
            lifetime: Some(24 * 3600 * SECOND),
            stale_after: 60 * SECOND,
        }
    }

    fn greeting(&self) -> Vec<String> {
        vec!["hello".to_owned()]
    }

    fn request(&self, _: Wish, topics: &[Topic], number: u64) -> Request {
        Request {
            id: Some(number.to_string()),
            text: "ask".to_owned(),
            topics: topics[..1].to_vec(),
        }
    }

    fn reply(&self, message: &[u8]) -> Option<String> {
        (message == b"test").then(|| "tested".to_owned())
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn session(topics: usize) -> Session {
    let mut session = Session::new(Box::new(Plain), None);
    session.want((0..topics).map(|n| Topic::new("t", n.to_string())), at(0));
    session.opened(at(0));
    session
}

#[test]
fn b19_a_hundred_topics_are_asked_for_at_the_venues_pace_and_all_are_held() {
    let mut session = session(100);
    let (mut now, mut sent) = (0, Vec::new());
    while session.held() != (100, 100) {
        while let Some(outgoing) = session.outgoing(at(now)) {
            sent.push(now);
            if outgoing == Outgoing::Text("ask".to_owned()) {
                let reply = Reply {
                    request: None,
                    channel: None,
                    symbol: None,
                    outcome: ReplyOutcome::Done,
                };
                session.heard(&Sign::Replies(vec![reply]), at(now));
                session.heard(&Sign::Alive, at(now));
            }
        }
        now = now.max(u64::try_from(session.deadline().since(at(0)).as_millis()).unwrap());
        assert!(now < 60_000, "{:?}", session.held());
    }
    assert!(sent.windows(6).all(|six| six[5] - six[0] >= 1_000), "{sent:?}");
    assert!(*sent.last().unwrap() < 22_000, "{sent:?}");
}

#[test]
fn b21_silence_ends_a_connection_and_heartbeats_keep_one() {
    let mut quiet = session(1);
    assert_eq!(quiet.verdict(at(59_999)), None);
    let (reason, why) = quiet.verdict(at(60_000)).unwrap();
    assert_eq!(why, Verdict::Silent);
    assert!(reason.contains("no sign of life for 60s"), "{reason}");
    // Answers to our own pings, and repetitions, are no sign.
    quiet.heard(&Sign::Other, at(59_000));
    assert!(quiet.verdict(at(60_000)).is_some());
    quiet.heard(&Sign::Alive, at(59_000));
    assert_eq!(quiet.verdict(at(60_000)), None);
}

#[test]
fn b16_a_venue_that_refuses_all_is_not_silent_while_we_wait_to_ask_again() {
    let mut session = Session::new(Box::new(Plain), Some(SECOND));
    session.want([Topic::new("t", "0")], at(0));
    session.opened(at(0));
    let mut now = at(0);
    for _ in 0..6 {
        while session.outgoing(now) != Some(Outgoing::Text("ask".to_owned())) {
            assert_eq!(session.verdict(now), None);
            now = now.max(session.deadline());
        }
        let outcome = ReplyOutcome::Refused("no".to_owned());
        let reply = Reply { request: None, channel: None, symbol: None, outcome };
        session.heard(&Sign::Replies(vec![reply]), now);
    }
    // Asked, and no answer any more.
    while session.outgoing(now) != Some(Outgoing::Text("ask".to_owned())) {
        now = now.max(session.deadline());
    }
    assert_eq!(session.verdict(now + SECOND).unwrap().1, Verdict::Silent);
}

#[test]
fn b20_a_connection_that_has_lived_its_day_is_ended_before_the_venue_does() {
    let mut session = session(1);
    let day = 24 * 3600 * 1_000;
    session.heard(&Sign::Alive, at(day - 1_800_000));
    let (_, why) = session.verdict(at(day - 1_800_000 + 1)).unwrap();
    assert_eq!(why, Verdict::Planned);
    session.opened(at(day));
    assert_eq!(session.verdict(at(day)), None);
    session.heard(&Sign::Closing, at(day));
    assert_eq!(session.verdict(at(day)).unwrap().1, Verdict::Planned);
}

#[test]
fn what_the_venue_asks_is_answered_and_pings_go_in_time() {
    let mut session = session(0);
    assert_eq!(session.outgoing(at(0)), Some(Outgoing::Text("hello".to_owned())));
    assert_eq!(session.outgoing(at(0)), None);
    session.reply(b"test");
    assert_eq!(session.outgoing(at(1)), Some(Outgoing::Text("tested".to_owned())));
    assert_eq!(session.deadline(), at(20_000));
    assert_eq!(session.outgoing(at(20_000)), Some(Outgoing::Ping));
    assert_eq!(session.outgoing(at(20_000)), None);
}
