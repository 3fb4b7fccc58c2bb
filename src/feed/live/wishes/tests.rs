use std::num::NonZeroU32;

use super::*;
use crate::feed::live::Rules;

/// Names the request by its number; at most two topics a message.
struct Plain;

impl Dialect for Plain {
    fn rules(&self) -> Rules {
        Rules {
            messages: NonZeroU32::MIN,
            window: Duration::ZERO,
            connect_interval: Duration::ZERO,
            ping_every: None,
            heartbeats: true,
            lifetime: None,
            stale_after: Duration::MAX,
        }
    }

    fn request(&self, wish: Wish, topics: &[Topic], number: u64) -> Request {
        let topics = topics[..topics.len().min(2)].to_vec();
        Request { id: Some(number.to_string()), text: format!("{wish:?} {number}"), topics }
    }
}

fn topic(symbol: &str) -> Topic {
    Topic::new("trade", symbol)
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn reply(id: &str, outcome: ReplyOutcome) -> Reply {
    Reply { request: Some(id.to_owned()), channel: None, symbol: None, outcome }
}

fn named(symbol: &str, outcome: ReplyOutcome) -> Reply {
    Reply {
        request: None,
        channel: Some("trade".to_owned()),
        symbol: Some(symbol.to_owned()),
        outcome,
    }
}

fn wanting(symbols: &[&str]) -> Wishes {
    let mut wishes = Wishes::default();
    wishes.want(symbols.iter().map(|symbol| topic(symbol)), at(0));
    wishes.opened(at(0));
    wishes
}

#[test]
fn topics_are_asked_for_in_as_many_messages_as_it_takes_and_held_once_granted() {
    let mut wishes = wanting(&["A", "B", "C"]);
    let first = wishes.request(&Plain, at(0)).unwrap();
    let second = wishes.request(&Plain, at(0)).unwrap();
    assert_eq!((first.topics.len(), second.topics.len()), (2, 1));
    assert_eq!(wishes.request(&Plain, at(0)), None);
    assert_eq!((wishes.held(), wishes.wanted()), (0, 3));
    wishes.answered(&[reply("2", ReplyOutcome::Done)], at(1));
    assert_eq!(wishes.held(), 1);
    wishes.answered(&[named("A", ReplyOutcome::Granted)], at(1));
    wishes.answered(&[named("B", ReplyOutcome::Granted)], at(1));
    assert_eq!((wishes.held(), wishes.deadline()), (3, None));
}

#[test]
fn b19_a_refused_topic_is_asked_for_again_after_a_wait_that_grows_and_the_others_are_left_alone() {
    let mut wishes = wanting(&["A", "B"]);
    wishes.request(&Plain, at(0)).unwrap();
    let refused = ReplyOutcome::Refused("no".to_owned());
    wishes.answered(&[named("A", ReplyOutcome::Granted)], at(0));
    let told = wishes.answered(&[named("B", refused.clone())], at(0));
    assert_eq!(told, ["trade of B: no"]);
    let (mut now, mut waits) = (0, Vec::new());
    for _ in 0..8 {
        let due = wishes.deadline().unwrap();
        assert_eq!(wishes.request(&Plain, at(now)), None);
        assert_eq!(wishes.request(&Plain, due).unwrap().topics, [topic("B")]);
        waits.push(due.since(at(now)).as_secs());
        now = u64::try_from(due.since(at(0)).as_millis()).unwrap();
        wishes.answered(&[named("B", refused.clone())], at(now));
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(wishes.held(), 1);
}

#[test]
fn b19_a_bad_name_for_which_the_whole_request_is_refused_keeps_no_other_from_being_granted() {
    /// Takes any number of topics at once.
    struct Wide;
    impl Dialect for Wide {
        fn rules(&self) -> Rules {
            Plain.rules()
        }

        fn request(&self, _: Wish, topics: &[Topic], number: u64) -> Request {
            let text = String::new();
            Request { id: Some(number.to_string()), text, topics: topics.to_vec() }
        }
    }

    for bad in 0..10 {
        let symbols: Vec<String> = (0..10).map(|n| format!("S{n}")).collect();
        let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
        let mut wishes = wanting(&symbols);
        let (mut requests, mut now) = (0, at(0));
        while wishes.held() < 9 {
            now = now.max(wishes.deadline().unwrap());
            let request = wishes.request(&Wide, now).unwrap();
            requests += 1;
            let outcome = if request.topics.contains(&topic(symbols[bad])) {
                ReplyOutcome::Refused("no such symbol".to_owned())
            } else {
                ReplyOutcome::Done
            };
            wishes.answered(&[reply(request.id.as_deref().unwrap(), outcome)], now);
        }
        assert!(requests <= 9, "{requests} requests");
        assert!(now <= at(15_000), "{now:?}");
        // The bad one goes on alone.
        let last = loop {
            now = now.max(wishes.deadline().unwrap());
            let request = wishes.request(&Wide, now).unwrap();
            let refused = ReplyOutcome::Refused("no such symbol".to_owned());
            wishes.answered(&[reply(request.id.as_deref().unwrap(), refused)], now);
            if now > at(100_000) {
                break request;
            }
        };
        assert_eq!(last.topics, [topic(symbols[bad])]);
    }
}

#[test]
fn an_answer_that_does_not_come_counts_as_a_refusal() {
    let mut wishes = wanting(&["A"]);
    wishes.request(&Plain, at(0)).unwrap();
    wishes.tick(at(9_999));
    assert_eq!(wishes.request(&Plain, at(9_999)), None);
    wishes.tick(at(10_000));
    assert!(wishes.request(&Plain, at(11_000)).is_some());
}

#[test]
fn an_answer_without_a_name_is_about_the_oldest_request() {
    let mut wishes = wanting(&["A", "B", "C"]);
    wishes.request(&Plain, at(0)).unwrap();
    wishes.request(&Plain, at(0)).unwrap();
    let unnamed = Reply { request: None, channel: None, symbol: None, outcome: ReplyOutcome::Done };
    wishes.answered(std::slice::from_ref(&unnamed), at(0));
    assert_eq!(wishes.held(), 2);
    wishes.answered(&[unnamed], at(0));
    assert_eq!(wishes.held(), 3);
}

#[test]
fn retuning_asks_for_what_is_new_and_takes_leave_of_what_is_gone() {
    let mut wishes = wanting(&["A", "B"]);
    wishes.request(&Plain, at(0)).unwrap();
    wishes.answered(&[reply("1", ReplyOutcome::Done)], at(0));
    wishes.want([topic("B"), topic("C")], at(5));
    let leave = wishes.request(&Plain, at(5)).unwrap();
    assert_eq!((leave.text.as_str(), &leave.topics[..]), ("Unsubscribe 2", &[topic("A")][..]));
    let ask = wishes.request(&Plain, at(5)).unwrap();
    assert_eq!((ask.text.as_str(), &ask.topics[..]), ("Subscribe 3", &[topic("C")][..]));
    wishes.answered(&[reply("2", ReplyOutcome::Done), reply("3", ReplyOutcome::Done)], at(6));
    assert_eq!((wishes.held(), wishes.wanted(), wishes.deadline()), (2, 2, None));
}

#[test]
fn a_list_of_what_is_held_grants_what_is_in_it_and_releases_what_is_not() {
    let mut wishes = wanting(&["A", "B"]);
    wishes.request(&Plain, at(0)).unwrap();
    wishes.answered(&[named("A", ReplyOutcome::Held)], at(0));
    assert_eq!(wishes.held(), 1);
    wishes.answered(&[named("A", ReplyOutcome::Held), named("B", ReplyOutcome::Held)], at(0));
    assert_eq!(wishes.held(), 2);
    wishes.want([topic("A")], at(1));
    wishes.request(&Plain, at(1)).unwrap();
    wishes.answered(&[named("A", ReplyOutcome::Held)], at(1));
    assert_eq!((wishes.held(), wishes.deadline()), (1, None));
}

#[test]
fn a_new_connection_begins_with_nothing() {
    let mut wishes = wanting(&["A"]);
    wishes.request(&Plain, at(0)).unwrap();
    wishes.answered(&[reply("1", ReplyOutcome::Done)], at(0));
    wishes.opened(at(9));
    assert_eq!(wishes.held(), 0);
    assert_eq!(wishes.request(&Plain, at(9)).unwrap().id.as_deref(), Some("1"));
}

/// What is wanted is what the venue ends up with, whatever is retuned, refused or lost on the way.
#[test]
fn random_retunes_and_answers_end_with_exactly_what_is_wanted() {
    use crate::feed::seeded::Seeded;
    use std::collections::BTreeSet;

    for seed in 0..200 {
        let mut random = Seeded::new(seed);
        let all = ["A", "B", "C", "D", "E"];
        let (mut wishes, mut venue) = (Wishes::default(), BTreeSet::new());
        let mut wanted: Vec<Topic> = Vec::new();
        let mut on_the_way: Vec<(bool, Request)> = Vec::new();
        let mut now = 0;
        for step in 0..400 {
            now += random.below(3_000);
            if step < 300 && random.chance(100) {
                wanted = all.iter().filter(|_| random.chance(500)).map(|s| topic(s)).collect();
                wishes.want(wanted.clone(), at(now));
            }
            if step < 300 && random.chance(20) {
                venue.clear();
                on_the_way.clear();
                wishes.opened(at(now));
            }
            wishes.tick(at(now));
            if let Some(request) = wishes.request(&Plain, at(now)) {
                on_the_way.push((request.text.starts_with("Subscribe"), request));
            }
            if !on_the_way.is_empty() && random.chance(600) {
                let (subscribe, request) = on_the_way.remove(0);
                let id = request.id.as_deref().unwrap();
                if step < 300 && random.chance(200) {
                    let refused = ReplyOutcome::Refused("busy".to_owned());
                    wishes.answered(&[reply(id, refused)], at(now));
                    continue;
                }
                for topic in request.topics {
                    if subscribe {
                        venue.insert(topic)
                    } else {
                        venue.remove(&topic)
                    };
                }
                // Now and then the answer is lost.
                if step >= 300 || !random.chance(100) {
                    wishes.answered(&[reply(id, ReplyOutcome::Done)], at(now));
                }
            }
        }
        for _ in 0..100 {
            now += 61_000;
            wishes.tick(at(now));
            while let Some(request) = wishes.request(&Plain, at(now)) {
                let subscribe = request.text.starts_with("Subscribe");
                for topic in &request.topics {
                    if subscribe {
                        venue.insert(topic.clone())
                    } else {
                        venue.remove(topic)
                    };
                }
                let id = request.id.as_deref().unwrap();
                wishes.answered(&[reply(id, ReplyOutcome::Done)], at(now));
            }
        }
        let wanted: BTreeSet<Topic> = wanted.into_iter().collect();
        assert!(wanted.is_subset(&venue), "seed {seed}: {wanted:?} of {venue:?}");
        assert_eq!(wishes.held(), wanted.len(), "seed {seed}");
    }
}
