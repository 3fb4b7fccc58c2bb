//! The program as a whole, from outside: a process, its two addresses, and clients of it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tidegate::clock::Clock;
use tidegate::feed::{Recorder, RecorderOptions, SimulateOptions, Simulator};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::cli::tidegate;
use crate::support_http::{self as http, Answer};

/// How long anything may take before a test gives up; generous, because machines are shared.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Ports that the system chooses.
pub(crate) const FREE_PORTS: &str =
    "[gateway]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n";

/// A running program. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) gateway: SocketAddr,
    pub(crate) admin: SocketAddr,
    folder: tempfile::TempDir,
}

impl Server {
    /// Serves a configuration out of a folder of its own.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), config)
    }

    /// Serves a configuration out of this folder.
    pub(crate) fn start_in(folder: tempfile::TempDir, config: &str) -> Self {
        std::fs::write(folder.path().join("t.toml"), config).unwrap();
        let file = folder.path().join("t.toml");
        let command = tidegate(&["serve", "--config", file.to_str().unwrap()]);
        Self::run(folder, command)
    }

    /// Runs a command that ends in the program, and waits until it says that it is ready.
    pub(crate) fn run(folder: tempfile::TempDir, mut command: Command) -> Self {
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let addresses: Vec<SocketAddr> = line
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter_map(|word| word.parse().ok())
            .collect();
        let [gateway, admin] = addresses[..] else {
            let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
            panic!("not ready: {line:?}\n{log}");
        };
        Self { child, gateway, admin, folder }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("t.toml")
    }

    /// Replaces the configuration as an editor does.
    pub(crate) fn save(&self, config: &[u8]) {
        let new = self.folder.path().join("t.toml.new");
        std::fs::write(&new, config).unwrap();
        std::fs::rename(new, self.file()).unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        signal_times(self.id(), signal, 1);
    }

    /// Waits for the end of the process.
    pub(crate) async fn exited(&mut self) -> ExitStatus {
        let clock = Clock::system();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(clock.now().as_nanos() < PATIENCE.as_nanos() as u64, "it does not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        http::get(self.admin, path).await
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    pub(crate) async fn patch(&self, body: &str) -> Value {
        let answer = http::request(self.admin, "PATCH", "/v1/limits", &[], body.as_bytes()).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    pub(crate) async fn reload(&self) -> Answer {
        http::request(self.admin, "POST", "/-/reload", &[], b"").await
    }

    /// The accounts of one subscriber.
    pub(crate) async fn accounts(&self, id: &str) -> Value {
        let all = self.json("/v1/subscribers").await;
        let found = all.as_array().unwrap().iter().find(|one| one["id"] == id).cloned();
        found.unwrap_or_else(|| panic!("subscriber {id} is not in {all}"))
    }

    /// Processor time used so far, in ticks of a hundredth of a second.
    #[cfg(target_os = "linux")]
    pub(crate) fn processor_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Resident memory, in bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.id())).unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the program's log:\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal some times in a row.
pub(crate) fn signal_times(process: u32, signal: &str, times: usize) {
    let script =
        format!("i=0; while [ $i -lt {times} ]; do kill -{signal} {process}; i=$((i+1)); done");
    // A process that is gone by then is no matter.
    let _ = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status().unwrap();
}

/// Everything a client was sent, and what its own counting makes of it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) id: String,
    pub(crate) quotes: HashMap<String, Value>,
    pub(crate) volumes: HashMap<(String, String), Value>,
    pub(crate) delivered: u64,
    pub(crate) conflated: u64,
    pub(crate) batches: u64,
    /// Ticks or totals that did not rise.
    pub(crate) backwards: u64,
    /// The newest health of each feed, and the changes in order.
    pub(crate) health: HashMap<String, String>,
    pub(crate) healths: Vec<String>,
    pub(crate) limits: Value,
    pub(crate) acks: u64,
    pub(crate) shutdown: bool,
    pub(crate) close: Option<u16>,
}

