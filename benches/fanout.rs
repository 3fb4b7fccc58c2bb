//! What a subscriber costs: ours beside bare writes and what people use today.
//!
//! The server runs in a process of its own on one core, the load generator (this process) on the
//! other. The figure is the server's processor time, user and system, for a quote that arrived;
//! beside it stand quotes a second, the age of a quote at receipt, and resident memory. Peers: Bun
//! (`publish`), nats-server over its WebSocket, `ws` under node, and tokio-tungstenite over a
//! broadcast with `send` for each message or `feed` and one `flush`; `benches/fanout/peers.sh`
//! fetches those that are not crates. The control sends the bytes of the writes that ours made in
//! the run before, at ours' cadence, and does nothing else.
//!
//! | scenario | what it asks |
//! |---|---|
//! | `a` | the cost of a delivered quote: 100 and 1,000 subscribers of all of 1,000 instruments, or of 20 each, at saturation, 10,000 and 50,000 ticks a second |
//! | `b` | one slow reader among fast ones, at 100,000 ticks a second |
//! | `c` | from a tick on the feed's connection to its quote at the one subscriber, or at the last of 100, beside a bare relay |
//! | `d` | ten thousand idle subscribers: memory, accepts, idle processor time |
//! | `e` | growth with instruments, subscribers and subscriptions; a tick that is conflated away |
//! | `f` | a bursty feed, ours limited to ten batches a second, peers that forward everything |
//!
//! ```text
//! cargo bench --bench fanout -- [--short] [--alone] [SCENARIO or CASE …]
//! ```
//!
//! Charts of each case are written as SVG into `fanout/charts` under the target folder.
//!
//! `--alone` leaves the peers out. `FANOUT_BEFORE=PROGRAM` has another build of the program measured
//! in the same rounds, as `before`: a change is judged by that and by no figure of another day.
//!
//! All get the same text for a quote, uncompressed and without delay; ours and nats-server are fed
//! over TCP, the others make their quotes inside, which spares them the feed. In the closing lines
//! `ratio` is a peer's whole process over ours, `control` is ours' shard threads over the control's.
//!
//! What the figures do not represent: a network (all is loopback, where sending includes the
//! kernel's receiving half), more than one core, and the machine's absolute speed. A server that
//! cannot keep up with a rate is charged for what it delivered; its age tells that it did not.

#![allow(unreachable_pub, reason = "the parts of this bench are its own")]

#[path = "fanout/ages.rs"]
mod ages;
#[path = "fanout/case.rs"]
mod case;
#[path = "fanout/chart.rs"]
mod chart;
#[path = "fanout/clock.rs"]
mod clock;
#[path = "fanout/crowd.rs"]
mod crowd;
#[path = "fanout/delivery.rs"]
mod delivery;
mod harness;
#[path = "fanout/process.rs"]
mod process;
#[path = "fanout/publisher.rs"]
mod publisher;
#[path = "fanout/raw.rs"]
mod raw;
#[path = "fanout/rust_peers.rs"]
mod rust_peers;
#[path = "fanout/scenario_a.rs"]
mod scenario_a;
#[path = "fanout/scenario_b.rs"]
mod scenario_b;
#[path = "fanout/scenario_c.rs"]
mod scenario_c;
#[path = "fanout/scenario_d.rs"]
mod scenario_d;
#[path = "fanout/scenario_e.rs"]
mod scenario_e;
#[path = "fanout/scenario_f.rs"]
mod scenario_f;
#[path = "fanout/servers.rs"]
mod servers;

use std::path::Path;

use scenario_a::Effort;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--role") {
        if let Err(error) = play(&arguments[1..]) {
            eprintln!("{error}");
        }
        return;
    }
    let names: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|name| !name.starts_with("--")).collect();
    // A case, or all cases of a scenario.
    let wanted = |case: &str| {
        let scenario = case.split('-').next().unwrap_or(case);
        let scenario = scenario.trim_end_matches(|c: char| c.is_ascii_digit());
        names.is_empty() || names.iter().any(|&name| name == case || name == scenario)
    };
    let effort = Effort::of(harness::short());
    let alone = arguments.iter().any(|argument| argument == "--alone");
    let peers = if alone { servers::Peers::none() } else { servers::Peers::fetch() };
    if !servers::pin_generator() {
        println!("one core only: server and load generator share it, and figures mean little");
    }
    if let Err(error) = scenario_c::sleep_exactly() {
        println!("sleeps are not exact: {error}");
    }
    let mut closing = Vec::new();
    let cases = scenario_a::run(effort, &peers, wanted);
    closing.extend(cases.iter().flat_map(case::Case::closing));
    if wanted(scenario_b::CASE) {
        closing.extend(scenario_b::run(effort, &peers).1);
    }
    for (_, lines) in scenario_c::run(effort, &peers, wanted) {
        closing.extend(lines);
    }
    if wanted(scenario_d::CASE) {
        closing.extend(scenario_d::run(effort));
    }
    for (_, lines) in scenario_e::run(effort, wanted) {
        closing.extend(lines);
    }
    if wanted(scenario_f::CASE) {
        closing.extend(scenario_f::run(effort, &peers).1);
    }
    println!();
    for line in closing {
        println!("{line}");
    }
}

/// Another role of this program: a server.
fn play(arguments: &[String]) -> std::io::Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().unwrap_or(0);
    let instruments = |word: &str| word.parse::<u32>().unwrap_or(1);
    match words[..] {
        ["raw", file] => raw::serve(Path::new(file)),
        ["relay"] => raw::relay(),
        ["tungstenite-each", rate, many, _] => {
            rust_peers::serve(number(rate), instruments(many), false)
        }
        ["tungstenite-flush", rate, many, _] => {
            rust_peers::serve(number(rate), instruments(many), true)
        }
        _ => Err(std::io::Error::other(format!("no such role: {words:?}"))),
    }
}
