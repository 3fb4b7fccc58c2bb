//! The admin server over loopback, on a gateway that runs and is fed as a feed feeds it.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod figures;
mod limits;
mod requests;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Map, Value};
use tidegate::clock::Clock;
use tidegate::config::{
    Key, Part, PartError, ReloadError, ReloadReport, Reloader, Settings, Source, VENUES,
};
use tidegate::gateway::{Gateway, LedgerStage, Limits, Parts};
use tidegate::ingest::{Feeds, Intake};
use tidegate::market::{Accounts, FeedId, InstrumentId, Instruments, VolumeKeys};
use tidegate::ops::{self, Admin, Outcomes, Readiness, Reload};
use tidegate::venue::{self, Context};
use tidegate::worker::{Coalescing, CoalescingSpWorker, Conflation, ConflationSpWorker, Worker};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use tokio_util::sync::CancellationToken;

use crate::support_http::{self as http, Answer};

const FEED: &str = "[[feed]]\nname = \"spot\"\nvenue = \"binance\"\nlines = \"-\"\n";

/// Everything between a message and an operator.
struct Running {
    admin: SocketAddr,
    gateway: Arc<Gateway>,
    readiness: Arc<Readiness>,
    config: Arc<Config>,
    clock: Clock,
    intake: Option<Intake<LedgerStage>>,
    _workers: (Worker<Conflation>, Worker<Coalescing>),
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
    subscribe_at: SocketAddr,
}

