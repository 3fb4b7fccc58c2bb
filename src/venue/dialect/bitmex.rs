//! BitMEX: an answer for each topic; a connection that says nothing is kept open by `ping`.

use serde_json::json;

use super::{rules, second};
use crate::feed::live::{Dialect, Request, Rules, Topic, Wish};

/// Topics asked for at once.
const TOPICS: usize = 20;

pub(in crate::venue) struct Bitmex;

impl Dialect for Bitmex {
    fn rules(&self) -> Rules {
        Rules { ping_every: Some(second(5)), heartbeats: false, ..rules(10) }
    }

    fn request(&self, wish: Wish, topics: &[Topic], _: u64) -> Request {
        let topics = topics[..topics.len().min(TOPICS)].to_vec();
        let name = |topic: &Topic| format!("{}:{}", topic.channel, topic.symbol);
        let args: Vec<String> = topics.iter().map(name).collect();
        let op = match wish {
            Wish::Subscribe => "subscribe",
            Wish::Unsubscribe => "unsubscribe",
        };
        Request { id: None, text: json!({"op": op, "args": args}).to_string(), topics }
    }

    fn ping(&self, _: u64) -> Option<String> {
        Some("ping".to_owned())
    }
}
