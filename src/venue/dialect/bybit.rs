//! Bybit v5: at most ten topics a request on spot, granted or refused whole; the client pings.

use serde_json::json;

use super::{rules, second};
use crate::feed::live::{Dialect, Request, Rules, Topic, Wish};

/// Topics asked for at once.
const TOPICS: usize = 10;

pub(in crate::venue) struct Bybit;

impl Dialect for Bybit {
    fn rules(&self) -> Rules {
        Rules { ping_every: Some(second(20)), heartbeats: false, ..rules(10) }
    }

    fn request(&self, wish: Wish, topics: &[Topic], number: u64) -> Request {
        let topics = topics[..topics.len().min(TOPICS)].to_vec();
        let name = |topic: &Topic| format!("{}.{}", topic.channel, topic.symbol);
        let args: Vec<String> = topics.iter().map(name).collect();
        let op = match wish {
            Wish::Subscribe => "subscribe",
            Wish::Unsubscribe => "unsubscribe",
        };
        let text = json!({"req_id": number.to_string(), "op": op, "args": args}).to_string();
        Request { id: Some(number.to_string()), text, topics }
    }

    fn ping(&self, _: u64) -> Option<String> {
        Some(json!({"op": "ping"}).to_string())
    }
}
