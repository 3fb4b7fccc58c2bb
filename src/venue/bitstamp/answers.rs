//! Answers to requests, one for each channel.

use serde_json::Value;

use crate::venue::answer::{Answer, Outcome};

/// `{"event":"bts:subscription_succeeded","channel":"live_trades_btcusd","data":{}}`; an error tells
/// its reason in its data.
pub(in crate::venue) fn answers(message: &Value) -> Vec<Answer> {
    let answer = match message["event"].as_str() {
        Some("bts:subscription_succeeded") => Answer::new(Outcome::Subscribed),
        Some("bts:unsubscription_succeeded") => Answer::new(Outcome::Unsubscribed),
        Some("bts:error") => {
            Answer::refused(message["data"]["message"].as_str().unwrap_or("refused"))
        }
        _ => return Vec::new(),
    };
    // The market is what stands behind the last `_`: no market's name has one.
    let channel = message["channel"].as_str().filter(|channel| !channel.is_empty());
    let (channel, market) =
        match channel.map(|channel| channel.rsplit_once('_').unwrap_or((channel, ""))) {
            Some((channel, market)) => (Some(channel.to_owned()), Some(market.to_owned())),
            None => (None, None),
        };
    vec![answer.channel(channel).symbol(market)]
}
