//! What recording costs the live path, and how small it packs.
//!
//! | case | what one operation is |
//! |---|---|
//! | `tap` | one message of a line feed that gets 10,000 a second over TCP, from the socket through codec, conflation worker and the board's stage, with a recorder's tap; the control is the same without the tap |
//! | `tap-flood` | the same without the socket, and as many a second as the thread can take: what is told of the tap is worst here |
//! | `pack` | one record packed and written by the recorder's own thread; the control is `zstd -3` alone over the same lines in one frame |
//!
//! Both are the processor time of the thread that ingests, not time gone by: the recorder's thread
//! works beside it and is what `pack` measures. Both variants run in turns over pieces of some
//! thousand messages; in `tap-flood`, a piece begins once the recorder has taken the one before, as
//! it does behind a feed that it keeps up with.
//!
//! The closing line `control record/size` is the size of the file, flushed twice a second at 1,000
//! records a second, divided by that of `zstd -3` over the same lines in one frame.
//!
//! What the figures do not represent: a disk (files go to a folder in memory if there is one), and
//! the second core that a recorder's thread wants at rates of a hundred thousand a second.

mod harness;
#[path = "ingest/pipeline.rs"]
#[allow(unreachable_pub, reason = "shared with another bench")]
mod pipeline;

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use tidegate::clock::Clock;
use tidegate::feed::{
    LineFeed, LineFeedOptions, LineStep, Place, RecordTap, Recorder, RecorderOptions, Recorders,
    Rolling, RollingOptions, SimulateOptions, Simulator, TapOptions,
};
use tokio_util::sync::CancellationToken;

use harness::{Report, control, median, ours, per_operation, short};

const PIECE: usize = 2048;

type Message = (i64, Vec<u8>);

fn main() {
    let seconds = if short() { 20 } else { 60 };
    let messages = simulated(seconds, 5_000);
    println!("{} simulated messages", messages.len());
    let folder =
        tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "." })
            .expect("a folder");
    let mut report = Report::default();
    let live = live(&messages, folder.path(), if short() { 100 } else { 400 });
    let flood = flood(&messages, folder.path(), if short() { 9 } else { 21 });
    pack(&mut report, &messages, if short() { 5 } else { 11 });
    report.close();
    println!("control record/tap {live:.3}");
    println!("control record/tap-flood {flood:.3}");
    println!("control record/size {:.3}", size(&simulated(60, 1_000)));
}

fn simulated(seconds: u64, rate: u32) -> Vec<Message> {
    let duration = Duration::from_secs(seconds);
    let options = SimulateOptions { duration, rate, accounts: 0, ..SimulateOptions::default() };
    let mut simulator = Simulator::new(options).expect("good options");
    let mut messages = Vec::new();
    while let Some((time, text)) = simulator.next() {
        messages.push((time, text.to_vec()));
    }
    messages
}

/// Processor time of a line feed's thread with a tap, divided by that without, at 10,000 a second.
fn live(messages: &[Message], folder: &Path, pieces: usize) -> f64 {
    const RATE: usize = 10_000;
    const PIECE: usize = 500;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let total = 2 * pieces * PIECE + PIECE;
    let stop = CancellationToken::new();
    let mut recorders = Recorders::new(Clock::system());
    let tap = recorder(&mut recorders, "live", folder);
    let figures = tap.figures().clone();
    let mut with = pipeline::Pipeline::new(&["binance"]);
    with.record_to(tap);
    let mut without = pipeline::Pipeline::new(&["binance"]);
    let mut costs = [Vec::with_capacity(pieces), Vec::with_capacity(pieces)];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut socket, _) = listener.accept().expect("the feed connects");
            let clock = Clock::system();
            let mut sent = 0;
            while sent < total {
                let due = clock.now().as_nanos() as usize / (1_000_000_000 / RATE);
                let mut lines = Vec::new();
                while sent < due.min(total) {
                    lines.extend_from_slice(&messages[sent % messages.len()].1);
                    lines.push(b'\n');
                    sent += 1;
                }
                socket.write_all(&lines).expect("the feed reads");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let source = format!("tcp://127.0.0.1:{port}").parse().expect("an address");
        let clock = Clock::system();
        let mut feed = LineFeed::new(source, LineFeedOptions::default(), clock);
        let (mut number, mut began) = (0, 0);
        while number < total {
            let taker = if (number / PIECE).is_multiple_of(2) { &mut with } else { &mut without };
            // As the feed's own loop does: everything at hand, then the stage, then the wait.
            let step = match feed.at_hand() {
                Some(message) => message,
                None => {
                    taker.step();
                    feed.next(&stop)
                }
            };
            let LineStep::Message { receive_time, text } = step else { continue };
            taker.take(receive_time, text);
            number += 1;
            if number.is_multiple_of(PIECE) {
                taker.step();
                let now = thread_time();
                // The first piece begins with the connection.
                let piece = number / PIECE - 1;
                if piece > 0 {
                    costs[piece % 2].push((now - began) as f64 / PIECE as f64);
                }
                began = thread_time();
            }
        }
    });
    assert!(recorders.finish(Duration::from_secs(30)), "closed in time");
    assert_eq!(figures.records(), ((pieces + 1) * PIECE) as u64, "all was recorded");
    println!("\nrecord/tap ({pieces} pieces of each in turns, 10,000 messages a second over TCP)");
    told(&mut costs)
}

