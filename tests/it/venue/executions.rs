//! Fills of venues whose executions have names instead of rising ids, and of our own lines.

use tidegate::market::Volume;
use tidegate::market::fill::Side;
use tidegate::venue::{Class, Event, Oddity, Refusal, Unused};

use super::samples::binance::{FUTURES_FILL, SPOT_FILL};
use super::samples::{bitmex, bybit, lines};
use super::subject::{RECEIVED, Subject, decimal, get, insert, remove, set};

/// How each venue names what a fill is made of.
struct Dialect {
    venue: &'static str,
    message: &'static str,
    id: &'static str,
    price: &'static str,
    quantity: &'static str,
    side: &'static str,
    symbol: &'static str,
}

const DIALECTS: [Dialect; 5] = [
    Dialect {
        venue: "binance",
        message: SPOT_FILL,
        id: "t",
        price: "L",
        quantity: "l",
        side: "S",
        symbol: "s",
    },
    Dialect {
        venue: "binance-usdm",
        message: FUTURES_FILL,
        id: "t",
        price: "L",
        quantity: "l",
        side: "S",
        symbol: "s",
    },
    Dialect {
        venue: "bybit",
        message: bybit::FILL,
        id: "execId",
        price: "execPrice",
        quantity: "execQty",
        side: "side",
        symbol: "symbol",
    },
    Dialect {
        venue: "bitmex",
        message: bitmex::FILL,
        id: "execID",
        price: "lastPx",
        quantity: "lastQty",
        side: "side",
        symbol: "symbol",
    },
    Dialect {
        venue: "fills",
        message: lines::FILL,
        id: "id",
        price: "price",
        quantity: "quantity",
        side: "side",
        symbol: "instrument",
    },
];

impl Dialect {
    /// Whether executions have names.
    fn named(&self) -> bool {
        !self.venue.starts_with("binance")
    }

    /// A report of one execution, of an account.
    fn report(
        &self,
        account: &str,
        id: u64,
        side: Side,
        price: &str,
        quantity: &str,
        symbol: &str,
    ) -> String {
        let word = match (side, self.venue) {
            (Side::Buy, "binance" | "binance-usdm") => "\"BUY\"",
            (Side::Sell, "binance" | "binance-usdm") => "\"SELL\"",
            (Side::Buy, "fills") => "\"buy\"",
            (Side::Sell, "fills") => "\"sell\"",
            (Side::Buy, _) => "\"Buy\"",
            (Side::Sell, _) => "\"Sell\"",
        };
        let id = if self.named() { format!("\"{id:036x}\"") } else { id.to_string() };
        let symbol = if self.venue == "fills" {
            format!("\"binance:{symbol}\"")
        } else {
            format!("\"{symbol}\"")
        };
        let message = set(self.message, self.id, &id);
        let message = set(&message, self.price, &format!("\"{price}\""));
        let message = set(&message, self.quantity, &format!("\"{quantity}\""));
        let message = set(&set(&message, self.side, word), self.symbol, &symbol);
        if self.message.contains("\"account\":") {
            set(&message, "account", &format!("\"{account}\""))
        } else {
            let beside = if self.venue == "bybit" { "side" } else { "E" };
            insert(&message, beside, &format!("\"account\":\"{account}\""))
        }
    }
}

fn named() -> impl Iterator<Item = &'static Dialect> {
    DIALECTS.iter().filter(|dialect| dialect.named())
}

#[test]
fn an_execution_is_a_fill_of_its_account() {
    for (message, venue, account, name, side, quantity) in [
        (bybit::FILL, "bybit", "desk-1", "bybit:SOLUSDT", Side::Buy, "0.5"),
        (bitmex::FILL, "bitmex", "1234567", "bitmex:SOLUSDT", Side::Buy, "500"),
        (lines::FILL, "fills", "desk-7", "bybit:SOLUSDT", Side::Buy, "0.5"),
    ] {
        let mut subject = Subject::new(venue);
        let fill = subject.fill(message);
        assert!(subject.oddities.is_empty());
        assert_eq!(subject.name(), name);
        assert_eq!(subject.accounts.name(fill.account), account);
        assert_eq!((fill.side, fill.quantity), (side, decimal(quantity)));
        assert_eq!(fill.price, decimal("151.74"));
        let times = (fill.venue_time, fill.receive_time);
        assert_eq!(times, (Some(1_718_000_000_121_000_000), RECEIVED));
        assert_eq!(subject.refused(message), Refusal::DuplicateFill);
        subject.codec.new_session();
        subject.fill(message);
    }
}

