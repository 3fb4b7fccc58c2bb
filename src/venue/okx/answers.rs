//! Answers to requests: one `{"event":"subscribe","arg":{"channel":…,"instId":…}}` for each argument.

use serde_json::Value;

use crate::venue::answer::{Answer, Outcome};

/// What `message` answers. An error names its argument, if at all, in its text alone.
pub(in crate::venue) fn answers(message: &Value) -> Vec<Answer> {
    let outcome = match message["event"].as_str() {
        Some("subscribe") => Outcome::Subscribed,
        Some("unsubscribe") => Outcome::Unsubscribed,
        Some("login") => Outcome::Done,
        Some("error" | "channel-conn-count-error") => {
            let code = message["code"].as_str().unwrap_or_default();
            let reason = message["msg"].as_str().unwrap_or_default();
            return vec![named(Answer::refused(format!("{reason} ({code})").as_str()), message)];
        }
        _ => return Vec::new(),
    };
    vec![named(Answer::new(outcome), message)]
}

fn named(answer: Answer, message: &Value) -> Answer {
    let text = |member: &str| message["arg"][member].as_str().map(str::to_owned);
    let channel = text("channel").or_else(|| message["channel"].as_str().map(str::to_owned));
    answer.request(&message["id"]).channel(channel).symbol(text("instId"))
}
