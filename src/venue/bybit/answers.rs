//! Answers to requests: `{"success":true,"ret_msg":"","op":"subscribe","req_id":"1"}`.

use serde_json::Value;

use crate::venue::answer::{Answer, Outcome};

/// What `message` answers. A request is granted or refused whole, and named by its id; options name
/// each topic.
pub(in crate::venue) fn answers(message: &Value) -> Vec<Answer> {
    let id = message.get("req_id").or_else(|| message.get("reqId")).unwrap_or(&Value::Null);
    if let Some(data) = message.get("data").filter(|_| message["type"] == "COMMAND_RESP") {
        let topics = |member: &str| {
            let topics = data[member].as_array().map_or(&[][..], Vec::as_slice);
            topics.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let granted = topics("successTopics").into_iter().map(|t| (t, Outcome::Subscribed));
        let refused = topics("failTopics").into_iter();
        let refused = refused.map(|t| (t, Outcome::Refused("among failTopics".to_owned())));
        return granted.chain(refused).map(|(topic, outcome)| of(topic, outcome, id)).collect();
    }
    let reason = message.get("ret_msg").or_else(|| message.get("retMsg"));
    let reason = reason.and_then(Value::as_str).unwrap_or_default();
    let refused = message["success"] == false
        || message.get("retCode").is_some_and(|code| code.as_i64() != Some(0));
    if refused {
        return vec![Answer::refused(reason).request(id)];
    }
    if message.get("success").is_none() && message.get("retCode").is_none() {
        return Vec::new();
    }
    vec![Answer::new(Outcome::Done).request(id)]
}

fn of(topic: String, outcome: Outcome, id: &Value) -> Answer {
    let (channel, symbol) = match topic.rsplit_once('.') {
        Some((channel, symbol)) => (channel.to_owned(), Some(symbol.to_owned())),
        None => (topic, None),
    };
    Answer::new(outcome).request(id).channel(channel).symbol(symbol)
}
