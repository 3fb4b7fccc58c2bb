//! Kraken, the second interface: an answer for each symbol, a heartbeat about each second.

use serde_json::json;

use super::{of_one_channel, rules, second, symbols};
use crate::feed::live::{Dialect, Request, Rules, Topic, Wish};

/// Symbols asked for at once.
const SYMBOLS: usize = 100;

pub(in crate::venue) struct Kraken;

impl Dialect for Kraken {
    fn rules(&self) -> Rules {
        Rules { stale_after: second(20), ..rules(10) }
    }

    fn request(&self, wish: Wish, topics: &[Topic], number: u64) -> Request {
        let topics = of_one_channel(topics, SYMBOLS);
        let mut params = json!({"channel": topics[0].channel, "symbol": symbols(&topics)});
        if wish == Wish::Subscribe && topics[0].channel == "ticker" {
            // With every change of the best bid or offer, not with trades alone.
            params["event_trigger"] = "bbo".into();
        }
        let method = match wish {
            Wish::Subscribe => "subscribe",
            Wish::Unsubscribe => "unsubscribe",
        };
        let text = json!({"method": method, "params": params, "req_id": number}).to_string();
        Request { id: Some(number.to_string()), text, topics }
    }
}
