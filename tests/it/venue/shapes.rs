//! The same list of cases for every venue, on the shape of messages: members that nobody knows, that
//! come twice, with escapes, in any order; and symbols.

use tidegate::market::Quote;
use tidegate::venue::{Class, Oddity, Refusal};

use super::cases::{each_number, is_named, second};
use super::samples::{Role, samples};
use super::subject::{Subject, decimal, get, insert, remove, set};

#[test]
fn b11_unknown_members_and_values_are_counted_and_skipped() {
    for sample in samples() {
        let plain = second(sample, &sample.numbered(1)).unwrap();
        let mut subject = Subject::new(sample.venue);
        let extras = [
            r#""zz":{"deep":[1,{"s":"OTHER","b":"1"}]}"#,
            r#""D":"1""#,
            r#""\u007a":null"#,
            r#""龙":1"#,
            r#""data":{"s":"OTHER"}"#,
        ];
        let wrapped = sample.venue.starts_with("binance") && sample.message.contains("data");
        let count = if wrapped { 5 } else { 4 };
        for (round, extra) in (0..).zip(&extras[..count]) {
            let Some(beside) = sample.beside else { continue };
            let edited = insert(&sample.numbered(2 * round), beside, extra);
            let tick = subject.quote(&edited).tick;
            assert_eq!(subject.oddities, [Oddity::UnknownField], "{edited}");
            let next = subject.quote(&sample.numbered(2 * round + 1));
            assert_eq!(next, Quote { tick: tick + 1, ..plain });
        }
        for (round, (member, value)) in (100..).zip(sample.informational) {
            subject.quote(&set(&sample.numbered(round), member, value));
            assert_eq!(subject.oddities, [Oddity::UnknownValue], "{member} of {}", sample.message);
        }
    }
}

#[test]
fn a_member_twice_is_refused_whichever_came_first() {
    each_number(|sample, later, member, _| {
        if !is_named(member) {
            return;
        }
        let value = get(later, member);
        let escaped = format!("\\u{:04x}{}", u32::from(member.as_bytes()[0]), &member[1..]);
        for twin in [
            format!("\"{member}\":{value}"),
            format!("\"{member}\":1"),
            format!("\"{escaped}\":{value}"),
        ] {
            let result = second(sample, &insert(later, member, &twin));
            assert_eq!(result, Err(Refusal::DuplicateField), "{twin}");
        }
    });
}

#[test]
fn escapes_are_read_as_what_they_mean() {
    let escape = |text: &str| format!("\\u{:04x}{}", u32::from(text.as_bytes()[0]), &text[1..]);
    for sample in samples() {
        let later = sample.numbered(1);
        let plain = second(sample, &later).unwrap();
        let symbol = get(&later, sample.symbol.0).trim_matches('"');
        let mut edited = set(&later, sample.symbol.0, &format!("\"{}\"", escape(symbol)));
        for &(member, role) in sample.numbers {
            let value = get(&later, member);
            if role.is_price_or_size() && value.starts_with('"') {
                let escaped = format!("\"{}\"", escape(value.trim_matches('"')));
                edited = set(&edited, member, &escaped);
            }
            if is_named(member) {
                let at = edited.rfind(&format!("\"{member}\":")).unwrap() + 1;
                edited.replace_range(at..at + member.len(), &escape(member));
            }
        }
        assert_eq!(second(sample, &edited), Ok(plain), "{edited}");
        let mut subject = Subject::new(sample.venue);
        let half = sample.of(sample.message, r"\ud800USDT");
        assert_eq!(subject.refused(&half), Refusal::Malformed);
    }
}

