//! The other side of each dialect: how a venue hears requests and answers them. For a mock venue that
//! serves recordings; what it does not model, it does not answer.

use serde_json::{Value, json};

use crate::feed::live::{Topic, Wish};

/// What a client asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// To begin or to end.
    pub wish: Wish,
    /// The request's id as it came; `null` where there was none.
    pub id: Value,
    /// What about.
    pub topics: Vec<Topic>,
}

/// What a client's message was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A request for topics.
    Asked(Asked),
    /// Something that is answered at once, as a ping is.
    Answer(String),
    /// Nothing that needs an answer.
    Nothing,
}

/// The venue's side of a dialect.
#[derive(Clone, Copy, Debug)]
pub struct Desk {
    pub(super) hear: fn(&Value) -> Heard,
    pub(super) answer: fn(&Asked, &[Topic], Option<&str>) -> Vec<String>,
    pub(super) topic: fn(&Value) -> Option<Topic>,
    /// What is said each second while nothing else is, and on whose behalf: `None` where the venue
    /// has no heartbeat of its own.
    pub(super) heartbeat: Option<&'static str>,
}

impl Desk {
    /// Hears a client's message.
    #[must_use]
    pub fn hear(&self, text: &str) -> Heard {
        match text {
            "ping" => Heard::Answer("pong".to_owned()),
            text => {
                serde_json::from_str(text).map_or(Heard::Nothing, |message| (self.hear)(&message))
            }
        }
    }

    /// Answers a request: granted, or refused for a reason. `held` is what the client has after it.
    #[must_use]
    pub fn answer(&self, asked: &Asked, held: &[Topic], refused: Option<&str>) -> Vec<String> {
        (self.answer)(asked, held, refused)
    }

    /// The topic that a recorded message is of; `None` for what is no topic's data.
    #[must_use]
    pub fn topic(&self, message: &[u8]) -> Option<Topic> {
        (self.topic)(&serde_json::from_slice(message).ok()?)
    }

    /// What the venue says each second of itself.
    #[must_use]
    pub fn heartbeat(&self) -> Option<&'static str> {
        self.heartbeat
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(text).collect()
}

/// `subscribe` or `unsubscribe`, in any case, behind any prefix.
fn wish(word: &Value) -> Option<Wish> {
    let word = word.as_str()?.rsplit([':', '/']).next()?.to_ascii_lowercase();
    match word.as_str() {
        "subscribe" => Some(Wish::Subscribe),
        "unsubscribe" => Some(Wish::Unsubscribe),
        _ => None,
    }
}

const fn word(wish: Wish) -> &'static str {
    match wish {
        Wish::Subscribe => "subscribe",
        Wish::Unsubscribe => "unsubscribe",
    }
}

fn asked(wish: Option<Wish>, id: &Value, topics: Vec<Topic>) -> Heard {
    match wish {
        Some(wish) if !topics.is_empty() => Heard::Asked(Asked { wish, id: id.clone(), topics }),
        _ => Heard::Nothing,
    }
}

/// Splits at the first or the last of `at`: the channel before it, the symbol behind it.
fn split_last(name: &str, at: char) -> Option<Topic> {
    name.rsplit_once(at).map(|(channel, symbol)| Topic::new(channel, symbol))
}

// Binance.

pub(super) const BINANCE: Desk = Desk {
    hear: |message| {
        let topics = texts(&message["params"]).iter().filter_map(|s| stream(s)).collect();
        asked(wish(&message["method"]), &message["id"], topics)
    },
    answer: |asked, _, refused| {
        vec![match refused {
            Some(reason) => {
                json!({"error": {"code": 2, "msg": reason}, "id": asked.id}).to_string()
            }
            None => json!({"result": null, "id": asked.id}).to_string(),
        }]
    },
    topic: |message| {
        if let Some(name) = message["stream"].as_str() {
            return stream(name);
        }
        let symbol = text(&message["s"])?;
        let channel = match message["e"].as_str() {
            Some("24hrTicker") => "ticker",
            Some("depthUpdate") => "depth",
            Some(event) => event,
            None => "bookTicker",
        };
        Some(Topic::new(channel, symbol))
    },
    heartbeat: None,
};

fn stream(name: &str) -> Option<Topic> {
    let (symbol, channel) = name.split_once('@')?;
    Some(Topic::new(channel, symbol.to_uppercase()))
}

