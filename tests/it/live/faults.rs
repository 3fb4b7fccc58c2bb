//! Forced faults: the gateway comes back to the venue's state each time, and loses no fill.

use std::time::Duration;

use tidegate::app::mock::{End, Faults, MockVenue};
use tidegate::clock::{Clock, Instant};

use super::{config, health, held, instrument, mock, quote};
use crate::serve_support::{Server, eventually};

/// How soon after a venue is back its state must be there: the longest wait to connect, and two
/// seconds. The short run, which shares its machine with a thousand other tests, is more patient; both
/// say what it took.
const BACK_WITHIN: Duration = Duration::from_millis(200 + 2_000);

/// What Binance allows.
const REQUESTS_PER_S: u32 = 5;

#[derive(Clone, Copy, Debug)]
enum Fault {
    Cut,
    HalfClose,
    /// As each day.
    Close,
    /// The socket stands, pings come, and nothing else.
    Stall,
    /// The last message comes again and again.
    Repeat,
    /// Cut, and not let in for a while.
    TurnedAway,
    /// Cut, and the first requests are refused.
    Refused,
    Duplicate,
    Reorder,
}

const FAULTS: [Fault; 9] = [
    Fault::Cut,
    Fault::Duplicate,
    Fault::Close,
    Fault::Stall,
    Fault::Refused,
    Fault::HalfClose,
    Fault::Reorder,
    Fault::TurnedAway,
    Fault::Repeat,
];

/// The venue's truth: what it has published.
struct Market {
    mock: MockVenue,
    quotes: u64,
    fills: u64,
}

impl Market {
    fn tick(&mut self) {
        for _ in 0..3 {
            self.quotes += 1;
            self.mock.publish(&quote("BTCUSDT", self.quotes));
        }
        self.fills += 1;
        // Each fill is of a quantity of its own, so that one lost cannot be made up for by another
        // told twice.
        self.mock.publish(&format!(
            "{{\"e\":\"executionReport\",\"E\":1718000000124,\"s\":\"BTCUSDT\",\"S\":\"BUY\",\
             \"x\":\"TRADE\",\"X\":\"PARTIALLY_FILLED\",\"i\":5510,\"l\":\"{0}\",\"L\":\"2\",\
             \"T\":1718000000121,\"t\":{0},\"m\":false}}",
            self.fills
        ));
    }

    async fn is_known_to(&self, server: &Server) -> bool {
        let bid = format!("{}.0", self.quotes);
        let bought: u64 = (1..=self.fills).sum();
        instrument(server, "binance:BTCUSDT").await.is_some_and(|one| one["bid"] == bid.as_str())
            && volume(server).await == (self.fills, bought.to_string())
    }
}

async fn volume(server: &Server) -> (u64, String) {
    let volumes = server.json("/v1/volumes").await;
    let one = &volumes["volumes"][0];
    (one["fills"].as_u64().unwrap_or(0), one["bought"].as_str().unwrap_or_default().to_owned())
}

/// Forces so many faults one after another; after each the state must be there within `bound`.
async fn survive(count: usize, bound: Duration) {
    let clock = Clock::system();
    let mut market = Market { mock: mock("binance"), quotes: 0, fills: 0 };
    // After a break the venue sends fills from before it, overlapping.
    let well = Faults { resend: 200, requests_per_s: REQUESTS_PER_S, ..Faults::default() };
    market.mock.set_faults(well);
    let channels = ["bookTicker", "executionReport"];
    let server = Server::start(&config("binance", &market.mock.url(), &["BTCUSDT"], &channels));
    held(&market.mock, 2).await;
    let mut longest = Duration::ZERO;
    for round in 0..count {
        market.tick();
        let fault = FAULTS[round % FAULTS.len()];
        let back = inflict(fault, &mut market, &server, well, &clock).await;
        market.tick();
        // The market goes on, as markets do: a quiet one is another case.
        let market = tokio::sync::Mutex::new(&mut market);
        eventually(&format!("the state after {fault:?} in round {round}"), async || {
            let mut market = market.lock().await;
            let known = market.is_known_to(&server).await;
            if !known && clock.now().since(back) > Duration::from_millis(500) {
                market.quotes += 1;
                market.mock.publish(&quote("BTCUSDT", market.quotes));
                tokio::time::sleep(Duration::from_millis(100)).await;
                return market.is_known_to(&server).await;
            }
            known
        })
        .await;
        let market = market.into_inner();
        longest = longest.max(clock.now().since(back));
        assert_eq!(market.mock.seen().open, 1, "{fault:?}: one connection at a time");
        assert_eq!(health(&server).await.0, "live", "{fault:?}");
    }
    let seen = market.mock.seen();
    println!("{count} faults, {} connections, back within {longest:?}", seen.connections);
    assert!(longest < bound, "{longest:?}");
    assert_eq!(seen.over_rate, 0, "never faster than the venue allows");
    // The connection before may still be noticed as open in the moment the next is made.
    assert!(seen.most_open <= 2, "{}", seen.most_open);
}

