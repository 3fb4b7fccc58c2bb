//! OKX v5: 480 requests an hour and connection, an answer for each argument; the connection is
//! dropped after 30 s without a word, so the client says `ping`.

use std::num::NonZeroU32;

use serde_json::json;

use super::{rules, second};
use crate::feed::live::{Dialect, Request, Rules, Topic, Wish};

/// Arguments asked for at once: far below the 64 KiB that they may have.
const ARGUMENTS: usize = 100;

/// Requests an hour.
const REQUESTS: NonZeroU32 = NonZeroU32::new(480).unwrap();

pub(in crate::venue) struct Okx;

impl Dialect for Okx {
    fn rules(&self) -> Rules {
        Rules {
            messages: REQUESTS,
            window: second(3600),
            ping_every: Some(second(20)),
            heartbeats: false,
            ..rules(1)
        }
    }

    fn request(&self, wish: Wish, topics: &[Topic], number: u64) -> Request {
        let topics = topics[..topics.len().min(ARGUMENTS)].to_vec();
        let args: Vec<_> = topics
            .iter()
            .map(|topic| json!({"channel": topic.channel, "instId": topic.symbol}))
            .collect();
        let op = match wish {
            Wish::Subscribe => "subscribe",
            Wish::Unsubscribe => "unsubscribe",
        };
        let text = json!({"id": number.to_string(), "op": op, "args": args}).to_string();
        Request { id: Some(number.to_string()), text, topics }
    }

    fn ping(&self, _: u64) -> Option<String> {
        Some("ping".to_owned())
    }
}
