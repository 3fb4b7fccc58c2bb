//! Binance: spot and futures.
//!
//! Five messages a second from the client, pongs included; 1,024 streams a connection on spot, 200 on
//! futures; the venue ends a connection after 24 hours and pings it itself.

use serde_json::json;

use super::{rules, second};
use crate::feed::live::{Dialect, Request, Rules, Topic, Wish};

/// Streams asked for at once.
const STREAMS: usize = 200;

pub(in crate::venue) struct Binance;

impl Dialect for Binance {
    fn rules(&self) -> Rules {
        // One message a second is left for pongs.
        Rules { lifetime: Some(second(24 * 3600)), heartbeats: false, ..rules(4) }
    }

    fn request(&self, wish: Wish, topics: &[Topic], number: u64) -> Request {
        let topics = topics[..topics.len().min(STREAMS)].to_vec();
        let stream = |topic: &Topic| format!("{}@{}", topic.symbol.to_lowercase(), topic.channel);
        let method = match wish {
            Wish::Subscribe => "SUBSCRIBE",
            Wish::Unsubscribe => "UNSUBSCRIBE",
        };
        let params: Vec<String> = topics.iter().map(stream).collect();
        let text = json!({"method": method, "params": params, "id": number}).to_string();
        Request { id: Some(number.to_string()), text, topics }
    }
}