#[test]
fn the_account_is_the_messages_own_else_the_feeds_else_there_is_none() {
    let mut subject = Subject::with("bybit", None, 10);
    assert_eq!(subject.refused(bybit::FILL), Refusal::NoAccount);
    let outer = bybit::FILL.replacen("{\"topic\"", "{\"account\":\"desk-8\",\"topic\"", 1);
    let fill = subject.fill(&outer);
    assert_eq!(subject.accounts.name(fill.account), "desk-8");
    let inner = insert(&outer, "side", "\"account\":\"desk-9\"");
    let fill = subject.fill(&inner);
    assert_eq!(subject.accounts.name(fill.account), "desk-9", "the nearest word goes first");
    for (dialect, blank) in [(&DIALECTS[3], "null"), (&DIALECTS[4], "\"\"")] {
        let mut subject = Subject::with(dialect.venue, None, 10);
        let without = set(dialect.message, "account", blank);
        assert_eq!(subject.refused(&without), Refusal::NoAccount);
        assert_eq!(subject.refused(&remove(dialect.message, "account")), Refusal::NoAccount);
        let mut subject = Subject::new(dialect.venue);
        let fill = subject.fill(&without);
        assert_eq!(subject.accounts.name(fill.account), "desk-1");
        let bad = set(dialect.message, "account", "\"a b\"");
        assert_eq!(subject.refused(&bad), Refusal::BadAccount);
    }
}

#[test]
fn only_an_execution_of_the_accounts_own_with_a_quantity_counts() {
    let mut subject = Subject::new("bybit");
    for kind in ["AdlTrade", "BustTrade", "Delivery", "Settle", "Funding", "MovePosition"] {
        let edited = set(bybit::FILL, "execType", &format!("\"{kind}\""));
        assert_eq!(subject.read(&edited), Class::Unused(Unused::Calculated));
    }
    assert_eq!(
        subject.read(set(bybit::FILL, "execType", "\"Novel\"")),
        Class::Unused(Unused::Order)
    );
    assert_eq!(subject.oddities, [Oddity::UnknownValue]);
    for kind in ["BlockTrade", "FutureSpread"] {
        let edited = set(bybit::FILL, "execType", &format!("\"{kind}\""));
        subject.fill(&set(&edited, "execId", &format!("\"{kind}\"")));
    }
    // The fast stream says no type, and tells the same executions.
    let fast = remove(&bybit::FILL.replace("\"execution\"", "\"execution.fast\""), "execType");
    subject.fill(&fast);
    assert_eq!(subject.refused(bybit::FILL), Refusal::DuplicateFill);

    let mut subject = Subject::new("bitmex");
    for kind in ["New", "Canceled", "Replaced", "Rejected", "Restated"] {
        let edited = set(bitmex::FILL, "execType", &format!("\"{kind}\""));
        assert_eq!(subject.read(&edited), Class::Unused(Unused::Order), "a cancel with a quantity");
    }
    for kind in ["Funding", "Settlement", "Liquidation", "Bankruptcy"] {
        let edited = set(bitmex::FILL, "execType", &format!("\"{kind}\""));
        assert_eq!(subject.read(&edited), Class::Unused(Unused::Calculated));
    }
    for dialect in named() {
        let mut subject = Subject::new(dialect.venue);
        for zero in ["0", "\"0.000\"", "\"-0\""] {
            let edited = set(dialect.message, dialect.quantity, zero);
            assert_eq!(subject.read(&edited), Class::Unused(Unused::Order));
        }
        assert!(subject.instruments.is_empty());
    }
}

