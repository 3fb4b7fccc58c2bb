//! Coinbase: Exchange and Advanced Trade.
//!
//! Exchange ends a connection that has not subscribed within five seconds, and takes 100 messages a
//! second. Advanced takes one channel a message and ends quiet connections after a minute or so,
//! unless heartbeats are subscribed.

use serde_json::json;

use super::{of_one_channel, rules, second, symbols};
use crate::feed::live::{Dialect, Request, Rules, Topic, Wish};

/// Products asked for at once.
const PRODUCTS: usize = 100;

const fn word(wish: Wish) -> &'static str {
    match wish {
        Wish::Subscribe => "subscribe",
        Wish::Unsubscribe => "unsubscribe",
    }
}

pub(in crate::venue) struct Exchange;

impl Dialect for Exchange {
    fn rules(&self) -> Rules {
        Rules { stale_after: second(30), ..rules(50) }
    }

    fn request(&self, wish: Wish, topics: &[Topic], _: u64) -> Request {
        let topics = of_one_channel(topics, PRODUCTS);
        let channel = topics[0].channel.as_str();
        // A product's heartbeat may serve another channel too, so it is never given up.
        let channels = match wish {
            Wish::Subscribe => vec![channel, "heartbeat"],
            Wish::Unsubscribe => vec![channel],
        };
        let text = json!({
            "type": word(wish), "product_ids": symbols(&topics), "channels": channels,
        });
        Request { id: None, text: text.to_string(), topics }
    }
}

pub(in crate::venue) struct Advanced;

impl Dialect for Advanced {
    fn rules(&self) -> Rules {
        Rules { stale_after: second(30), ..rules(8) }
    }

    fn greeting(&self) -> Vec<String> {
        vec![json!({"type": "subscribe", "channel": "heartbeats"}).to_string()]
    }

    fn request(&self, wish: Wish, topics: &[Topic], _: u64) -> Request {
        let topics = of_one_channel(topics, PRODUCTS);
        let text = json!({
            "type": word(wish), "product_ids": symbols(&topics), "channel": topics[0].channel,
        });
        Request { id: None, text: text.to_string(), topics }
    }
}
