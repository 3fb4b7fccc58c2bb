//! Recordings and line feeds through the whole program: the last values, the ticks, the accounts.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use crate::serve_support::{Client, FREE_PORTS, Naive, Server, eventually, simulated};

fn recording(venue: &str, file: &Path) -> String {
    format!(
        "{FREE_PORTS}[[feed]]\nname = \"f\"\nvenue = \"{venue}\"\nrecording = [{file:?}]\n\
         speed = \"max\"\nstart = \"first_subscriber\"\n"
    )
}

/// Plays a feed to its end and holds what a subscriber of everything saw against the fold.
async fn plays(server: &Server, venue: &str, naive: &Naive) {
    let mut client = Client::connect(server).await;
    client.subscribe(&format!("{venue}:*")).await;
    client.until("the end", |seen| seen.health.get("f").is_some_and(|h| h == "ended")).await;
    client
        .until("the last values", |seen| {
            let ticks = seen.quotes.values().map(|quote| quote["tick"].as_u64().unwrap());
            ticks.sum::<u64>() >= naive.ticks()
        })
        .await;
    naive.assert_is(&client.seen);
    accounts_agree(server, &client, naive).await;
    let feeds = server.json("/v1/feeds").await;
    assert_eq!((&feeds[0]["health"], &feeds[0]["reason"]), (&"stale".into(), &"ended".into()));
    assert_eq!(feeds[0]["messages"]["quote"], naive.ticks());
    let shown = server.json("/v1/instruments").await;
    for one in shown.as_array().unwrap() {
        let seen = &client.seen.quotes[one["instrument"].as_str().unwrap()];
        for field in ["tick", "bid", "ask", "last", "venue_time", "receive_time"] {
            assert_eq!(one[field], seen[field], "{one}");
        }
    }
}

/// The gateway's accounts of a subscriber of everything are the subscriber's own recount.
async fn accounts_agree(server: &Server, client: &Client, naive: &Naive) {
    let accounts = server.accounts(&client.seen.id).await;
    let of = |key: &str| accounts[key].as_u64().unwrap();
    assert_eq!(of("received_ticks"), of("delivered") + of("conflated") + of("pending"));
    assert_eq!(of("delivered"), client.seen.delivered);
    assert_eq!(of("conflated"), client.seen.conflated);
    assert_eq!((of("pending"), of("withdrawn")), (0, 0));
    assert_eq!(of("instruments"), naive.0.len() as u64);
}

#[tokio::test]
async fn a_simulated_recording_ends_in_its_last_values_digit_for_digit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    let (messages, simulator) = simulated(&file, 10, 2_000);
    let mut naive = Naive::default();
    messages.iter().for_each(|text| naive.take("binance", text));
    assert_eq!(naive.ticks(), simulator.ticks().map(|(_, ticks)| ticks).sum::<u64>());
    let config = recording("binance", &file);
    plays(&Server::start_in(folder, &config), "binance", &naive).await;
}

#[tokio::test]
async fn real_recordings_end_in_their_last_values_digit_for_digit() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().map(|folder| folder.join("shared/feeds")).find(|p| p.is_dir());
    let Some(folder) = found else {
        eprintln!("SKIPPED: no folder shared/feeds with real recordings was found");
        return;
    };
    for (venue, file) in [
        ("binance", "spot/btcusdt_20240808.gz"),
        ("binance", "spot/ethusdt_20240808.gz"),
        ("binance-usdm", "usdm/btcusdt_20240808.gz"),
        ("binance-cm", "cm/btcusd_perp_20240808.gz"),
        ("binance-cm", "cm/ethusd_perp_20240808.gz"),
    ] {
        let file = folder.join("binance").join(file);
        let mut text = String::new();
        let packed = std::fs::File::open(&file).unwrap();
        flate2::read::MultiGzDecoder::new(packed).read_to_string(&mut text).unwrap();
        let mut naive = Naive::default();
        for line in text.lines().filter(|line| !line.contains("@depth")) {
            naive.take(venue, line.split_once(' ').unwrap().1);
        }
        plays(&Server::start(&recording(venue, &file)), venue, &naive).await;
    }
}