/// Prints medians and spread with and without the tap; answers the median of the ratios of pieces that
/// followed each other: the machine's speed drifts by more than what is looked for.
fn told(costs: &mut [Vec<f64>; 2]) -> f64 {
    let pairs = costs[0].iter().zip(&costs[1]);
    let mut ratios: Vec<f64> = pairs.map(|(with, without)| with / without).collect();
    let medians = costs.each_mut().map(|costs| median(costs));
    for ((name, costs), median) in ["with the tap", "without"].iter().zip(costs).zip(medians) {
        let (low, high) = (costs[0], costs[costs.len() - 1]);
        println!("  {name:<28} {median:>8.1} ns   [{low:.1} .. {high:.1}]");
    }
    median(&mut ratios)
}

fn recorder(recorders: &mut Recorders, name: &str, folder: &Path) -> RecordTap {
    let place = Place::Folder(folder.to_owned());
    let options = RollingOptions {
        rotate_bytes: Some(64 << 20),
        keep_files: Some(1),
        ..RollingOptions::default()
    };
    let rolling = Rolling::new(name, place, options).expect("a folder");
    recorders.start(name, rolling, TapOptions::default()).expect("a recorder")
}

/// The same over what lies in memory, as fast as the thread can.
fn flood(messages: &[Message], folder: &Path, rounds: usize) -> f64 {
    let mut recorders = Recorders::new(Clock::system());
    let tap = recorder(&mut recorders, "flood", folder);
    let figures = tap.figures().clone();
    let mut with = pipeline::Pipeline::new(&["binance"]);
    with.record_to(tap);
    let mut without = pipeline::Pipeline::new(&["binance"]);
    let mut costs = [Vec::with_capacity(rounds), Vec::with_capacity(rounds)];
    for round in 0..=rounds {
        let (mut cost, mut bare) = (0, 0);
        with.new_session();
        without.new_session();
        for (number, piece) in messages.chunks(PIECE).enumerate() {
            let items = || piece.iter().map(|(time, text)| (0, *time, text.as_slice()));
            let idle = || {
                while figures.waiting_bytes() > 0 {
                    std::thread::sleep(Duration::from_micros(200));
                }
            };
            for turn in 0..2 {
                if (number + turn).is_multiple_of(2) {
                    cost += processor_time(|| with.run(items()));
                } else {
                    bare += processor_time(|| without.run(items()));
                }
                idle();
            }
        }
        if round > 0 {
            let each = |nanos: u64| nanos as f64 / messages.len() as f64;
            costs[0].push(each(cost));
            costs[1].push(each(bare));
        }
    }
    assert_eq!(figures.lost_to_overflow() + figures.lost_to_failures(), 0, "all was recorded");
    assert!(recorders.finish(Duration::from_secs(30)), "closed in time");
    assert_eq!(figures.records(), ((rounds + 1) * messages.len()) as u64);
    println!("\nrecord/tap-flood ({rounds} rounds in turns)");
    told(&mut costs)
}

fn pack(report: &mut Report, messages: &[Message], rounds: usize) {
    let count = messages.len() as u64;
    let lines = lines(messages);
    report.case(
        "record",
        "pack",
        rounds,
        vec![
            ours("recorder", || {
                per_operation(count, || {
                    recorded(messages);
                })
            }),
            control("zstd-3", || {
                per_operation(count, || {
                    zstd::bulk::compress(&lines, 3).expect("packed");
                })
            }),
        ],
    );
}

fn recorded(messages: &[Message]) -> Vec<u8> {
    let mut recorder = Recorder::new(Vec::new(), RecorderOptions::default()).expect("a recorder");
    for (time, text) in messages {
        recorder.message(*time, text).expect("recorded");
    }
    recorder.finish().expect("finished").0
}

/// The same lines as a recording has.
fn lines(messages: &[Message]) -> Vec<u8> {
    zstd::decode_all(recorded(messages).as_slice()).expect("unpacked")
}

fn size(messages: &[Message]) -> f64 {
    let frame = zstd::bulk::compress(&lines(messages), 3).expect("packed");
    let file = recorded(messages);
    println!("\nrecord/size: {} bytes; in one frame {}", file.len(), frame.len());
    file.len() as f64 / frame.len() as f64
}

/// Nanoseconds of processor time that this thread spends on `work`.
fn processor_time<T>(work: impl FnOnce() -> T) -> u64 {
    let before = thread_time();
    std::hint::black_box(work());
    thread_time() - before
}

#[expect(unsafe_code, reason = "the standard library does not tell a thread's processor time")]
fn thread_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that lives through the call.
    let told = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(told, 0, "the system tells a thread's time");
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
