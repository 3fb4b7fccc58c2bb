//! Answers to requests, in the manner of JSON-RPC: a `result` or an `error` with the request's id.

use serde_json::Value;

use crate::venue::answer::{Answer, Outcome};

/// What `message` answers. A subscription's result lists the channels that were granted: one that was
/// asked for and is not among them was not.
pub(in crate::venue) fn answers(message: &Value) -> Vec<Answer> {
    let id = &message["id"];
    if let Some(error) = message.get("error").filter(|error| !error.is_null()) {
        let reason = error["message"].as_str().unwrap_or_default();
        return vec![Answer::refused(&format!("{reason} ({})", error["code"])).request(id)];
    }
    match message.get("result") {
        Some(Value::Array(granted)) => granted
            .iter()
            .filter_map(Value::as_str)
            .map(|channel| of(channel).request(id))
            .collect(),
        Some(_) => vec![Answer::new(Outcome::Done).request(id)],
        None => Vec::new(),
    }
}

/// `ticker.BTC-PERPETUAL.100ms`: the channel is the first part, with the interval if there is one.
fn of(channel: &str) -> Answer {
    let answer = Answer::new(Outcome::Subscribed);
    let mut parts = channel.splitn(3, '.');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(first), Some(symbol), Some(interval)) => {
            answer.channel(format!("{first}.{interval}")).symbol(symbol.to_owned())
        }
        (Some(first), Some(symbol), None) => {
            answer.channel(first.to_owned()).symbol(symbol.to_owned())
        }
        _ => answer.channel(channel.to_owned()),
    }
}