#[test]
fn a_refused_fill_is_not_remembered() {
    for dialect in named() {
        let mut subject = Subject::new(dialect.venue);
        for (member, value, expected) in [
            (dialect.quantity, "\"\"", Refusal::MissingField),
            (dialect.quantity, "\"-1\"", Refusal::NegativeSize),
            (dialect.quantity, "\"NaN\"", Refusal::BadNumber),
            (dialect.price, "null", Refusal::MissingField),
            (dialect.price, "\"1e99\"", Refusal::NumberTooLong),
            (dialect.price, "{}", Refusal::WrongType),
            (dialect.id, "null", Refusal::MissingField),
            (dialect.id, "\"\"", Refusal::MissingField),
            (dialect.id, "[]", Refusal::WrongType),
            (dialect.side, "\"HOLD\"", Refusal::BadSide),
            (dialect.side, "5", Refusal::WrongType),
            (dialect.symbol, "\"\"", Refusal::BadSymbol),
        ] {
            let edited = set(dialect.message, member, value);
            assert_eq!(subject.refused(&edited), expected, "{member} {value}");
        }
        for member in [dialect.quantity, dialect.price, dialect.id, dialect.side, dialect.symbol] {
            let edited = remove(dialect.message, member);
            assert_eq!(subject.refused(&edited), Refusal::MissingField, "{member}");
        }
        let long = "\"0.1234567890123456789012345678\"";
        let overflow = set(&set(dialect.message, dialect.quantity, long), dialect.price, long);
        assert_eq!(subject.refused(&overflow), Refusal::Overflow);
        subject.fill(dialect.message);
        // A time that cannot be is told and takes nothing away.
        let time = match dialect.venue {
            "bybit" => "execTime",
            "bitmex" => "timestamp",
            _ => "time",
        };
        if dialect.venue != "bitmex" {
            subject.codec.new_session();
            let fill = subject.fill(&set(dialect.message, time, "\"1718000000121000\""));
            assert_eq!(fill.venue_time, None);
            assert_eq!(subject.oddities, [Oddity::ImplausibleTime]);
        }
    }
}

#[test]
fn several_executions_in_one_message_each_count_and_a_bad_one_is_refused_alone() {
    for dialect in named().filter(|dialect| dialect.venue != "fills") {
        let row = |message: &str| {
            let start = message.find("\"data\":[").unwrap() + 8;
            message[start..message.rfind("]}").unwrap()].to_owned()
        };
        let rows = [
            row(dialect.message),
            row(&set(dialect.message, dialect.id, "\"second\"")),
            row(&set(&set(dialect.message, dialect.id, "\"third\""), dialect.price, "\"NaN\"")),
            row(dialect.message),
        ];
        let message = dialect.message.replace(&row(dialect.message), &rows.join(","));
        let mut subject = Subject::new(dialect.venue);
        assert_eq!(subject.read(&message), Class::Fill);
        assert_eq!(subject.events.len(), 2);
        assert_eq!(subject.oddities, [Oddity::RepeatedRow, Oddity::RefusedRow]);
        assert!(subject.codec.last_problem().unwrap().starts_with("bad_number"));
        assert_eq!(subject.refused(&message.replace("NaN", "Inf")), Refusal::BadNumber);
    }
}

/// A trade to be told as an execution.
struct Traded {
    id: u64,
    price: String,
    quantity: String,
    buy: bool,
    symbol: String,
}

/// Tells each trade as an execution of the account that its id says, every seventh twice and every
/// eleventh late; answers what all accounts add up to, by symbol's instrument.
fn conserved(dialect: &Dialect, trades: &[Traded]) -> (u64, String, String, String) {
    let mut subject = Subject::with(dialect.venue, None, 1_000);
    let mut volumes = std::collections::HashMap::<_, Volume>::new();
    let mut late: Option<String> = None;
    for trade in trades {
        let side = if trade.buy { Side::Buy } else { Side::Sell };
        let account = format!("desk-{}", trade.id * 7 % 5);
        let (price, quantity) = (&trade.price, &trade.quantity);
        let report = dialect.report(&account, trade.id, side, price, quantity, &trade.symbol);
        let mut due = vec![report.clone()];
        if trade.id % 11 == 0 && late.is_none() {
            late = due.pop();
        } else if let Some(late) = late.take() {
            due.push(late);
        }
        for report in &due {
            let fill = subject.fill(report);
            let volume = volumes.entry((fill.account, fill.instrument)).or_default();
            volume.add(Volume::of(&fill).unwrap()).unwrap();
            if trade.id % 7 == 0 {
                assert_eq!(subject.refused(report), Refusal::DuplicateFill);
            }
        }
    }
    if let Some(report) = late {
        let fill = subject.fill(&report);
        let volume = volumes.entry((fill.account, fill.instrument)).or_default();
        volume.add(Volume::of(&fill).unwrap()).unwrap();
    }
    let mut total = Volume::default();
    for volume in volumes.values() {
        total.add(*volume).unwrap();
    }
    assert!(volumes.len() >= 5.min(trades.len()), "several accounts had their part");
    (total.fills, total.bought.to_string(), total.sold.to_string(), total.notional.to_string())
}

