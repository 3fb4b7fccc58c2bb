//! What only one venue does: its own names, its own duplicates, its own answers.

use tidegate::venue::{Class, Oddity, Outcome, Refusal, find};

use super::subject::{Subject, decimal};

#[test]
fn b14_kraken_has_one_instrument_for_every_spelling_of_its_two_interfaces() {
    let first =
        |pair: &str| format!(r#"[1,[["1.50","2","1718000000.121","s","l",""]],"trade","{pair}"]"#);
    let second = |pair: &str, id: u64| {
        format!(
            r#"{{"channel":"trade","data":[{{"symbol":"{pair}","price":1.50,"qty":2,"trade_id":{id},"timestamp":"2024-06-10T06:13:20.121Z"}}]}}"#
        )
    };
    for (pair, name) in [
        ("XBT/USD", "BTC/USD"),
        ("ETH/XBT", "ETH/BTC"),
        ("XDG/XBT", "DOGE/BTC"),
        ("ADA/EUR", "ADA/EUR"),
    ] {
        let mut subject = Subject::new("kraken");
        assert_eq!(subject.quote(&first(pair)).tick, 1);
        assert_eq!(subject.name(), format!("kraken:{name}"));
        assert_eq!(subject.quote(&second(name, 1)).tick, 2);
        assert_eq!(subject.quote(&second(pair, 2)).tick, 3, "an old name in the new interface");
        assert_eq!(subject.instruments.len(), 1);
    }
}

#[test]
fn krakens_ticker_without_a_time_gives_way_to_trades() {
    let mut subject = Subject::new("kraken");
    let ticker = |last: &str| {
        format!(
            r#"[1,{{"a":["152",1,"1"],"b":["151",1,"1"],"c":["{last}","1"]}},"ticker","SOL/USD"]"#
        )
    };
    let trade = |price: &str, time: &str| {
        format!(r#"[2,[["{price}","0.5","{time}","s","l",""]],"trade","SOL/USD"]"#)
    };
    assert_eq!(subject.quote(&ticker("151.1")).last, Some(decimal("151.1")));
    assert_eq!(subject.quote(&trade("151.2", "1718000000.5")).last, Some(decimal("151.2")));
    let quote = subject.quote(&ticker("151.1"));
    assert_eq!(
        (quote.tick, quote.last, quote.last_size),
        (3, Some(decimal("151.2")), Some(decimal("0.5")))
    );
    let quote = subject.quote(&trade("151.3", "1718000000.4"));
    assert_eq!((quote.tick, quote.last), (4, Some(decimal("151.2"))), "an older trade is a tick");
    // Two of one order at one instant are two trades.
    assert_eq!(subject.quote(&trade("151.4", "1718000000.5")).last, Some(decimal("151.4")));
    assert_eq!(subject.quote(&trade("151.4", "1718000000.5")).tick, 6);
}

#[test]
fn coinbase_tells_a_trade_in_two_channels_and_it_counts_once() {
    let ticker = |sequence: u64, trade: u64, price: &str| {
        format!(
            r#"{{"type":"ticker","sequence":{sequence},"product_id":"SOL-USD","price":"{price}","best_bid":"151","best_bid_size":"1","best_ask":"152","best_ask_size":"1","time":"2024-06-10T06:13:20.121Z","trade_id":{trade},"last_size":"2"}}"#
        )
    };
    let matched = |sequence: u64, trade: u64, price: &str| {
        format!(
            r#"{{"type":"match","trade_id":{trade},"side":"sell","size":"2","price":"{price}","product_id":"SOL-USD","sequence":{sequence},"time":"2024-06-10T06:13:20.121Z"}}"#
        )
    };
    let mut subject = Subject::new("coinbase");
    assert_eq!(subject.quote(&matched(10, 1, "151.5")).last, Some(decimal("151.5")));
    // Its ticker brings the sides, and not the trade again.
    let quote = subject.quote(&ticker(10, 1, "151.5"));
    assert_eq!((quote.tick, quote.bid), (2, Some(decimal("151"))));
    // The other way round the match has nothing left to tell.
    assert_eq!(subject.quote(&ticker(11, 2, "151.6")).last, Some(decimal("151.6")));
    assert_eq!(subject.refused(&matched(11, 2, "151.6")), Refusal::DuplicateTrade);
    // A ticker that comes late is late, whatever else came between.
    assert_eq!(subject.quote(&matched(15, 3, "151.7")).tick, 4);
    assert_eq!(subject.refused(&ticker(9, 0, "1")), Refusal::LateQuote);
    assert_eq!(subject.quote(&ticker(14, 2, "151.6")).last, Some(decimal("151.7")));
}

#[test]
fn an_old_coinbase_ticker_has_sides_without_sizes() {
    let mut subject = Subject::new("coinbase");
    let ticker = r#"{"type":"ticker","sequence":1,"product_id":"SOL-USD","price":"151.5","best_bid":"151.4","best_ask":"151.6","side":"buy","time":"2021-04-17T16:43:30.244075Z","trade_id":1,"last_size":"0.04"}"#;
    let quote = subject.quote(ticker);
    assert!(subject.oddities.is_empty());
    assert_eq!((quote.bid, quote.bid_size), (Some(decimal("151.4")), None));
    assert_eq!((quote.ask, quote.ask_size), (Some(decimal("151.6")), None));
    // Before the first trade of a product there is nothing of one.
    let fresh = r#"{"type":"ticker","sequence":1,"product_id":"NEW-USD","price":"0","best_bid":"1","best_ask":"2"}"#;
    let quote = subject.quote(fresh);
    assert_eq!((quote.tick, quote.last, quote.venue_time), (1, Some(decimal("0")), None));
    let blank = fresh.replace("\"1\"", "\"\"");
    assert_eq!(subject.quote(&blank).bid, None);
    assert_eq!(subject.oddities, [Oddity::Absent]);
}

#[test]
fn a_ticker_of_coinbase_advanced_is_as_old_as_its_message() {
    let mut subject = Subject::new("coinbase-advanced");
    let ticker = |second: u64, price: &str| {
        format!(
            r#"{{"channel":"ticker","timestamp":"2024-06-10T06:13:{second}.5Z","sequence_num":1,"events":[{{"type":"update","tickers":[{{"product_id":"SOL-USD","price":"{price}"}}]}}]}}"#
        )
    };
    let trades = |rows: &[(u64, u64, &str)]| {
        let row = |(id, second, price): &(u64, u64, &str)| {
            format!(
                r#"{{"product_id":"SOL-USD","trade_id":"{id}","price":"{price}","size":"2","time":"2024-06-10T06:13:{second}Z","side":"BUY"}}"#
            )
        };
        let rows: Vec<String> = rows.iter().map(row).collect();
        let rows = rows.join(",");
        format!(
            r#"{{"channel":"market_trades","timestamp":"2024-06-10T06:13:50Z","sequence_num":1,"events":[{{"type":"update","trades":[{rows}]}}]}}"#
        )
    };
    assert_eq!(subject.read(trades(&[(8, 20, "151.2"), (7, 19, "151.1")])), Class::Quote);
    assert_eq!(subject.quote(&ticker(20, "151.2")).last_size, Some(decimal("2")));
    let quote = subject.quote(&ticker(21, "151.3"));
    assert_eq!((quote.last, quote.last_size), (Some(decimal("151.3")), None));
    // The trade that the ticker had told comes later, with one before it: neither moves the price.
    assert_eq!(subject.read(trades(&[(10, 21, "151.3"), (9, 20, "151.25")])), Class::Quote);
    assert_eq!(subject.events.len(), 2);
    assert_eq!(subject.quote(&ticker(19, "1")).last, Some(decimal("151.3")));
    assert_eq!(subject.quote(&trades(&[(11, 23, "151.4")])).last, Some(decimal("151.4")));
}

#[test]
fn bitstamp_of_2015_names_the_event_before_its_data_and_no_market() {
    let mut subject = Subject::new("bitstamp");
    let quote =
        subject.quote(r#"trade {"price": 236.47, "amount": 1.7885566900000001, "id": 8111042}"#);
    assert_eq!(subject.name(), "bitstamp:btcusd");
    assert_eq!(quote.last_size, Some(decimal("1.7885566900000001")), "as sent");
    let quote = subject.quote(
        r#"order_book {"bids": [["236.47", "1.78855669"], ["236.20", "0.11168501"]], "asks": [["236.59", "3"]]}"#,
    );
    assert!(subject.oddities.is_empty());
    assert_eq!(
        (quote.tick, quote.bid, quote.ask),
        (2, Some(decimal("236.47")), Some(decimal("236.59")))
    );
    let again = r#"trade {"price": 1, "amount": 1, "id": 8111042}"#;
    assert_eq!(subject.refused(again), Refusal::DuplicateTrade);
    // The same market, as it is called today.
    let today = r#"{"event":"trade","channel":"live_trades_btcusd","data":{"id":9000000,"price":240,"amount":1}}"#;
    assert_eq!(subject.quote(today).tick, 3);
    assert_eq!(subject.instruments.len(), 1);
    let without =
        r#"{"event":"data","channel":"order_book","data":{"bids":[["1","1"]],"asks":[]}}"#;
    let quote = subject.quote(without);
    assert_eq!(
        (quote.tick, quote.bid, quote.ask),
        (4, Some(decimal("1")), None),
        "no asks are none"
    );
}

#[test]
fn b23_the_best_level_of_a_book_is_its_first_however_many_there_are() {
    for count in [1, 2, 100, 500] {
        let level = |start: &str| {
            let levels: Vec<String> =
                (0..count).map(|n| format!(r#"["{start}{n}","0.{n}"]"#)).collect();
            levels.join(",")
        };
        let mut subject = Subject::new("bitstamp");
        let quote = subject.quote(&format!(
            r#"{{"event":"data","channel":"order_book_solusd","data":{{"bids":[{}],"asks":[{}]}}}}"#,
            level("15"),
            level("16")
        ));
        assert_eq!((quote.bid, quote.bid_size), (Some(decimal("150")), Some(decimal("0.0"))));
        assert_eq!(quote.ask, Some(decimal("160")));
    }
}

/// Request, channel, symbol and outcome of each answer.
fn answers(venue: &str, message: &str) -> Vec<(String, String, String, Outcome)> {
    let text = |part: Option<String>| part.unwrap_or_default();
    let answers = find(venue).unwrap().answers(message.as_bytes());
    answers
        .into_iter()
        .map(|a| (text(a.request), text(a.channel), text(a.symbol), a.outcome))
        .collect()
}

#[test]
fn answers_say_which_channel_of_which_symbol_was_granted_or_refused() {
    let refused = |words: &str| Outcome::Refused(words.to_owned());
    for (venue, message, expected) in [
        ("binance", r#"{"result":null,"id":1}"#, vec![("1", "", "", Outcome::Done)]),
        (
            "binance-cm",
            r#"{"id":"a","error":{"code":2,"msg":"Invalid request"}}"#,
            vec![("a", "", "", refused("Invalid request"))],
        ),
        (
            "coinbase",
            r#"{"type":"subscriptions","channels":[{"name":"ticker","product_ids":["A","B"]},{"name":"status"}]}"#,
            vec![
                ("", "ticker", "A", Outcome::Held),
                ("", "ticker", "B", Outcome::Held),
                ("", "status", "", Outcome::Held),
            ],
        ),
        (
            "coinbase",
            r#"{"type":"subscriptions","channels":[]}"#,
            vec![("", "", "", Outcome::Held)],
        ),
        (
            "coinbase",
            r#"{"type":"error","message":"Failed to subscribe","reason":"X is not valid"}"#,
            vec![("", "", "", refused("Failed to subscribe: X is not valid"))],
        ),
        (
            "coinbase-advanced",
            r#"{"channel":"subscriptions","events":[{"subscriptions":{"ticker":["A"]}}]}"#,
            vec![("", "ticker", "A", Outcome::Held)],
        ),
        (
            "kraken",
            r#"{"method":"subscribe","result":{"channel":"ticker","symbol":"BTC/USD"},"success":true,"req_id":7}"#,
            vec![("7", "ticker", "BTC/USD", Outcome::Subscribed)],
        ),
        (
            "kraken",
            r#"{"error":"not supported","method":"subscribe","success":false,"symbol":"X/Y","req_id":7}"#,
            vec![("7", "", "X/Y", refused("not supported"))],
        ),
        (
            "kraken",
            r#"{"event":"subscriptionStatus","pair":"XBT/USD","status":"unsubscribed","subscription":{"name":"trade"},"reqid":8}"#,
            vec![("8", "trade", "BTC/USD", Outcome::Unsubscribed)],
        ),
        (
            "bitstamp",
            r#"{"event":"bts:subscription_succeeded","channel":"live_trades_btcusd","data":{}}"#,
            vec![("", "live_trades", "btcusd", Outcome::Subscribed)],
        ),
        (
            "bitstamp",
            r#"{"event":"bts:error","channel":"","data":{"code":null,"message":"Bad subscription string."}}"#,
            vec![("", "", "", refused("Bad subscription string."))],
        ),
        ("bitstamp", r#"{"event":"bts:heartbeat"}"#, vec![]),
        ("kraken", "pong", vec![]),
    ] {
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(request, channel, symbol, outcome)| {
                (request.to_owned(), channel.to_owned(), symbol.to_owned(), outcome)
            })
            .collect();
        assert_eq!(answers(venue, message), expected, "{message}");
    }
}

#[test]
fn a_venues_reason_is_cut_between_characters() {
    let long = "龙".repeat(1_000);
    let message = format!(r#"{{"type":"error","message":"{long}"}}"#);
    let [(_, _, _, Outcome::Refused(reason))] = &answers("coinbase", &message)[..] else {
        panic!()
    };
    assert!(reason.len() <= 500 && long.starts_with(reason.as_str()));
}
