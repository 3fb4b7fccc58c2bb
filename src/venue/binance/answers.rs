//! Answers to requests: `{"result":null,"id":1}`, or an error with a code.

use serde_json::Value;

use crate::venue::answer::{Answer, Outcome};

/// What `message` answers. The venue names requests by their id alone.
pub(in crate::venue) fn answers(message: &Value) -> Vec<Answer> {
    let error = message.get("error").unwrap_or(message);
    let answer = if let Some(reason) = error.get("msg").and_then(Value::as_str) {
        Answer::refused(reason)
    } else if message.get("result").is_some() {
        Answer::new(Outcome::Done)
    } else {
        return Vec::new();
    };
    vec![answer.request(&message["id"])]
}