impl Seen {
    fn take(&mut self, message: &Value) {
        match message["type"].as_str().unwrap() {
            "welcome" => self.id = message["subscriber"].as_str().unwrap().to_owned(),
            "quotes" => {
                self.count_batch(message);
                for quote in message["quotes"].as_array().unwrap() {
                    let name = quote["instrument"].as_str().unwrap().to_owned();
                    let tick = quote["tick"].as_u64().unwrap();
                    self.delivered += 1;
                    let before = self.quotes.insert(name, quote.clone());
                    assert_eq!(before.is_none(), message["snapshot"] == true, "{message}");
                    if let Some(before) = before.and_then(|quote| quote["tick"].as_u64()) {
                        self.backwards += u64::from(tick <= before);
                        self.conflated += tick.saturating_sub(before + 1);
                    }
                }
            }
            "volume" => {
                self.count_batch(message);
                for volume in message["volumes"].as_array().unwrap() {
                    let text = |key: &str| volume[key].as_str().unwrap().to_owned();
                    let before =
                        self.volumes.insert((text("account"), text("instrument")), volume.clone());
                    let fills = |volume: &Value| volume["fills"].as_u64().unwrap();
                    self.backwards +=
                        u64::from(before.is_some_and(|before| fills(&before) >= fills(volume)));
                }
            }
            "status" => {
                let health = message["reason"].as_str().or(message["health"].as_str()).unwrap();
                self.healths.push(health.to_owned());
                let feed = message["feed"].as_str().unwrap().to_owned();
                self.health.insert(feed, health.to_owned());
            }
            "limits" => self.limits = message.clone(),
            "ack" => self.acks += 1,
            "shutdown" => self.shutdown = true,
            "pong" => {}
            other => panic!("{other}: {message}"),
        }
    }

    fn count_batch(&mut self, message: &Value) {
        self.batches += 1;
        assert_eq!(message["batch"], self.batches, "batches are numbered without gaps");
    }

    /// The newest generation of limits that the client was told.
    pub(crate) fn generation(&self) -> u64 {
        self.limits["generation"].as_u64().unwrap_or(0)
    }
}

/// A standard client.
pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub(crate) seen: Seen,
}

impl Client {
    pub(crate) async fn connect(server: &Server) -> Self {
        let connected = tokio::time::timeout(PATIENCE, Self::try_connect(server.gateway)).await;
        connected.unwrap().unwrap()
    }

