//! Fills of accounts: each counts once, for the right account, or is refused with a reason.

use tidegate::market::fill::Side;
use tidegate::market::{AccountId, Volume};
use tidegate::venue::{Class, Event, Refusal, Unused};

use super::samples::binance::{FUTURES_FILL, SAMPLES, SPOT_FILL};
use super::subject::{RECEIVED, Subject, decimal, insert, remove, set};

const FILLS: [(&str, &str); 3] =
    [("binance", SPOT_FILL), ("binance-usdm", FUTURES_FILL), ("binance-cm", FUTURES_FILL)];

/// With another trade id, so that it is another fill.
fn numbered(message: &str, trade: u64) -> String {
    set(message, "t", &trade.to_string())
}

#[test]
fn a_trade_of_the_account_is_a_fill_in_every_wrapper() {
    for (venue, message) in FILLS {
        let mut subject = Subject::new(venue);
        let fill = subject.fill(message);
        assert_eq!(subject.name(), format!("{venue}:SOLUSDT"));
        assert_eq!(subject.accounts.name(fill.account), "desk-1");
        assert_eq!(fill.venue_time, Some(1_718_000_000_121_000_000));
        assert_eq!(fill.receive_time, RECEIVED);
        let (side, price, quantity) = match venue {
            "binance" => (Side::Buy, "151.74000000", "0.50000000"),
            _ => (Side::Sell, "151.740", "5"),
        };
        assert_eq!(
            (fill.side, fill.price, fill.quantity),
            (side, decimal(price), decimal(quantity))
        );
        for (trade, wrapper) in [
            (8_000_001, r#"{"subscriptionId":0,"event":EVENT}"#),
            (8_000_002, r#"{"event":EVENT,"subscriptionId":0}"#),
            (8_000_003, r#"{"stream":"pqia91ma19a5s61cv6a81va65sdf19v8a65a1","data":EVENT}"#),
        ] {
            let wrapped = wrapper.replace("EVENT", &numbered(message, trade));
            assert_eq!(subject.fill(&wrapped), fill);
        }
    }
}

#[test]
fn a_fill_is_no_tick_and_needs_no_quote() {
    let mut subject = Subject::new("binance");
    let fill = subject.fill(SPOT_FILL);
    assert_eq!(subject.quote(SAMPLES[0].message).tick, 1);
    let Event::Quote { instrument, .. } = subject.events[0] else { panic!() };
    assert_eq!(fill.instrument, instrument);
    subject.fill(&numbered(SPOT_FILL, 71_002_004));
    assert_eq!(subject.quote(SAMPLES[0].message).tick, 2);
}

#[test]
fn only_an_execution_with_a_quantity_counts() {
    for (venue, message) in FILLS {
        let mut subject = Subject::new(venue);
        for execution in ["NEW", "CANCELED", "EXPIRED", "REJECTED", "TRADE_PREVENTION", "AMENDMENT"]
        {
            let edited = set(message, "x", &format!("\"{execution}\""));
            assert_eq!(subject.read(&edited), Class::Unused(Unused::Order));
            assert!(subject.oddities.is_empty());
        }
        assert_eq!(subject.read(set(message, "x", "\"NOVEL\"")), Class::Unused(Unused::Order));
        assert_eq!(subject.oddities, [tidegate::venue::Oddity::UnknownValue]);
        let calculated = set(message, "x", "\"CALCULATED\"");
        assert_eq!(subject.read(&calculated), Class::Unused(Unused::Calculated));
        assert_eq!(subject.read(set(&calculated, "l", "\"0\"")), Class::Unused(Unused::Order));
        for zero in ["\"0.00000000\"", "0", "\"-0\""] {
            assert_eq!(subject.read(set(message, "l", zero)), Class::Unused(Unused::Order));
        }
        assert_eq!(subject.fill(&set(message, "L", "\"0\"")).price, decimal("0"));
    }
}

#[test]
fn the_account_is_the_messages_own_else_the_feeds_else_there_is_none() {
    for (venue, message) in FILLS {
        let mut subject = Subject::with(venue, None, 10);
        assert_eq!(subject.refused(message), Refusal::NoAccount);
        let beside = insert(message, "E", r#""account":"desk-7""#);
        let fill = subject.fill(&beside);
        assert_eq!(subject.accounts.name(fill.account), "desk-7");
        let wrapped = format!(r#"{{"account":"龙-8","subscriptionId":0,"event":{message}}}"#);
        let fill = subject.fill(&wrapped);
        assert_eq!(subject.accounts.name(fill.account), "龙-8");

        let mut subject = Subject::new(venue);
        let fill = subject.fill(&beside);
        assert_eq!(subject.accounts.name(fill.account), "desk-7", "the message's word goes first");
        for blank in ["null", "\"\""] {
            let edited =
                insert(&numbered(message, 9_000_000), "E", &format!("\"account\":{blank}"));
            subject.codec.new_session();
            let fill = subject.fill(&edited);
            assert_eq!(subject.accounts.name(fill.account), "desk-1");
        }
        for (account, expected) in [
            ("\"a b\"", Refusal::BadAccount),
            ("\"*\"", Refusal::BadAccount),
            ("7", Refusal::WrongType),
        ] {
            let edited = insert(message, "E", &format!("\"account\":{account}"));
            assert_eq!(subject.refused(&edited), expected);
        }
        let both = format!(r#"{{"account":"a","event":{beside}}}"#);
        assert_eq!(subject.refused(&both), Refusal::DuplicateField);
    }
}

#[test]
fn a_fill_sent_again_counts_once_and_a_new_session_starts_afresh() {
    for (venue, message) in FILLS {
        let mut subject = Subject::new(venue);
        subject.fill(message);
        assert_eq!(subject.refused(message), Refusal::DuplicateFill);
        // The same trade id is another fill for another account, symbol or side.
        subject.fill(&insert(message, "E", r#""account":"desk-2""#));
        subject.fill(&set(message, "s", "\"ETHUSDT\""));
        let other = if message.contains("\"BUY\"") { "\"SELL\"" } else { "\"BUY\"" };
        subject.fill(&set(message, "S", other));
        // Late by one place, and sent again.
        subject.fill(&numbered(message, 71_002_001));
        assert_eq!(subject.refused(&numbered(message, 71_002_001)), Refusal::DuplicateFill);
        subject.codec.new_session();
        subject.fill(message);
        assert_eq!(subject.refused(message), Refusal::DuplicateFill);
    }
}

#[test]
fn a_refused_fill_is_not_remembered() {
    for (venue, message) in FILLS {
        let mut subject = Subject::new(venue);
        for (member, value, expected) in [
            ("l", "\"\"", Refusal::MissingField),
            ("l", "\"-1\"", Refusal::NegativeSize),
            ("l", "\"NaN\"", Refusal::BadNumber),
            ("L", "null", Refusal::MissingField),
            ("L", "\"1e99\"", Refusal::NumberTooLong),
            ("L", "{}", Refusal::WrongType),
            ("t", "-1", Refusal::IdOutOfRange),
            ("t", "18446744073709551616", Refusal::IdOutOfRange),
            ("t", "null", Refusal::MissingField),
            ("S", "\"HOLD\"", Refusal::BadSide),
            ("s", "\"\"", Refusal::BadSymbol),
            ("x", "7", Refusal::WrongType),
        ] {
            assert_eq!(subject.refused(&set(message, member, value)), expected, "{member} {value}");
        }
        for member in ["x", "l", "L", "t", "S", "s"] {
            assert_eq!(subject.refused(&remove(message, member)), Refusal::MissingField);
        }
        let long = "\"0.1234567890123456789012345678\"";
        let overflow = set(&set(message, "l", long), "L", long);
        assert_eq!(subject.refused(&overflow), Refusal::Overflow);
        subject.fill(message);
    }
}

#[test]
fn past_the_limit_of_accounts_the_known_ones_go_on() {
    let mut subject = Subject::with("binance", Some("desk-1"), 1);
    subject.fill(SPOT_FILL);
    let other = insert(SPOT_FILL, "E", r#""account":"desk-2""#);
    assert_eq!(subject.refused(&other), Refusal::AccountsFull);
    subject.fill(&numbered(SPOT_FILL, 71_002_004));
}

#[test]
fn fills_of_several_accounts_add_up_to_what_was_sent() {
    let mut subject = Subject::with("binance", None, 100);
    let mut expected = vec![Volume::default(); 5];
    let mut folded = expected.clone();
    for n in 0..2_000_u64 {
        let which = (n * 7 % 5) as usize;
        let (price, quantity) =
            (format!("{}.{:02}", 150 + n % 9, n % 100), format!("0.{:03}", n % 997 + 1));
        let side = if n % 3 == 0 { "\"SELL\"" } else { "\"BUY\"" };
        let message =
            [("L", format!("\"{price}\"")), ("l", format!("\"{quantity}\"")), ("S", side.into())]
                .iter()
                .fold(numbered(SPOT_FILL, n), |message, (member, value)| {
                    set(&message, member, value)
                });
        let message = insert(&message, "E", &format!("\"account\":\"desk-{which}\""));
        let fill = subject.fill(&message);
        assert_eq!(subject.refused(&message), Refusal::DuplicateFill);
        let account = subject.accounts.find(&format!("desk-{which}")).unwrap();
        assert_eq!(fill.account, account);
        folded[account.0 as usize].add(Volume::of(&fill).unwrap()).unwrap();
        let told = tidegate::market::Fill {
            account: AccountId(account.0),
            side: if n % 3 == 0 { Side::Sell } else { Side::Buy },
            price: price.parse().unwrap(),
            quantity: quantity.parse().unwrap(),
            ..fill
        };
        expected[account.0 as usize].add(Volume::of(&told).unwrap()).unwrap();
    }
    assert_eq!(folded, expected);
    assert_eq!(folded.iter().map(|volume| volume.fills).sum::<u64>(), 2_000);
}

#[test]
fn nothing_is_allocated_for_a_fill_in_steady_state() {
    for (venue, message) in FILLS {
        let mut subject = Subject::new(venue);
        let messages: Vec<String> = (0..200).map(|n| numbered(message, 1_000 + n)).collect();
        for message in &messages[..100] {
            subject.fill(message);
        }
        let mut events = Vec::with_capacity(1);
        let count = crate::counting::allocations(|| {
            for message in &messages[100..] {
                let decoded = subject.codec.decode(message.as_bytes(), 0, &mut events);
                assert_eq!(decoded.class, Class::Fill);
                events.clear();
            }
        });
        assert_eq!(count, 0);
    }
}
