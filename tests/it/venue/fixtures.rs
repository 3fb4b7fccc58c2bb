//! Execution reports as venues and other projects show them, if they are at hand: each counts as its
//! own fields say, read by another reader than the codec's.

use std::path::Path;

use serde_json::Value;
use tidegate::venue::{Class, Refusal, Unused};

use super::recordings;
use super::subject::{Subject, decimal};

/// A venue's fixtures of execution reports: its name, their folder, and what their names hold.
const FIXTURES: [(&str, &str, &[&str]); 4] = [
    ("binance", "nautilus/binance", &["spot_execution_report"]),
    ("binance-usdm", "nautilus/binance", &["futures_order_update"]),
    ("bybit", "nautilus/bybit", &["account_execution"]),
    ("bitmex", "nautilus/bitmex", &["ws_execution"]),
];

/// Text or number, as text.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a report is by its fields: the execution's type and the last quantity.
fn expected(venue: &str, message: &Value) -> Class {
    let inner = message.get("event").or_else(|| message.get("data"));
    let event = inner.filter(|inner| inner.is_object()).unwrap_or(message);
    let (kind, quantity) = match venue {
        "binance" => (text(&event["x"]), text(&event["l"])),
        "binance-usdm" => (text(&event["o"]["x"]), text(&event["o"]["l"])),
        "bybit" => match message["data"].as_array().unwrap().first() {
            Some(row) => {
                let kind = row.get("execType").map_or("Trade".to_owned(), text);
                (kind, text(&row["execQty"]))
            }
            None => return Class::Unused(Unused::Empty),
        },
        _ => (text(&message["data"][0]["execType"]), text(&message["data"][0]["lastQty"])),
    };
    let some = quantity != "null" && !decimal(&quantity).is_zero();
    match kind.as_str() {
        "TRADE" | "Trade" if some => Class::Fill,
        "CALCULATED" | "AdlTrade" if some => Class::Unused(Unused::Calculated),
        _ => Class::Unused(Unused::Order),
    }
}

#[test]
fn reports_of_partial_fills_cancels_liquidations_and_nothing_count_as_their_fields_say() {
    let Some(folder) = recordings::folder() else {
        eprintln!("SKIPPED: no fixtures at hand, so none was read");
        return;
    };
    let (mut fills, mut others) = (0, 0);
    for (venue, below, names) in FIXTURES {
        let files = std::fs::read_dir(folder.join("fixtures").join(below));
        for file in files.into_iter().flatten() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if !names.iter().any(|part| name.contains(part)) {
                continue;
            }
            let class = check(venue, &path);
            *(if class == Class::Fill { &mut fills } else { &mut others }) += 1;
        }
    }
    println!("{fills} fixtures are fills, {others} are none");
    assert!(fills >= 10 && others >= 15, "{fills} fills and {others} others");
}

fn check(venue: &str, path: &Path) -> Class {
    let raw = std::fs::read_to_string(path).unwrap();
    // A table's row alone stands in some of them.
    let raw = if venue == "bitmex" && !raw.contains("\"table\"") {
        format!(r#"{{"table":"execution","action":"insert","data":[{raw}]}}"#)
    } else {
        raw
    };
    let message: Value = serde_json::from_str(&raw).unwrap();
    let mut subject = Subject::new(venue);
    let class = subject.read(&raw);
    assert_eq!(class, expected(venue, &message), "{}: {:?}", path.display(), subject.oddities);
    if class == Class::Fill {
        assert_eq!(subject.read(&raw), Class::Refused(Refusal::DuplicateFill));
    }
    class
}