    pub(crate) async fn try_connect(gateway: SocketAddr) -> Result<Self, tungstenite::Error> {
        let url = format!("ws://{gateway}/v1/stream");
        let (socket, _) = tokio_tungstenite::connect_async(url).await?;
        let mut client = Self { socket, seen: Seen::default() };
        client.until("a welcome", |seen| !seen.id.is_empty()).await;
        Ok(client)
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn subscribe(&mut self, name: &str) {
        let acks = self.seen.acks;
        self.say(&format!(r#"{{"op":"subscribe","id":1,"instruments":["{name}"]}}"#)).await;
        self.until("an ack", |seen| seen.acks > acks).await;
    }

    pub(crate) async fn subscribe_volume(&mut self) {
        let acks = self.seen.acks;
        self.say(r#"{"op":"subscribe","channel":"volume","id":2,"accounts":["*"]}"#).await;
        self.until("an ack", |seen| seen.acks > acks).await;
    }

    /// Confirms everything received so far.
    pub(crate) async fn confirm(&mut self) {
        let batch = self.seen.batches;
        self.say(&format!(r#"{{"op":"ack","batch":{batch}}}"#)).await;
    }

    /// Reads one message; `false` once the connection is over.
    async fn read(&mut self) -> bool {
        match self.socket.next().await {
            Some(Ok(Message::Text(text))) => self.seen.take(&serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Close(frame))) => {
                self.seen.close = frame.map(|frame| frame.code.into());
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return false,
        }
        true
    }

    /// Reads until something holds.
    pub(crate) async fn until(&mut self, what: &str, mut holds: impl FnMut(&Seen) -> bool) {
        let reading = async {
            while !holds(&self.seen) {
                assert!(self.read().await, "the connection ended before {what}: {:?}", self.seen);
            }
        };
        if tokio::time::timeout(PATIENCE, reading).await.is_err() {
            panic!("never: {what}; {:?}", self.seen);
        }
    }

    /// Reads for a while.
    pub(crate) async fn read_for(&mut self, time: Duration) {
        let reading = async {
            while self.read().await {}
            panic!("the connection ended: {:?}", self.seen);
        };
        let _ = tokio::time::timeout(time, reading).await;
    }

    /// Reads until the connection is over.
    pub(crate) async fn read_to_the_end(&mut self) {
        let reading = async { while self.read().await {} };
        tokio::time::timeout(PATIENCE, reading).await.unwrap();
    }
}

/// Quotes and counts by instrument that a naive fold of messages comes to.
#[derive(Debug, Default)]
pub(crate) struct Naive(pub(crate) HashMap<String, (HashMap<&'static str, String>, u64)>);

impl Naive {
    /// What a person would write in ten minutes.
    pub(crate) fn take(&mut self, venue: &str, text: &str) {
        let Ok(message) = serde_json::from_str::<Value>(text) else { return };
        let stream = message["stream"].as_str().unwrap_or_default();
        let event = message.get("data").unwrap_or(&message);
        let members: &[(&'static str, &str)] = match event["e"].as_str() {
            Some("trade" | "aggTrade") => &[("last", "p"), ("last_size", "q")],
            Some("bookTicker") => BOOK,
            None if stream.ends_with("@bookTicker") => BOOK,
            _ => return,
        };
        let name = format!("{venue}:{}", event["s"].as_str().unwrap());
        let (texts, count) = self.0.entry(name).or_default();
        *count += 1;
        for (field, member) in members {
            texts.insert(field, event[member].as_str().unwrap().to_owned());
        }
    }

    /// Holds a client's newest values against the fold, digit for digit.
    pub(crate) fn assert_is(&self, seen: &Seen) {
        self.assert_quotes(&seen.quotes);
        assert_eq!(seen.backwards, 0, "each instrument's tick rises");
    }

    /// Holds quotes by instrument against the fold, digit for digit.
    pub(crate) fn assert_quotes(&self, quotes: &HashMap<String, Value>) {
        assert!(!self.0.is_empty());
        assert_eq!(quotes.len(), self.0.len());
        for (name, (texts, count)) in &self.0 {
            let quote = &quotes[name];
            assert_eq!(quote["tick"], *count, "{name}");
            for field in ["bid", "bid_size", "ask", "ask_size", "last", "last_size"] {
                let expected = texts.get(field).map(String::as_str);
                assert_eq!(quote[field].as_str(), expected, "{field} of {name}");
            }
        }
    }

    /// Ticks of all instruments.
    pub(crate) fn ticks(&self) -> u64 {
        self.0.values().map(|(_, count)| count).sum()
    }
}

const BOOK: &[(&str, &str)] = &[("bid", "b"), ("bid_size", "B"), ("ask", "a"), ("ask_size", "A")];

/// A simulated recording of some seconds in a file, its messages, and the simulator at its end.
pub(crate) fn simulated(file: &Path, seconds: u64, rate: u32) -> (Vec<String>, Simulator) {
    let options = SimulateOptions {
        duration: Duration::from_secs(seconds),
        rate,
        ..SimulateOptions::default()
    };
    let mut simulator = Simulator::new(options).unwrap();
    let mut recorder = Recorder::create(file, RecorderOptions::default()).unwrap();
    let mut messages = Vec::new();
    while let Some((time, text)) = simulator.next() {
        recorder.message(time, text).unwrap();
        messages.push(String::from_utf8(text.to_vec()).unwrap());
    }
    recorder.finish().unwrap();
    (messages, simulator)
}

/// Waits until a question about the server is answered with yes.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, asking).await.is_err() {
        panic!("never: {what}");
    }
}
