//! Answers to requests: one `{"success":true,"subscribe":"trade:XBTUSD","request":{…}}` for each topic.

use serde_json::Value;

use crate::venue::answer::{Answer, Outcome};

/// What `message` answers. A refusal names no topic of its own, but repeats the request; if that was
/// for one topic, it is the one.
pub(in crate::venue) fn answers(message: &Value) -> Vec<Answer> {
    if let Some(reason) = message["error"].as_str() {
        let asked = message["request"]["args"].as_array().map_or(&[][..], Vec::as_slice);
        return match asked {
            [Value::String(topic)] => vec![of(Answer::refused(reason), topic)],
            _ => vec![Answer::refused(reason)],
        };
    }
    if message["success"] != true {
        return Vec::new();
    }
    if let Some(topic) = message["subscribe"].as_str() {
        return vec![of(Answer::new(Outcome::Subscribed), topic)];
    }
    if let Some(topic) = message["unsubscribe"].as_str() {
        return vec![of(Answer::new(Outcome::Unsubscribed), topic)];
    }
    vec![Answer::new(Outcome::Done)]
}

fn of(answer: Answer, topic: &str) -> Answer {
    match topic.split_once(':') {
        Some((channel, symbol)) => answer.channel(channel.to_owned()).symbol(symbol.to_owned()),
        None => answer.channel(topic.to_owned()),
    }
}
