//! What a request wants changed.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::answer::Problem;

/// A JSON object of which no key is given twice: which of the two was meant, nobody knows.
#[derive(Debug, PartialEq)]
pub(super) struct Changes(pub(super) Map<String, Value>);

impl Changes {
    /// Reads the body of a request; `right` is an example of what would be right.
    pub(super) fn read(body: &[u8], right: &str) -> Result<Self, Problem> {
        serde_json::from_slice(body).map_err(|error| {
            Problem::bad(format!("the body: {error}; a JSON object such as {right} is right"))
        })
    }
}

impl<'de> Deserialize<'de> for Changes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;
        impl<'de> Visitor<'de> for Once {
            type Value = Changes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Changes, A::Error> {
                let mut changes = Map::new();
                while let Some((key, value)) = entries.next_entry::<String, Value>()? {
                    if changes.contains_key(&key) {
                        return Err(A::Error::custom(format_args!("{key} is given twice")));
                    }
                    changes.insert(key, value);
                }
                Ok(Changes(changes))
            }
        }
        deserializer.deserialize_map(Once)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_given_twice_is_refused() {
        let read = |text| serde_json::from_str::<Changes>(text).map_err(|error| error.to_string());
        assert!(read(r#"{"capacity":1,"max_hz":2}"#).is_ok());
        let error = read(r#"{"capacity":1,"capacity":2}"#).unwrap_err();
        assert!(error.starts_with("capacity is given twice"), "{error}");
        assert!(read("[]").is_err());
    }
}
