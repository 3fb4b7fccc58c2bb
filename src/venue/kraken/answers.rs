//! Answers to requests, one for each symbol.

use serde_json::Value;

use super::names::canonical;
use crate::venue::answer::{Answer, Outcome, text_of};

/// The second interface: `{"method":"subscribe","result":{"channel":…,"symbol":…},"success":true}`,
/// a refusal has the symbol beside its reason. The first:
/// `{"event":"subscriptionStatus","pair":…,"status":…,"subscription":{"name":…}}`.
pub(in crate::venue) fn answers(message: &Value) -> Vec<Answer> {
    let answer = if message["event"].is_string() { first(message) } else { second(message) };
    answer.into_iter().collect()
}

fn second(message: &Value) -> Option<Answer> {
    let (result, success) = (&message["result"], &message["success"]);
    let answer = match message["method"].as_str() {
        _ if *success == false || (success.is_null() && message["error"].is_string()) => {
            Answer::refused(message["error"].as_str().unwrap_or("refused"))
        }
        Some("subscribe") => Answer::new(Outcome::Subscribed),
        Some("unsubscribe") => Answer::new(Outcome::Unsubscribed),
        _ => return None,
    };
    let symbol = if result["symbol"].is_null() { &message["symbol"] } else { &result["symbol"] };
    Some(
        answer
            .request(&message["req_id"])
            .channel(text_of(&result["channel"]))
            .symbol(name(symbol)),
    )
}

fn first(message: &Value) -> Option<Answer> {
    let reason = message["errorMessage"].as_str().unwrap_or("refused");
    let answer = match (message["event"].as_str()?, message["status"].as_str()) {
        ("subscriptionStatus", Some("subscribed")) => Answer::new(Outcome::Subscribed),
        ("subscriptionStatus", Some("unsubscribed")) => Answer::new(Outcome::Unsubscribed),
        ("subscriptionStatus", Some("error")) | ("error", _) => Answer::refused(reason),
        _ => return None,
    };
    let channel = text_of(&message["subscription"]["name"]);
    Some(answer.request(&message["reqid"]).channel(channel).symbol(name(&message["pair"])))
}

/// The symbol as instruments are named by it.
fn name(symbol: &Value) -> Option<String> {
    let mut into = Vec::new();
    let name = canonical(symbol.as_str()?.as_bytes(), &mut into);
    Some(String::from_utf8_lossy(name).into_owned())
}
