//! Venues that tell only what has changed, and trades that are told apart by names.

use tidegate::market::Quote;
use tidegate::venue::{Class, Event, Oddity, Refusal, Unused};

use super::subject::{Subject, decimal, set};

const TICKER: &str = r#"{"topic":"tickers.SOLUSDT","type":"snapshot","data":{"symbol":"SOLUSDT","lastPrice":"151.740","bid1Price":"151.730","bid1Size":"20.5","ask1Price":"151.740","ask1Size":"0.9"},"cs":100,"ts":1718000000121}"#;
const BOOK: &str = r#"{"topic":"orderbook.1.SOLUSDT","type":"snapshot","ts":1718000000121,"data":{"s":"SOLUSDT","b":[["151.730","20.5"]],"a":[["151.740","0.9"]],"u":50,"seq":100}}"#;

fn delta(members: &str, sequence: u64) -> String {
    format!(
        r#"{{"topic":"tickers.SOLUSDT","type":"delta","data":{{"symbol":"SOLUSDT",{members}}},"cs":{sequence},"ts":1718000000221}}"#
    )
}

fn book_delta(bids: &str, asks: &str, update: u64) -> String {
    format!(
        r#"{{"topic":"orderbook.1.SOLUSDT","type":"delta","ts":1718000000121,"data":{{"s":"SOLUSDT","b":{bids},"a":{asks},"u":{update},"seq":{}}}}}"#,
        update + 50
    )
}

fn sides(quote: &Quote) -> [Option<String>; 4] {
    [quote.bid, quote.bid_size, quote.ask, quote.ask_size].map(|n| n.map(|n| n.to_string()))
}

fn texts(four: [&str; 4]) -> [Option<String>; 4] {
    four.map(|text| (!text.is_empty()).then(|| text.to_owned()))
}

