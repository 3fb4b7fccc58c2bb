//! Deribit: JSON-RPC. The venue sends heartbeats once asked to, and tests now and then whether
//! somebody is there; a test that is not answered ends the connection.

use serde_json::{Value, json};

use super::{rules, second};
use crate::feed::live::{Dialect, Request, Rules, Topic, Wish};

/// Channels asked for at once.
const CHANNELS: usize = 100;

/// Seconds between heartbeats; ten is the least.
const HEARTBEAT: u64 = 10;

/// Ids of what is no request for topics: out of the way of their numbers.
const GREETING: u64 = 1 << 40;
const TESTED: u64 = (1 << 40) + 1;

pub(in crate::venue) struct Deribit;

impl Dialect for Deribit {
    fn rules(&self) -> Rules {
        Rules { stale_after: second(45), ..rules(10) }
    }

    fn greeting(&self) -> Vec<String> {
        vec![call(GREETING, "public/set_heartbeat", &json!({"interval": HEARTBEAT}))]
    }

    fn request(&self, wish: Wish, topics: &[Topic], number: u64) -> Request {
        let topics = topics[..topics.len().min(CHANNELS)].to_vec();
        let channels: Vec<String> = topics.iter().map(channel).collect();
        let method = match wish {
            Wish::Subscribe => "public/subscribe",
            Wish::Unsubscribe => "public/unsubscribe",
        };
        let text = call(number, method, &json!({"channels": channels}));
        Request { id: Some(number.to_string()), text, topics }
    }

    fn reply(&self, message: &[u8]) -> Option<String> {
        // Looked for in the text first: nearly every message is something else.
        const TEST: &[u8] = b"test_request";
        if message.len() > 256 || !message.windows(TEST.len()).any(|part| part == TEST) {
            return None;
        }
        let message: Value = serde_json::from_slice(message).ok()?;
        (message["params"]["type"] == "test_request")
            .then(|| call(TESTED, "public/test", &json!({})))
    }
}

/// `trades.100ms` of `BTC-PERPETUAL` is `trades.BTC-PERPETUAL.100ms`.
fn channel(topic: &Topic) -> String {
    match topic.channel.split_once('.') {
        Some((first, interval)) => format!("{first}.{}.{interval}", topic.symbol),
        None => format!("{}.{}", topic.channel, topic.symbol),
    }
}

fn call(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}
