//! Answers to requests: each tells everything that the connection is subscribed to.

use serde_json::Value;

use crate::venue::answer::{Answer, Outcome, text_of};

/// Exchange: `{"type":"subscriptions","channels":[{"name":…,"product_ids":[…]}]}`. A product may also
/// stand in an object of its own.
pub(in crate::venue) fn exchange(message: &Value) -> Vec<Answer> {
    if let Some(refused) = error(message) {
        return vec![refused];
    }
    let Some(channels) = message["channels"].as_array() else { return Vec::new() };
    let mut held = Vec::new();
    for channel in channels {
        let name = channel.as_str().or_else(|| channel["name"].as_str());
        let of =
            |symbol| Answer::new(Outcome::Held).channel(name.map(str::to_owned)).symbol(symbol);
        match channel["product_ids"].as_array() {
            Some(products) => held.extend(products.iter().map(text_of).map(of)),
            None => held.push(of(None)),
        }
    }
    or_nothing_held(held)
}

/// Advanced Trade: `{"channel":"subscriptions","events":[{"subscriptions":{"ticker":[…]}}]}`.
pub(in crate::venue) fn advanced(message: &Value) -> Vec<Answer> {
    if let Some(refused) = error(message) {
        return vec![refused];
    }
    let Some(events) = message["events"].as_array() else { return Vec::new() };
    let mut held = Vec::new();
    for channels in events.iter().filter_map(|event| event["subscriptions"].as_object()) {
        for (channel, products) in channels {
            // Acknowledged under the name that its messages have.
            let channel = if channel == "l2_data" { "level2" } else { channel };
            let of = |symbol| Answer::new(Outcome::Held).channel(channel.to_owned()).symbol(symbol);
            match products.as_array() {
                Some(products) => held.extend(products.iter().map(text_of).map(of)),
                None => held.push(of(None)),
            }
        }
    }
    or_nothing_held(held)
}

fn or_nothing_held(held: Vec<Answer>) -> Vec<Answer> {
    if held.is_empty() { vec![Answer::new(Outcome::Held)] } else { held }
}

/// `{"type":"error","message":…,"reason":…}`.
fn error(message: &Value) -> Option<Answer> {
    if message["type"] != "error" {
        return None;
    }
    let text = message["message"].as_str().unwrap_or("error");
    Some(match message["reason"].as_str() {
        Some(reason) => Answer::refused(&format!("{text}: {reason}")),
        None => Answer::refused(text),
    })
}