// Coinbase.

pub(super) const COINBASE: Desk = Desk {
    hear: |message| {
        let products = texts(&message["product_ids"]);
        let channels: Vec<String> = message["channels"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|channel| text(channel).or_else(|| text(&channel["name"])))
            .collect();
        asked(wish(&message["type"]), &Value::Null, product(&channels, &products))
    },
    answer: |_, held, refused| {
        vec![match refused {
            Some(reason) => {
                json!({"type": "error", "message": "Failed to subscribe", "reason": reason})
                    .to_string()
            }
            None => {
                let channels: Vec<Value> = by_channel(held)
                    .into_iter()
                    .map(|(name, products)| json!({"name": name, "product_ids": products}))
                    .collect();
                json!({"type": "subscriptions", "channels": channels}).to_string()
            }
        }]
    },
    topic: |message| {
        let channel = match message["type"].as_str()? {
            "match" | "last_match" => "matches",
            "ticker" => "ticker",
            "heartbeat" => "heartbeat",
            "l2update" | "snapshot" => "level2",
            _ => return None,
        };
        Some(Topic::new(channel, text(&message["product_id"])?))
    },
    heartbeat: None,
};

pub(super) const COINBASE_ADVANCED: Desk = Desk {
    hear: |message| {
        let channel: Vec<String> = text(&message["channel"]).into_iter().collect();
        let products = texts(&message["product_ids"]);
        asked(wish(&message["type"]), &Value::Null, product(&channel, &products))
    },
    answer: |_, held, refused| {
        vec![match refused {
            Some(reason) => json!({"type": "error", "message": reason}).to_string(),
            None => {
                let channels: serde_json::Map<String, Value> = by_channel(held)
                    .into_iter()
                    .map(|(name, products)| (name.to_owned(), products.into()))
                    .collect();
                json!({
                    "channel": "subscriptions", "client_id": "", "sequence_num": 0,
                    "timestamp": "2026-01-01T00:00:00Z", "events": [{"subscriptions": channels}],
                })
                .to_string()
            }
        }]
    },
    topic: |message| {
        let channel = match message["channel"].as_str()? {
            "l2_data" => "level2",
            "subscriptions" | "heartbeats" => return None,
            channel => channel,
        };
        let event = &message["events"][0];
        let symbol = [&event["tickers"][0], &event["trades"][0], event]
            .into_iter()
            .find_map(|row| text(&row["product_id"]))?;
        Some(Topic::new(channel, symbol))
    },
    heartbeat: Some(
        r#"{"channel":"heartbeats","client_id":"","timestamp":"2026-01-01T00:00:00Z","sequence_num":0,"events":[{"current_time":"2026-01-01 00:00:00","heartbeat_counter":"1"}]}"#,
    ),
};

fn product(channels: &[String], products: &[String]) -> Vec<Topic> {
    let of = |channel: &String| {
        products.iter().map(|product| Topic::new(channel.clone(), product.clone())).collect()
    };
    channels.iter().flat_map::<Vec<Topic>, _>(of).collect()
}

fn by_channel(held: &[Topic]) -> std::collections::BTreeMap<&str, Vec<&str>> {
    let mut channels: std::collections::BTreeMap<&str, Vec<&str>> = Default::default();
    for topic in held {
        channels.entry(&topic.channel).or_default().push(&topic.symbol);
    }
    channels
}

// Kraken, the second interface.