/// What the trades themselves add up to, by integers alone.
fn total(trades: &[Traded]) -> (u64, String, String, String) {
    let fixed = |text: &str, places: usize| -> i128 {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        format!("{whole}{fraction:0<places$}").parse().unwrap()
    };
    let written = |value: i128, places: usize| {
        let text = format!("{value:0>width$}", width = places + 1);
        let (whole, fraction) = text.split_at(text.len() - places);
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
    };
    let (mut bought, mut sold, mut notional) = (0, 0, 0);
    for trade in trades {
        let (price, quantity) = (fixed(&trade.price, 8), fixed(&trade.quantity, 8));
        *(if trade.buy { &mut bought } else { &mut sold }) += quantity;
        notional += price * quantity;
    }
    (trades.len() as u64, written(bought, 8), written(sold, 8), written(notional, 16))
}

#[test]
fn what_all_accounts_add_up_to_is_what_was_traded() {
    let trades: Vec<Traded> = (1..4_000_u64)
        .map(|n| Traded {
            id: n,
            price: format!("{}.{:08}", 60_000 + n % 977, n * 7_919 % 100_000_000),
            quantity: format!("{}.{:08}", n % 3, n * 104_729 % 99_999_989 + 1),
            buy: n % 3 != 0,
            symbol: if n % 2 == 0 { "BTCUSDT" } else { "ETHUSDT" }.to_owned(),
        })
        .collect();
    for dialect in &DIALECTS {
        assert_eq!(conserved(dialect, &trades), total(&trades), "{}", dialect.venue);
    }
}

#[test]
fn what_all_accounts_add_up_to_is_what_a_recording_says_was_traded() {
    let Some(recordings) = super::recordings::binance() else {
        eprintln!("SKIPPED: no recordings at hand, so only generated trades were added up");
        return;
    };
    for (recording, dialect) in recordings.iter().filter(|r| r.venue != "binance-cm").zip([2, 3, 4])
    {
        let mut trades = Vec::new();
        for (_, message) in recording.messages() {
            if memchr::memmem::find(message, b"\"e\":\"trade\"").is_none() {
                continue;
            }
            let message: serde_json::Value = serde_json::from_slice(message).unwrap();
            let data = &message["data"];
            let text = |member: &str| data[member].as_str().unwrap().to_owned();
            if data["X"].as_str().is_some_and(|kind| kind != "MARKET") {
                continue;
            }
            trades.push(Traded {
                id: data["t"].as_u64().unwrap(),
                price: text("p"),
                quantity: text("q"),
                buy: data["m"] == false,
                symbol: text("s"),
            });
        }
        trades.truncate(8_000);
        assert!(trades.len() > 100, "{}", recording.name);
        let own = usize::from(recording.venue != "binance");
        for dialect in [own, dialect] {
            let dialect = &DIALECTS[dialect];
            assert_eq!(conserved(dialect, &trades), total(&trades), "{}", recording.name);
        }
    }
}

#[test]
fn nothing_is_allocated_for_a_named_fill_in_steady_state() {
    for dialect in named() {
        let mut subject = Subject::new(dialect.venue);
        let messages: Vec<String> =
            (0..200).map(|n| set(dialect.message, dialect.id, &format!("\"e-{n}\""))).collect();
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
        assert_eq!(count, 0, "{}", dialect.venue);
    }
}

#[test]
fn a_fill_of_our_own_line_stands_beside_the_quotes_of_its_venue() {
    let mut subject = Subject::new("fills");
    let fill = subject.fill(lines::FILL);
    let Event::Fill(same) = subject.events[0] else { panic!() };
    assert_eq!(fill, same);
    assert_eq!(subject.instruments.find("bybit:SOLUSDT"), Some(fill.instrument));
    // A number is as good an id as a text, and the same one.
    subject.fill(&set(lines::FILL, "id", "17"));
    assert_eq!(subject.refused(&set(lines::FILL, "id", "\"17\"")), Refusal::DuplicateFill);
    assert_eq!(get(lines::FILL, "side"), "\"buy\"");
    assert_eq!(
        subject.fill(&set(&set(lines::FILL, "side", "\"SELL\""), "id", "17")).side,
        Side::Sell
    );
}
