//! Our own lines of fills.

use tidegate::venue::{Class, Control, Refusal, Unused};

use super::{Speaker, control, unused};

pub(crate) const SPEAKER: Speaker = Speaker {
    venues: &["fills"],
    samples: &[],
    fills: &[("fills", FILL)],
    others: OTHERS,
    refused: REFUSED,
    batch: None,
};

/// A fill of an account that is named.
pub(crate) const FILL: &str = r#"{"id":"f-1","account":"desk-7","instrument":"bybit:SOLUSDT","side":"buy","price":"151.740","quantity":"0.5","time":1718000000121}"#;

const OTHERS: &[(&str, Class)] = &[
    ("{}", Class::Unknown),
    (r#"{"type":"brand-new","id":1}"#, Class::Unknown),
    (r#"{"type":"heartbeat"}"#, control(Control::Heartbeat)),
    ("ping", control(Control::Heartbeat)),
    (r#"{"id":1,"instrument":"okx:X","side":"buy","price":1,"quantity":0}"#, unused(Unused::Order)),
];

const REFUSED: &[(&str, Refusal)] = &[
    ("[]", Refusal::WrongType),
    (
        r#"{"id":1,"instrument":"nowhere:X","side":"buy","price":1,"quantity":1}"#,
        Refusal::BadSymbol,
    ),
    (r#"{"id":1,"instrument":"X","side":"buy","price":1,"quantity":1}"#, Refusal::BadSymbol),
    (
        r#"{"id":1,"id":1,"instrument":"okx:X","side":"buy","price":1,"quantity":1}"#,
        Refusal::DuplicateField,
    ),
];