pub(super) const KRAKEN: Desk = Desk {
    hear: |message| {
        if message["method"] == "ping" {
            let pong = json!({"method": "pong", "req_id": message["req_id"]});
            return Heard::Answer(pong.to_string());
        }
        let params = &message["params"];
        let channel: Vec<String> = text(&params["channel"]).into_iter().collect();
        asked(
            wish(&message["method"]),
            &message["req_id"],
            product(&channel, &texts(&params["symbol"])),
        )
    },
    answer: |asked, _, refused| {
        let one = |topic: &Topic| match refused {
            Some(reason) => json!({
                "method": word(asked.wish), "req_id": asked.id, "success": false,
                "symbol": topic.symbol, "error": reason,
            }),
            None => json!({
                "method": word(asked.wish), "req_id": asked.id, "success": true,
                "result": {"channel": topic.channel, "symbol": topic.symbol},
            }),
        };
        asked.topics.iter().map(|topic| one(topic).to_string()).collect()
    },
    topic: |message| {
        Some(Topic::new(text(&message["channel"])?, text(&message["data"][0]["symbol"])?))
    },
    heartbeat: Some(r#"{"channel":"heartbeat"}"#),
};

// Bybit.

pub(super) const BYBIT: Desk = Desk {
    hear: |message| {
        if message["op"] == "ping" {
            let pong = json!({"success": true, "ret_msg": "pong", "op": "ping"});
            return Heard::Answer(pong.to_string());
        }
        let topics = texts(&message["args"]).iter().filter_map(|s| split_last(s, '.')).collect();
        asked(wish(&message["op"]), &message["req_id"], topics)
    },
    answer: |asked, _, refused| {
        let answer = json!({
            "success": refused.is_none(), "ret_msg": refused.unwrap_or_default(),
            "conn_id": "1", "req_id": asked.id, "op": word(asked.wish),
        });
        vec![answer.to_string()]
    },
    topic: |message| split_last(message["topic"].as_str()?, '.'),
    heartbeat: None,
};

// OKX.

pub(super) const OKX: Desk = Desk {
    hear: |message| {
        let topics = message["args"].as_array().into_iter().flatten();
        let topics = topics
            .filter_map(|arg| Some(Topic::new(text(&arg["channel"])?, text(&arg["instId"])?)))
            .collect();
        asked(wish(&message["op"]), &message["id"], topics)
    },
    answer: |asked, _, refused| match refused {
        Some(reason) => vec![
            json!({"event": "error", "code": "60018", "msg": reason, "id": asked.id}).to_string(),
        ],
        None => {
            let one = |topic: &Topic| {
                json!({
                    "id": asked.id, "event": word(asked.wish), "connId": "1",
                    "arg": {"channel": topic.channel, "instId": topic.symbol},
                })
            };
            asked.topics.iter().map(|topic| one(topic).to_string()).collect()
        }
    },
    topic: |message| {
        // Answers have an argument too, and no data.
        message["data"].as_array()?;
        let arg = &message["arg"];
        Some(Topic::new(text(&arg["channel"])?, text(&arg["instId"])?))
    },
    heartbeat: None,
};

// Bitstamp.

pub(super) const BITSTAMP: Desk = Desk {
    hear: |message| {
        if message["event"] == "bts:heartbeat" {
            let beat =
                json!({"event": "bts:heartbeat", "channel": "", "data": {"status": "success"}});
            return Heard::Answer(beat.to_string());
        }
        let topic = message["data"]["channel"].as_str().and_then(|name| split_last(name, '_'));
        asked(wish(&message["event"]), &Value::Null, topic.into_iter().collect())
    },
    answer: |asked, _, refused| {
        let one = |topic: &Topic| {
            let channel = format!("{}_{}", topic.channel, topic.symbol);
            match refused {
                Some(reason) => json!({
                    "event": "bts:error", "channel": channel, "data": {"code": 4004, "message": reason},
                }),
                None => {
                    let event = match asked.wish {
                        Wish::Subscribe => "bts:subscription_succeeded",
                        Wish::Unsubscribe => "bts:unsubscription_succeeded",
                    };
                    json!({"event": event, "channel": channel, "data": {}})
                }
            }
        };
        asked.topics.iter().map(|topic| one(topic).to_string()).collect()
    },
    topic: |message| match message["event"].as_str()? {
        event if event.starts_with("bts:") => None,
        _ => split_last(message["channel"].as_str()?, '_'),
    },
    heartbeat: None,
};

// BitMEX.

pub(super) const BITMEX: Desk = Desk {
    hear: |message| {
        let topic = |name: &String| {
            name.split_once(':').map(|(channel, symbol)| Topic::new(channel, symbol))
        };
        let topics = texts(&message["args"]).iter().filter_map(topic).collect();
        asked(wish(&message["op"]), &Value::Null, topics)
    },
    answer: |asked, _, refused| {
        let one = |topic: &Topic| {
            let name = format!("{}:{}", topic.channel, topic.symbol);
            let request = json!({"op": word(asked.wish), "args": [name]});
            match refused {
                Some(reason) => json!({"status": 400, "error": reason, "request": request}),
                None => json!({"success": true, word(asked.wish): name, "request": request}),
            }
        };
        asked.topics.iter().map(|topic| one(topic).to_string()).collect()
    },
    topic: |message| {
        Some(Topic::new(text(&message["table"])?, text(&message["data"][0]["symbol"])?))
    },
    heartbeat: None,
};

// Deribit.

pub(super) const DERIBIT: Desk = Desk {
    hear: |message| {
        let id = &message["id"];
        match message["method"].as_str().unwrap_or_default() {
            "public/set_heartbeat" | "public/test" => {
                let ok = json!({"jsonrpc": "2.0", "id": id, "result": "ok"});
                return Heard::Answer(ok.to_string());
            }
            _ => {}
        }
        let channels = texts(&message["params"]["channels"]);
        asked(wish(&message["method"]), id, channels.iter().filter_map(|c| dotted(c)).collect())
    },
    answer: |asked, _, refused| {
        let answer = match refused {
            Some(reason) => json!({
                "jsonrpc": "2.0", "id": asked.id, "error": {"code": -32602, "message": reason},
            }),
            None => {
                let granted: Vec<String> = asked.topics.iter().map(undotted).collect();
                json!({"jsonrpc": "2.0", "id": asked.id, "result": granted})
            }
        };
        vec![answer.to_string()]
    },
    topic: |message| dotted(message["params"]["channel"].as_str()?),
    heartbeat: Some(r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"test_request"}}"#),
};