#[test]
fn b07_a_change_is_merged_into_what_is_held_and_what_it_leaves_out_is_kept() {
    let mut subject = Subject::new("bybit");
    subject.quote(TICKER);
    let mut sequence = 100;
    for (members, expected) in [
        (r#""ask1Price":"151.750","ask1Size":"3""#, ["151.730", "20.5", "151.750", "3"]),
        (r#""bid1Size":"7""#, ["151.730", "7", "151.750", "3"]),
        (r#""bid1Price":"151.720""#, ["151.720", "7", "151.750", "3"]),
        (r#""bid1Price":"","bid1Size":"""#, ["", "", "151.750", "3"]),
        (r#""bid1Size":"5""#, ["", "", "151.750", "3"]),
        (r#""bid1Price":"0","bid1Size":"0""#, ["0", "0", "151.750", "3"]),
        (r#""ask1Size":null"#, ["0", "0", "151.750", ""]),
    ] {
        sequence += 1;
        let message = delta(members, sequence);
        if members == r#""bid1Size":"5""# {
            // The size of no offer changes nothing.
            assert_eq!(subject.read(&message), Class::Unused(Unused::Ticker));
            continue;
        }
        let quote = subject.quote(&message);
        assert_eq!(sides(&quote), texts(expected), "{members}");
        assert_eq!(quote.last, Some(decimal("151.740")));
    }
    let quote = subject.quote(&delta(r#""lastPrice":"151.8""#, sequence + 1));
    assert_eq!((quote.last, quote.ask), (Some(decimal("151.8")), Some(decimal("151.750"))));
    // What says nothing of a quote is no tick.
    let other = delta(r#""markPrice":"1","openInterest":"2""#, sequence + 2);
    assert_eq!(subject.read(&other), Class::Unused(Unused::Ticker));
    assert_eq!(subject.quote(&delta(r#""lastPrice":"151.9""#, sequence + 3)).tick, quote.tick + 1);
}

#[test]
fn b07_a_change_before_its_whole_is_dropped_and_told_and_names_no_instrument() {
    let mut subject = Subject::new("bybit");
    let early = delta(r#""ask1Price":"151.750","ask1Size":"3""#, 99);
    assert_eq!(subject.refused(&early), Refusal::NoSnapshot);
    assert!(subject.instruments.is_empty());
    // Neither a trade nor the top of the book makes a ticker whole.
    subject.quote(BOOK);
    assert_eq!(subject.refused(&delta(r#""lastPrice":"1""#, 101)), Refusal::NoSnapshot);
    subject.quote(&TICKER.replace("\"cs\":100", "\"cs\":102"));
    subject.quote(&delta(r#""lastPrice":"1""#, 103));
    // A new session begins with a whole again.
    subject.codec.new_session();
    assert_eq!(subject.refused(&delta(r#""lastPrice":"1""#, 104)), Refusal::NoSnapshot);
    let mut subject = Subject::new("bitmex");
    let update =
        r#"{"table":"quote","action":"update","data":[{"symbol":"SOLUSDT","askPrice":2}]}"#;
    assert_eq!(subject.refused(update), Refusal::NoSnapshot);
    subject.quote(
        &update
            .replace("update", "insert")
            .replace("\"askPrice\":2", r#""askPrice":9,"askSize":1,"bidPrice":1,"bidSize":3"#),
    );
    assert_eq!(sides(&subject.quote(update)), texts(["1", "3", "2", "1"]));
    let cleared = update.replace(":2", ":null");
    assert_eq!(sides(&subject.quote(&cleared)), texts(["1", "3", "", ""]));
    assert_eq!(subject.oddities, [Oddity::Absent]);
}

#[test]
fn b07_generated_snapshots_and_changes_fold_to_what_a_map_of_members_holds() {
    use rand::{RngExt as _, SeedableRng as _};
    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    const NAMES: [&str; 5] = ["bid1Price", "bid1Size", "ask1Price", "ask1Size", "lastPrice"];
    let mut subject = Subject::new("bybit");
    let mut held: [String; 5] = Default::default();
    for round in 0..5_000_u64 {
        let snapshot = round % 100 == 0;
        let mut members = Vec::new();
        for (name, held) in NAMES.iter().zip(&mut held) {
            if snapshot || random.random() {
                *held =
                    format!("{}.{:02}", random.random_range(1..200), random.random_range(0..100));
                members.push(format!("\"{name}\":\"{held}\""));
            }
        }
        if members.is_empty() {
            continue;
        }
        let message = delta(&members.join(","), 1_000 + round);
        let quote =
            subject.quote(&if snapshot { message.replace("delta", "snapshot") } else { message });
        let told = [quote.bid, quote.bid_size, quote.ask, quote.ask_size, quote.last];
        assert_eq!(told.map(|n| n.unwrap().to_string()), held);
    }
}

#[test]
fn the_top_of_the_book_sent_again_is_no_tick_and_a_restart_counts_anew() {
    let mut subject = Subject::new("bybit");
    subject.quote(BOOK);
    for _ in 0..3 {
        assert_eq!(subject.read(BOOK), Class::Unused(Unused::Repeat));
    }
    assert_eq!(subject.refused(&set(&set(BOOK, "u", "49"), "seq", "101")), Refusal::LateQuote);
    // A ticker of a later sequence, then the book of an earlier one.
    subject.quote(&TICKER.replace("\"cs\":100", "\"cs\":105"));
    assert_eq!(subject.refused(&set(&set(BOOK, "u", "51"), "seq", "104")), Refusal::LateQuote);
    subject.quote(&set(&set(BOOK, "u", "51"), "seq", "106"));
    assert_eq!(subject.refused(&TICKER.replace("\"cs\":100", "\"cs\":105")), Refusal::LateQuote);
    // The service has started anew: both count from the start.
    let restarted = set(&set(&set(BOOK, "u", "1"), "seq", "3"), "b.0.0", "\"150\"");
    assert_eq!(subject.quote(&restarted).bid, Some(decimal("150")));
    assert_eq!(subject.read(&restarted), Class::Unused(Unused::Repeat));
    let quote = subject.quote(&set(&set(BOOK, "u", "2"), "seq", "4"));
    assert_eq!((quote.bid, quote.tick), (Some(decimal("151.730")), 5));
}

#[test]
fn b23_a_book_of_one_level_may_change_by_rows_and_a_row_without_size_takes_the_level_out() {
    let mut subject = Subject::new("bybit");
    // More levels than one: the first is the best.
    let deep = set(BOOK, "b", r#"[["151.730","20.5"],["151.720","9"]]"#);
    assert_eq!(sides(&subject.quote(&deep)), texts(["151.730", "20.5", "151.740", "0.9"]));
    let mut update = 50;
    for (bids, asks, expected) in [
        (r#"[["151.730","8"]]"#, "[]", ["151.730", "8", "151.740", "0.9"]),
        (r#"[["151.730","0"],["151.71","4"]]"#, "[]", ["151.71", "4", "151.740", "0.9"]),
        (r#"[["151.72","2"],["151.71","0"]]"#, "[]", ["151.72", "2", "151.740", "0.9"]),
        (r#"[["140","0"]]"#, r#"[["151.740","0"]]"#, ["151.72", "2", "", ""]),
    ] {
        update += 1;
        let quote = subject.quote(&book_delta(bids, asks, update));
        assert_eq!(sides(&quote), texts(expected), "{bids} {asks}");
    }
    let empty = set(&set(&set(BOOK, "b", "[]"), "u", "60"), "seq", "200");
    assert_eq!(sides(&subject.quote(&empty)), texts(["", "", "151.740", "0.9"]));
}

#[test]
fn options_and_the_topics_of_before_are_read_by_their_own_names() {
    let mut subject = Subject::new("bybit");
    let option = r#"{"id":"tickers.X-1","topic":"tickers.X-6JAN23-17500-C","ts":1718000000121,"data":{"symbol":"X-6JAN23-17500-C","bidPrice":"0","bidSize":"0","bidIv":"0","askPrice":"10","askSize":"5.1","lastPrice":"10","delta":"0.04"},"type":"snapshot"}"#;
    assert_eq!(sides(&subject.quote(option)), texts(["0", "0", "10", "5.1"]));
    assert!(subject.oddities.is_empty());
    let old = r#"{"topic":"trade.SOLUSD","data":[{"trade_time_ms":1618677786614,"timestamp":"2021-04-17T16:43:06.000Z","symbol":"SOLUSD","side":"Sell","size":4,"price":60621.5,"tick_direction":"PlusTick","trade_id":"5ffb8b77-900c-507d-97a2-0922557ffe54","cross_seq":5938955347}]}"#;
    let quote = subject.quote(old);
    assert_eq!((quote.last, quote.last_size), (Some(decimal("60621.5")), Some(decimal("4"))));
    assert_eq!(quote.venue_time, Some(1_618_677_786_614_000_000));
    assert!(subject.oddities.is_empty());
}

/// A trade of each venue whose trades are told apart by names.
fn named(venue: &str, id: &str, price: &str, ms: u64) -> String {
    if venue == "bybit" {
        format!(
            r#"{{"topic":"publicTrade.SOLUSDT","type":"snapshot","ts":1,"data":[{{"T":{},"s":"SOLUSDT","S":"Sell","v":"0.5","p":"{price}","i":"{id}"}}]}}"#,
            1_718_000_000_000 + ms
        )
    } else {
        format!(
            r#"{{"table":"trade","action":"insert","data":[{{"timestamp":"2024-06-10T06:13:20.{ms:03}Z","symbol":"SOLUSDT","side":"Sell","size":500,"price":{price},"trdMatchID":"{id}"}}]}}"#
        )
    }
}

fn uuid(n: u32) -> String {
    format!("{n:08x}-0fce-56b8-b5fe-{:012x}", u64::from(n) * 7)
}

#[test]
fn a_trade_with_a_name_counts_once_among_the_last_ten_thousand_of_its_instrument() {
    for venue in ["bybit", "bitmex"] {
        let mut subject = Subject::new(venue);
        for n in 0..10_000 {
            subject.quote(&named(venue, &uuid(n), "151", 121));
        }
        for n in [0, 5_000, 9_999] {
            let again = named(venue, &uuid(n).to_uppercase(), "9", 500);
            assert_eq!(subject.refused(&again), Refusal::DuplicateTrade);
        }
        let next = subject.quote(&named(venue, &uuid(10_000), "152", 121));
        assert_eq!((next.tick, next.last), (10_001, Some(decimal("152"))));
        let forgotten = subject.quote(&named(venue, &uuid(0), "153", 121));
        assert_eq!(forgotten.tick, 10_002, "further back it cannot be told");
        let other = named(venue, &uuid(9_999), "1", 121).replace("SOLUSDT", "OTHER");
        assert_eq!(subject.quote(&other).tick, 1, "another instrument's names are its own");
        subject.codec.new_session();
        subject.quote(&named(venue, &uuid(10_000), "152", 121));
    }
}

#[test]
fn an_older_trade_is_a_tick_and_never_overwrites_a_newer_price() {
    for venue in ["bybit", "bitmex"] {
        let mut subject = Subject::new(venue);
        subject.quote(&named(venue, "a", "151", 300));
        let quote = subject.quote(&named(venue, "b", "150", 299));
        assert_eq!((quote.tick, quote.last), (2, Some(decimal("151"))));
        assert_eq!(subject.quote(&named(venue, "c", "152", 300)).last, Some(decimal("152")));
    }
}

#[test]
fn an_index_price_has_no_name_and_each_is_a_tick() {
    let mut subject = Subject::new("bitmex");
    let nobodys = "00000000-0000-0000-0000-000000000000";
    for (tick, id) in (1..).zip([nobodys, nobodys, ""]) {
        assert_eq!(subject.quote(&named("bitmex", id, "151", 300)).tick, tick);
    }
}

#[test]
fn a_batch_of_as_many_rows_as_a_venue_sends_is_read_whole_and_a_repeated_row_told() {
    for (venue, rows) in [("bybit", 1_024), ("bitmex", 1_024)] {
        let mut subject = Subject::new(venue);
        let row = |n: u32| {
            let message = named(venue, &uuid(n), &format!("{}.5", 100 + n), 121);
            let start = message.rfind('[').unwrap() + 1;
            message[start..message.rfind(']').unwrap()].to_owned()
        };
        let whole = |range: std::ops::Range<u32>| {
            let rows: Vec<String> = range.map(row).collect();
            let shell = named(venue, "x", "1", 121);
            let (start, end) = (shell.rfind('[').unwrap() + 1, shell.rfind(']').unwrap());
            format!("{}{}{}", &shell[..start], rows.join(","), &shell[end..])
        };
        assert_eq!(subject.read(whole(0..rows)), Class::Quote);
        assert_eq!(subject.events.len(), rows as usize);
        assert!(subject.oddities.is_empty());
        // As after a reconnect: half of it was told before.
        assert_eq!(subject.read(whole(rows / 2..rows + rows / 2)), Class::Quote);
        assert_eq!(subject.events.len(), rows as usize / 2);
        assert_eq!(subject.oddities, [Oddity::RepeatedRow]);
        let Some(Event::Quote { quote, .. }) = subject.events.last() else { panic!() };
        assert_eq!(quote.tick, u64::from(rows) * 3 / 2);
        assert_eq!(quote.last, Some(decimal(&format!("{}.5", 100 + rows + rows / 2 - 1))));
        assert_eq!(subject.refused(&whole(0..rows)), Refusal::DuplicateTrade);
    }
}

#[test]
fn a_combinations_trade_is_one_of_the_combination() {
    let mut subject = Subject::new("deribit");
    let combination = r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"trades.X-CS.raw","data":[{"timestamp":1718000000121,"price":0.0639,"amount":0.1,"direction":"sell","instrument_name":"X-CS","trade_seq":1,"legs":[{"timestamp":1718000000121,"price":0.0174,"amount":0.1,"direction":"buy","instrument_name":"X-C","trade_seq":8,"trade_id":"3"}],"trade_id":"4"}]}}"#;
    assert_eq!(subject.quote(combination).last, Some(decimal("0.0639")));
    assert_eq!(subject.instruments.len(), 1);
}
