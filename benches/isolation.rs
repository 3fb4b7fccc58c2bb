//! What one subscriber that reads nothing costs the others.
//!
//! The server is the program itself in a process of its own, fed by a line feed at 50,000 ticks a
//! second over 500 instruments. Twenty readers subscribe to everything, in half of the runs beside
//! one client that subscribes and never reads. A quote's *age* is the time from the moment its
//! message was due at the publisher (which stands in the bid's digits) to the moment a reader has
//! it in hand; one quote of each batch is looked at, the last, so that the readers' own cost stays
//! small. Runs come in pairs, with and without, in alternating order; the closing lines are medians
//! over the pairs of *age with the deaf one ÷ age without*, at the median and at the 99th hundredth.
//!
//! The figures hold for publisher, server and readers sharing one machine: ages include the waits
//! of all three for its cores, and say nothing of a network. A deaf client's cost is bounded by
//! what it may have in flight, so a higher capacity or longer batches would cost more. Ages are
//! compared with each other, not with another machine's.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use tokio_tungstenite::tungstenite::Message;

mod harness;

use harness::{median, short};

const TICKS_A_SECOND: u64 = 50_000;
const INSTRUMENTS: u64 = 500;
const READERS: usize = 20;

/// How far apart the publisher writes.
const STEP: Duration = Duration::from_millis(1);

fn main() {
    let (pairs, run) = if short() { (4, 2) } else { (12, 6) };
    let (warm_up, run) = (Duration::from_secs(1), Duration::from_secs(run));
    println!(
        "isolation: {READERS} readers of {INSTRUMENTS} instruments, {TICKS_A_SECOND} ticks a second, \
         {pairs} pairs of {run:?}"
    );
    println!(
        "{:>6} {:>10} {:>10} {:>10} {:>10} {:>7} {:>7}",
        "pair", "p50", "p50 deaf", "p99", "p99 deaf", "p50 ÷", "p99 ÷"
    );
    let mut ratios = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        let mut ages = [[0.0; 2]; 2];
        let order = if pair % 2 == 0 { [false, true] } else { [true, false] };
        for deaf in order {
            ages[usize::from(deaf)] = measure(deaf, warm_up, run);
        }
        let [without, with] = ages;
        for (ratios, (with, without)) in ratios.iter_mut().zip(with.iter().zip(without)) {
            ratios.push(with / without);
        }
        let micro = |ns: f64| format!("{:.0} µs", ns / 1e3);
        println!(
            "{pair:>6} {:>10} {:>10} {:>10} {:>10} {:>7.3} {:>7.3}",
            micro(without[0]),
            micro(with[0]),
            micro(without[1]),
            micro(with[1]),
            with[0] / without[0],
            with[1] / without[1],
        );
    }
    println!();
    for (name, ratios) in ["p50", "p99"].iter().zip(&mut ratios) {
        println!("ratio isolation/{name}/without-deaf {:.2}", median(ratios));
    }
}

/// One run: ages at the median and at the 99th hundredth, in nanoseconds.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn measure(deaf: bool, warm_up: Duration, run: Duration) -> [f64; 2] {
    let begin = Instant::now();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port for the publisher");
    let address = listener.local_addr().expect("the publisher's address");
    let server = Server::start(address);
    let publisher = Publisher::start(listener, begin);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime for the readers");
    let mut ages = runtime.block_on(async {
        let _deaf = if deaf { Some(subscribed(server.gateway).await) } else { None };
        let mut readers = Vec::new();
        for _ in 0..READERS {
            readers.push(subscribed(server.gateway).await);
        }
        let from = Instant::now() + warm_up;
        let until = from + run;
        let reading: Vec<_> = readers
            .into_iter()
            .map(|socket| tokio::spawn(read(socket, begin, from, until)))
            .collect();
        let mut ages = Vec::new();
        for reading in reading {
            ages.extend(reading.await.expect("a reader"));
        }
        ages
    });
    publisher.stop();
    drop(server);
    assert!(ages.len() > 1_000, "only {} batches came", ages.len());
    ages.sort_unstable();
    [ages[ages.len() / 2] as f64, ages[ages.len() * 99 / 100] as f64]
}

type Socket =
    tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

async fn subscribed(gateway: SocketAddr) -> Socket {
    let url = format!("ws://{gateway}/v1/stream");
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("a subscriber");
    let text = r#"{"op":"subscribe","id":1,"instruments":["binance:*"]}"#;
    socket.send(Message::text(text)).await.expect("a subscription");
    socket
}

/// Reads, and takes the age of one quote a batch, in nanoseconds.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
async fn read(mut socket: Socket, begin: Instant, from: Instant, until: Instant) -> Vec<u64> {
    let mut ages = Vec::with_capacity(16 * 1024);
    while let Some(Ok(message)) = socket.next().await {
        let now = Instant::now();
        if now >= until {
            break;
        }
        if now < from {
            continue;
        }
        if let Message::Text(text) = &message
            && let Some(stamp) = newest_stamp(text.as_bytes())
        {
            let now = u64::try_from((now - begin).as_nanos()).unwrap_or(u64::MAX);
            ages.push(now.saturating_sub(stamp));
        }
    }
    ages
}

/// The stamp in the last bid of a batch of changes.
fn newest_stamp(text: &[u8]) -> Option<u64> {
    if !text.starts_with(b"{\"type\":\"quotes\",\"batch\"") {
        return None;
    }
    let mark = b"\"bid\":\"";
    let at = memchr::memmem::rfind(text, mark)? + mark.len();
    let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// Writes quotes at a steady rate, each with the moment at which it was due as its bid.
struct Publisher {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Publisher {
    #[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
    fn start(listener: TcpListener, begin: Instant) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the server connects");
            let _ = stream.set_nodelay(true);
            let a_step = TICKS_A_SECOND * STEP.as_millis() as u64 / 1000;
            let (mut text, mut id, mut due) = (Vec::new(), 0_u64, Instant::now());
            while !stopped.load(Ordering::Relaxed) {
                let stamp = (due - begin).as_nanos();
                text.clear();
                for _ in 0..a_step {
                    id += 1;
                    let symbol = id % INSTRUMENTS;
                    let _ = writeln!(
                        text,
                        r#"{{"u":{id},"s":"S{symbol}","b":"{stamp}","B":"1.50","a":"{stamp}1","A":"2.50"}}"#
                    );
                }
                if stream.write_all(&text).is_err() {
                    return;
                }
                due += STEP;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        });
        Self { stop, thread }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// The program in a process of its own; killed when dropped.
struct Server {
    child: Child,
    gateway: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start(publisher: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("t.toml");
        let config = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [[feed]]\nname = \"f\"\nvenue = \"binance\"\nlines = \"tcp://{publisher}\"\n"
        );
        std::fs::write(&file, config).expect("a configuration");
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["serve", "--log", "warn", "--config"])
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("its output"));
        out.read_line(&mut line).expect("its ready line");
        let mut words = line.split(|c: char| c == ',' || c.is_whitespace());
        let gateway = words.find_map(|word| word.parse().ok()).expect("its address");
        Self { child, gateway, _folder: folder }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