/// `trades.BTC-PERPETUAL.100ms`: the symbol stands in the middle.
fn dotted(name: &str) -> Option<Topic> {
    let mut parts = name.splitn(3, '.');
    match (parts.next()?, parts.next()?, parts.next()) {
        (first, symbol, Some(interval)) => Some(Topic::new(format!("{first}.{interval}"), symbol)),
        (first, symbol, None) => Some(Topic::new(first, symbol)),
    }
}

fn undotted(topic: &Topic) -> String {
    match topic.channel.split_once('.') {
        Some((first, interval)) => format!("{first}.{}.{interval}", topic.symbol),
        None => format!("{}.{}", topic.channel, topic.symbol),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::venue::{Outcome, VENUES};

    /// Both sides of every dialect: what ours asks, the desk hears; what the desk answers, ours
    /// understands.
    #[test]
    fn each_desk_hears_what_its_dialect_asks_and_is_understood() {
        for venue in VENUES {
            let (Some(dialect), Some(desk)) = (venue.dialect(), venue.desk()) else {
                assert!(venue.desk().is_none() && venue.dialect().is_none(), "{}", venue.name);
                continue;
            };
            let symbol = if venue.name == "bitstamp" { "btcusd" } else { "BTCUSDT" };
            let topics = [Topic::new(venue.channels()[0], symbol)];
            for wish in [Wish::Subscribe, Wish::Unsubscribe] {
                let request = dialect.request(wish, &topics, 7);
                let Heard::Asked(asked) = desk.hear(&request.text) else {
                    panic!("{} does not hear {}", venue.name, request.text)
                };
                assert_eq!(asked.wish, wish);
                assert!(asked.topics.contains(&topics[0]), "{}: {asked:?}", venue.name);
                let held = if wish == Wish::Subscribe { &asked.topics[..] } else { &[] };
                let granted = desk.answer(&asked, held, None);
                let answers: Vec<_> =
                    granted.iter().flat_map(|text| venue.answers(text.as_bytes())).collect();
                assert!(!answers.is_empty(), "{}: {granted:?}", venue.name);
                let refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused(_));
                assert!(!answers.iter().any(|answer| refused(&answer.outcome)));
                let refusal = desk.answer(&asked, &[], Some("not today"));
                let answers: Vec<_> =
                    refusal.iter().flat_map(|text| venue.answers(text.as_bytes())).collect();
                assert!(
                    answers.iter().all(|answer| refused(&answer.outcome)) && !answers.is_empty(),
                    "{}: {refusal:?}",
                    venue.name
                );
            }
            if let Some(ping) = dialect.ping(1) {
                assert!(matches!(desk.hear(&ping), Heard::Answer(_)), "{}", venue.name);
            }
            for greeting in dialect.greeting() {
                assert!(!matches!(desk.hear(&greeting), Heard::Asked(_)), "{}", venue.name);
            }
            assert_eq!(desk.hear("nonsense"), Heard::Nothing);
        }
    }
}