/// Brings the fault about and ends it; answers when the venue was back.
async fn inflict(
    fault: Fault,
    market: &mut Market,
    server: &Server,
    well: Faults,
    clock: &Clock,
) -> Instant {
    let stale = async |what: &str| {
        eventually(&format!("{what} is noticed"), async || health(server).await.0 == "stale").await;
    };
    match fault {
        Fault::Cut => {
            market.mock.end(End::Cut);
            market.tick();
        }
        Fault::HalfClose => {
            market.mock.end(End::HalfClose);
            market.tick();
        }
        Fault::Close => {
            market.mock.end(End::Close(1001));
            market.tick();
        }
        Fault::Stall | Fault::Repeat => {
            let (stall, repeat) = (matches!(fault, Fault::Stall), matches!(fault, Fault::Repeat));
            market.mock.set_faults(Faults { stall, repeat, ..well });
            market.tick();
            stale("the silence").await;
            assert_eq!(health(server).await.1, "silent");
            market.mock.set_faults(well);
        }
        Fault::TurnedAway => {
            market.mock.set_faults(Faults { refuse_connections: true, ..well });
            market.mock.end(End::Cut);
            market.tick();
            stale("the break").await;
            let before = market.mock.seen().refused_connections;
            eventually("it is turned away", async || {
                market.mock.seen().refused_connections > before
            })
            .await;
            market.mock.set_faults(well);
        }
        Fault::Refused => {
            market.mock.set_faults(Faults { refuse_requests: 1, ..well });
            market.mock.end(End::Cut);
            market.tick();
        }
        Fault::Duplicate | Fault::Reorder => {
            let (duplicate, reorder) =
                (matches!(fault, Fault::Duplicate), matches!(fault, Fault::Reorder));
            market.mock.set_faults(Faults { duplicate, reorder, ..well });
            for _ in 0..4 {
                market.tick();
            }
            market.mock.set_faults(well);
        }
    }
    clock.now()
}

#[tokio::test]
async fn b20_b21_the_venues_state_is_there_again_after_every_kind_of_fault() {
    survive(FAULTS.len(), BACK_WITHIN + Duration::from_secs(5)).await;
}

#[tokio::test]
#[ignore = "takes some minutes"]
async fn the_venues_state_is_there_again_after_each_of_two_hundred_faults() {
    survive(200, BACK_WITHIN).await;
}

#[tokio::test]
async fn b19_a_hundred_topics_are_all_granted_after_three_drops_at_the_venues_pace() {
    let mock = mock("binance");
    mock.set_faults(Faults { requests_per_s: REQUESTS_PER_S, ..Faults::default() });
    let symbols: Vec<String> = (0..100).map(|n| format!("S{n}USDT")).collect();
    let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
    let server = Server::start(&config("binance", &mock.url(), &symbols, &["bookTicker"]));
    held(&mock, 100).await;
    for _ in 0..3 {
        let before = mock.seen().connections;
        mock.end(End::Cut);
        eventually("it is back", async || mock.seen().connections > before).await;
        held(&mock, 100).await;
    }
    assert_eq!(mock.seen().over_rate, 0);
    drop(server);
}