#[tokio::test]
async fn a_line_feed_goes_on_after_a_cut_and_its_health_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (messages, _) = simulated(&folder.path().join("unused"), 4, 2_000);
    let mut naive = Naive::default();
    messages.iter().for_each(|text| naive.take("binance", text));
    let publisher = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = publisher.local_addr().unwrap();
    let server = Server::start_in(
        folder,
        &format!(
            "{FREE_PORTS}[[feed]]\nname = \"f\"\nvenue = \"binance\"\nlines = \"tcp://{address}\"\n\
             start = \"first_subscriber\"\n"
        ),
    );
    let mut client = Client::connect(&server).await;
    client.subscribe("binance:*").await;
    let (first, second) = messages.split_at(messages.len() / 2);
    for (part, torn) in [(first, &second[0][..40]), (second, "")] {
        let mut connection = accept(&publisher).await;
        client.until("live", |seen| seen.health.get("f").is_some_and(|h| h == "live")).await;
        let text = part.iter().fold(String::new(), |text, line| text + line + "\n") + torn;
        connection.write_all(text.as_bytes()).unwrap();
        drop(connection);
        client
            .until("stale", |seen| seen.health.get("f").is_some_and(|h| h == "disconnected"))
            .await;
    }
    client
        .until("the last values", |seen| {
            let ticks = seen.quotes.values().map(|quote| quote["tick"].as_u64().unwrap());
            ticks.sum::<u64>() >= naive.ticks()
        })
        .await;
    naive.assert_is(&client.seen);
    let told: Vec<&str> = client.seen.healths.iter().map(String::as_str).collect();
    let lives = told.iter().filter(|health| **health == "live").count();
    assert_eq!(lives, 2, "{told:?}");
    accounts_agree(&server, &client, &naive).await;
    eventually("the feed's figures", async || {
        let feeds = server.json("/v1/feeds").await;
        feeds[0]["lines"]["bad"]["torn"]["count"] == 1 && feeds[0]["reconnects"] == 1
    })
    .await;
}

/// The next connection of the feed, without blocking the client beside it.
async fn accept(publisher: &TcpListener) -> std::net::TcpStream {
    let publisher = publisher.try_clone().unwrap();
    tokio::task::spawn_blocking(move || publisher.accept().unwrap().0).await.unwrap()
}

#[tokio::test]
async fn volumes_are_the_generators_own_totals_whoever_is_slow_and_whatever_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    let (_, simulator) = simulated(&file, 4, 10_000);
    // Three accounts, each in many instruments.
    let ports = FREE_PORTS.replace("[admin]", "max_known_accounts = 3\n[admin]");
    let config = |capacity: usize| {
        format!(
            "{ports}[subscriber]\ncapacity = {capacity}\n\
             [[feed]]\nname = \"f\"\nvenue = \"binance\"\nrecording = [{file:?}]\n\
             speed = 2\nstart = \"first_subscriber\"\n"
        )
    };
    let server = Server::start_in(folder, &config(8));
    // This one says what it wants and reads nothing more.
    let mut deaf = Client::connect(&server).await;
    deaf.say(r#"{"op":"subscribe","channel":"volume","accounts":["*"]}"#).await;
    deaf.say(r#"{"op":"subscribe","instruments":["binance:*"]}"#).await;
    let mut client = Client::connect(&server).await;
    client.subscribe_volume().await;
    client.subscribe("binance:*").await;
    let mut rounds = 0_usize;
    while client.seen.health.get("f").is_none_or(|health| health != "ended") {
        rounds += 1;
        client.read_for(std::time::Duration::from_millis(20)).await;
        match rounds % 3 {
            0 => drop(server.patch(&format!(r#"{{"capacity":{}}}"#, rounds % 5)).await),
            1 => server.save(config(1 + rounds % 7).as_bytes()),
            _ => assert_eq!(server.reload().await.status, 200),
        }
        assert!(rounds < 5_000, "the recording does not end");
    }
    assert!(rounds > 10, "{rounds}");
    server.patch(r#"{"capacity":8}"#).await;
    let expected: Vec<_> = simulator.account_totals().cloned().collect();
    let fills: u64 = expected.iter().map(|total| total.fills).sum();
    assert!(fills > 300, "{fills}");
    client
        .until("all fills", |seen| {
            seen.volumes.values().map(|one| one["fills"].as_u64().unwrap()).sum::<u64>() >= fills
        })
        .await;
    let told = server.json("/v1/volumes").await;
    for key in ["fills_in", "dispatched_fills", "folded_fills"] {
        assert_eq!(told[key], fills, "{key}");
    }
    assert_eq!(told["volumes"].as_array().unwrap().len(), expected.len());
    for total in &expected {
        let name = format!("binance:{}", total.symbol);
        let shown = told["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["account"] == *total.account && one["instrument"] == *name);
        let sent = &client.seen.volumes[&(total.account.clone(), name)];
        for volume in [shown.unwrap(), sent] {
            let sum = |key: &str| eighths(volume[key].as_str().unwrap());
            assert_eq!(volume["fills"], total.fills);
            assert_eq!((sum("bought"), sum("sold")), (total.bought, total.sold));
            assert_eq!(sum("notional"), total.notional);
        }
    }
    assert_eq!(client.seen.backwards, 0);
    drop(deaf);
}

/// A decimal text in units of the eighth place, which is as fine as the simulator is.
fn eighths(text: &str) -> u128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    assert!(fraction.len() <= 8, "{text}");
    format!("{whole}{fraction:0<8}").parse().unwrap()
}