impl Running {
    async fn start() -> Self {
        let clock = Clock::system();
        let parts = Parts {
            clock: clock.clone(),
            instruments: Arc::new(Instruments::new(100)),
            accounts: Arc::new(Accounts::new(100)),
            volume_keys: Arc::new(VolumeKeys::new(100)),
            feeds: Arc::new(Feeds::new([("spot".into(), "binance".into())], clock.wall())),
        };
        let feed = parts.feeds.get(FeedId(0)).clone();
        let (accounts, keys) = (parts.accounts.clone(), parts.volume_keys.clone());
        let gateway = Arc::new(Gateway::start(parts, Limits::default(), 1).unwrap());
        let context = Context {
            instruments: gateway.instruments().clone(),
            accounts,
            feed: feed.id(),
            account: Some("desk-1".to_owned()),
        };
        let codec = venue::codec("binance", context).unwrap();
        let (quotes, conflation) = ConflationSpWorker::builder()
            .capacity(64)
            .start::<InstrumentId, _, _>(gateway.board_stage("spot"), CancellationToken::new())
            .unwrap();
        let (fills, coalescing) = CoalescingSpWorker::builder()
            .capacity(32)
            .start(gateway.ledger_stage("spot"), CancellationToken::new())
            .unwrap();
        let intake = Intake::new(codec, feed, quotes, fills, keys);
        let config = Arc::new(Config::new(gateway.clone(), clock.clone()));
        let readiness = Arc::new(Readiness::default());
        let router = ops::router(Admin {
            gateway: gateway.clone(),
            reload: config.clone(),
            readiness: readiness.clone(),
        });
        let stop = CancellationToken::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let admin = listener.local_addr().unwrap();
        let serving = tokio::spawn(ops::serve(listener, router, stop.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let subscribe_at = listener.local_addr().unwrap();
        tokio::spawn(gateway.listening(listener, stop.clone()));
        Self {
            admin,
            gateway,
            readiness,
            config,
            clock,
            intake: Some(intake),
            _workers: (conflation, coalescing),
            stop,
            serving,
            subscribe_at,
        }
    }

    /// Feeds messages as they come from the venue.
    fn feed(&mut self, messages: &[&str]) {
        let intake = self.intake.as_mut().unwrap();
        for message in messages {
            assert!(intake.message(message.as_bytes(), self.clock.wall(), self.clock.now()));
        }
    }

    /// Ends the feed and waits until what it gave has reached board and ledger.
    fn drain(&mut self) {
        for completion in self.intake.take().unwrap().complete() {
            assert!(completion.wait_timeout(Duration::from_secs(10)));
        }
    }

    async fn get(&self, path: &str) -> Answer {
        http::get(self.admin, path).await
    }

    async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    async fn patch(&self, body: &str) -> Answer {
        http::request(self.admin, "PATCH", "/v1/limits", &[], body.as_bytes()).await
    }

    async fn subscribe(&self) -> Client {
        let url = format!("ws://{}/v1/stream", self.subscribe_at);
        let (stream, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        let mut client = Client(stream);
        client.next("welcome").await;
        let text = r#"{"op":"subscribe","id":1,"instruments":["binance:*"]}"#;
        client.0.send(Message::text(text)).await.unwrap();
        client.next("ack").await;
        client
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        self.gateway.finish(Duration::from_millis(10));
    }
}

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    /// The next message of a type.
    async fn next(&mut self, kind: &str) -> Value {
        let found = async {
            loop {
                let Message::Text(text) = self.0.next().await.unwrap().unwrap() else { continue };
                let value: Value = serde_json::from_str(&text).unwrap();
                if value["type"] == kind {
                    return value;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), found).await.unwrap()
    }
}

/// The configuration as a program holds it.
struct Config {
    reloader: Mutex<Reloader>,
    outcomes: Mutex<Outcomes>,
    /// What the file says, or does not.
    text: Mutex<Option<String>>,
    part: Arc<GatewayPart>,
    clock: Clock,
}

impl Config {
    fn new(gateway: Arc<Gateway>, clock: Clock) -> Self {
        let source = Source::file("tidegate.toml", VENUES);
        let mut reloader = Reloader::new(source, FEED.as_bytes().to_vec()).unwrap();
        let part = Arc::new(GatewayPart { gateway, refuse: Mutex::new(false) });
        reloader.add_part(Shared(part.clone()));
        Self {
            reloader: Mutex::new(reloader),
            outcomes: Mutex::default(),
            text: Mutex::new(Some(FEED.to_owned())),
            part,
            clock,
        }
    }

    fn write(&self, text: &str) {
        *self.text.lock().unwrap() = Some(format!("{text}\n{FEED}"));
    }
}

impl Reload for Config {
    fn reload(&self) -> Result<ReloadReport, ReloadError> {
        let text = self.text.lock().unwrap().clone();
        let content =
            text.map(String::into_bytes).ok_or_else(|| std::io::ErrorKind::NotFound.into());
        let outcome = self.reloader.lock().unwrap().reload(content);
        self.outcomes.lock().unwrap().record(&outcome, self.clock.wall());
        outcome
    }

    fn retune(&self, changes: &Map<String, Value>) -> Result<ReloadReport, ReloadError> {
        self.reloader.lock().unwrap().retune(changes)
    }

    fn effective(&self) -> Settings {
        self.reloader.lock().unwrap().effective().clone()
    }

    fn outcomes(&self) -> Outcomes {
        self.outcomes.lock().unwrap().clone()
    }
}

/// The gateway as a follower of the settings, for the keys that these tests change.
struct GatewayPart {
    gateway: Arc<Gateway>,
    refuse: Mutex<bool>,
}

struct Shared(Arc<GatewayPart>);

impl Part for Shared {
    fn name(&self) -> &str {
        "gateway"
    }

    fn apply(&self, _: &Settings, new: &Settings, changed: &[Key]) -> Result<(), PartError> {
        if *self.0.refuse.lock().unwrap() {
            return Err("told to refuse".into());
        }
        let has = |key: &str| changed.iter().any(|changed| *changed == *key);
        self.0.gateway.control().change(|limits| {
            limits.capacity = new.subscriber.capacity as usize;
            limits.max_hz = f64::from(new.subscriber.max_hz);
            limits.max_subscribers = new.gateway.max_subscribers as usize;
            limits.stall_timeout = new.subscriber.stall_timeout;
            (has("subscriber.capacity"), has("subscriber.max_hz"))
        });
        Ok(())
    }
}

/// Tries again until a condition holds: what other threads do takes its time.
async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

const BOOK: &str =
    r#"{"u":1,"s":"BTCUSDT","b":"61837.63000000","B":"3.78826000","a":"61837.64000000","A":"0"}"#;
const BOOK_AGAIN: &str =
    r#"{"u":2,"s":"BTCUSDT","b":"61837.70000000","B":"1.00000000","a":null,"A":null}"#;
const ONE_SIDED: &str = r#"{"u":1,"s":"ETHUSDT","b":"2500.10","B":"1.0","a":"","A":""}"#;
const LATE: &str =
    r#"{"u":1,"s":"BTCUSDT","b":"1.00000000","B":"1.00000000","a":"2.00000000","A":"1"}"#;
const FILL: &str = r#"{"e":"executionReport","E":1723161256313,"s":"BTCUSDT","S":"BUY","q":"0.5","p":"100.10","x":"TRADE","X":"FILLED","i":1,"l":"0.50","z":"0.5","L":"100.10","T":1723161256313,"t":11}"#;
const SOLD: &str = r#"{"e":"executionReport","E":1723161256314,"s":"BTCUSDT","S":"SELL","q":"0.5","p":"100.10","x":"TRADE","X":"FILLED","i":2,"l":"0.25","z":"0.5","L":"100.10","T":1723161256314,"t":12}"#;