/// The members or elements of an object or array, as they are written.
fn parts(value: &str) -> Vec<&str> {
    let inner = &value[1..value.len() - 1];
    let (mut parts, mut start, mut depth, mut text) = (Vec::new(), 0, 0, false);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'"' => text = !text,
            b'{' | b'[' if !text => depth += 1,
            b'}' | b']' if !text => depth -= 1,
            b',' if !text && depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The text with the members of each object turned by `turn`, and `space` between all tokens.
fn turned(value: &str, turn: usize, space: &str) -> String {
    let (open, close) = match value.as_bytes()[0] {
        b'{' => ("{", "}"),
        b'[' => ("[", "]"),
        _ => return value.to_owned(),
    };
    let mut parts: Vec<String> = parts(value)
        .into_iter()
        .map(|part| {
            let key = if open == "{" { part.find(':').unwrap() + 1 } else { 0 };
            let (key, value) = part.split_at(key);
            let value = turned(value, turn, space);
            match key.strip_suffix(':') {
                Some(key) => format!("{key}{space}:{space}{value}"),
                None => value,
            }
        })
        .collect();
    if open == "{" && !parts.is_empty() {
        let by = turn % parts.len();
        parts.rotate_left(by);
    }
    format!("{open}{space}{}{space}{close}", parts.join(&format!("{space},{space}")))
}

#[test]
fn members_may_come_in_any_order_with_any_white_space() {
    for sample in samples() {
        let later = sample.numbered(1);
        let plain = second(sample, &later).unwrap();
        let (word, value) = later.split_at(later.find(['{', '[']).unwrap());
        for turn in 0..20 {
            for space in ["", " ", "\r\n\t"] {
                let text = format!("{word}{}", turned(value, turn, space));
                assert_eq!(second(sample, &text), Ok(plain), "{text}");
            }
        }
    }
}

#[test]
fn an_event_may_come_in_its_streams_wrapper_or_without() {
    for sample in samples().filter(|sample| sample.venue.starts_with("binance")) {
        let later = sample.numbered(1);
        let plain = second(sample, &later).unwrap();
        let event = match later.split_once("\"data\":") {
            Some((_, data)) => data.strip_suffix('}').unwrap(),
            None => &later,
        };
        let stream = match sample.numbers[0].1 {
            Role::Bid => "x@bookTicker",
            _ if sample.message.contains("aggTrade") => "x@aggTrade",
            _ => "x@trade",
        };
        for text in [
            event.to_owned(),
            format!(r#"{{"stream":"{stream}","data":{event}}}"#),
            format!(r#"{{"data":{event},"stream":"{stream}"}}"#),
        ] {
            assert_eq!(second(sample, &text), Ok(plain), "{text}");
        }
    }
}

#[test]
fn b14_b15_a_symbol_is_the_venues_own_spelling_byte_for_byte() {
    for sample in samples() {
        let mut subject = Subject::new(sample.venue);
        for symbol in ["AEBTC", "1000SATSUSDT", "BTCUSD_240329", "龙币USDT", "é", "x"] {
            let edited = sample.of(sample.message, symbol);
            assert_eq!(subject.quote(&edited).tick, 1);
            assert_eq!(subject.name(), format!("{}:{symbol}", sample.venue));
            assert_eq!(subject.quote(&sample.of(&sample.numbered(1), symbol)).tick, 2);
        }
        assert_eq!(subject.instruments.len(), 6);
        for symbol in ["", "A B", "A:B", "A\\u0000"] {
            let edited = sample.of(sample.message, symbol);
            assert_eq!(subject.refused(&edited), Refusal::BadSymbol, "{edited}");
        }
        let member = sample.symbol.0;
        for value in ["null", "5"] {
            let edited = set(sample.message, member, value);
            assert_eq!(subject.refused(&edited), Refusal::WrongType, "{edited}");
        }
        if is_named(member) {
            assert_eq!(subject.refused(&remove(sample.message, member)), Refusal::MissingField);
        }
        let marked = sample.of(sample.message, "A~B");
        let mut bytes = marked.as_bytes().to_vec();
        let at = marked.find("A~B").unwrap();
        bytes[at + 1] = 0xFF;
        assert_eq!(subject.read(&bytes), Class::Refused(Refusal::BadSymbol));
    }
}

#[test]
fn past_the_limit_of_instruments_the_known_ones_go_on() {
    for sample in samples() {
        let mut subject = Subject::with(sample.venue, None, 1);
        subject.quote(sample.message);
        let other = sample.of(sample.message, "OTHER");
        assert_eq!(subject.refused(&other), Refusal::InstrumentsFull);
        assert_eq!(subject.quote(&sample.numbered(1)).tick, 2);
    }
}

#[test]
fn b23_both_sides_of_a_quote_are_applied() {
    for sample in samples() {
        let (Some(bid), Some(ask)) = (sample.member(Role::Bid), sample.member(Role::Ask)) else {
            continue;
        };
        let moved = set(&set(&sample.numbered(1), bid, "\"150.5\""), ask, "\"150.6\"");
        let quote = second(sample, &moved).unwrap();
        assert_eq!(quote.bid, Some(decimal("150.5")));
        assert_eq!(quote.ask, Some(decimal("150.6")));
    }
}
