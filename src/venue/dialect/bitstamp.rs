//! Bitstamp: one channel a message, an answer that names it.

use serde_json::json;

use super::{rules, second};
use crate::feed::live::{Dialect, Request, Rules, Topic, Wish};

pub(in crate::venue) struct Bitstamp;

impl Dialect for Bitstamp {
    fn rules(&self) -> Rules {
        Rules { ping_every: Some(second(20)), heartbeats: false, ..rules(10) }
    }

    fn request(&self, wish: Wish, topics: &[Topic], _: u64) -> Request {
        let topic = &topics[0];
        let event = match wish {
            Wish::Subscribe => "bts:subscribe",
            Wish::Unsubscribe => "bts:unsubscribe",
        };
        let channel = format!("{}_{}", topic.channel, topic.symbol);
        let text = json!({"event": event, "data": {"channel": channel}}).to_string();
        Request { id: None, text, topics: vec![topic.clone()] }
    }

    fn ping(&self, _: u64) -> Option<String> {
        Some(json!({"event": "bts:heartbeat"}).to_string())
    }
}
