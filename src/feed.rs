//! Bytes with a receive time, from a recording or a line of text: the way in.
//!
//! A feed knows no venue. It yields messages as they came, each with the time it was received, so
//! that a recording can be run again through a codec that was fixed since.
//!
//! | part | does |
//! |---|---|
//! | [`Reader`] | walks over one recording; packing and format told by content |
//! | [`Recorder`] | writes our own format, so that a kill loses little |
//! | [`Index`] | where a time is in a recording, without reading what is before it |
//! | [`Selection`] | a range of time, and a judgement on each record in it |
//! | [`Rolling`] | a recording in files by size or time, of which the newest are kept |
//! | [`Recorders`], [`RecordTap`] | recording beside the live path, on a thread of its own |
//! | [`rewrite`](fn@rewrite) | recordings into another format, cut, or merged |
//! | [`verify`](fn@verify) | whether a recording is whole, and what of it is good |
//! | [`Recording`] | a recording to play: from its file, or unpacked in memory |
//! | [`Replay`] | several recordings merged by receive time, on an anchored schedule |
//! | [`ReplayControl`] | pause, resume, seek and speed of a replay, from another thread |
//! | [`LineFeed`] | live messages, one a line, from a TCP address or standard input |
//! | [`LiveFeed`](live::LiveFeed) | live messages over a WebSocket, from a venue that is asked for them |
//! | [`Simulator`] | made-up Binance messages from a seed |
//! | [`inspect`] | counts, span and damage of a recording |
//!
//! Nothing here reads a clock but the live feeds, which stamp what they receive, and [`Recorders`],
//! which tell when a flush is due; a [`Replay`] is told
//! the time and says until when to wait, and [`wait_until`] does the waiting.
//!
//! ```
//! use tidegate::clock::Clock;
//! use tidegate::feed::{Recording, Replay, ReplayOptions, Step, wait_until};
//! use tokio_util::sync::CancellationToken;
//!
//! let lines = "1723161254.000 {\"bid\":\"1.0\"}\n1723161254.005 {\"bid\":\"1.1\"}\n";
//! let recording = Recording::from_bytes("two lines", lines.into(), 1 << 20)?;
//! let mut replay = Replay::new(vec![recording], ReplayOptions::default())?;
//! let (clock, stop) = (Clock::system(), CancellationToken::new());
//! let mut messages = 0;
//! loop {
//!     match replay.next(clock.now()) {
//!         Step::Record { record, .. } => {
//!             assert!(record.text.starts_with(b"{\"bid\""));
//!             messages += 1;
//!         }
//!         Step::WaitUntil(due) => {
//!             if !wait_until(&clock, due, &stop) {
//!                 break;
//!             }
//!         }
//!         Step::Ended => break,
//!         Step::NextPass { .. } | Step::Jumped { .. } | Step::Paused => {}
//!         Step::Damaged { .. } | Step::Unreadable { .. } => {}
//!     }
//! }
//! assert_eq!(messages, 2);
//! # Ok::<(), tidegate::feed::OpenError>(())
//! ```
//!
//! # Trade-offs
//!
//! * Records are lent, valid until the next call: nothing is allocated per record, and a consumer
//!   that wants to keep one copies it.
//! * A line has at most 16 MiB ([`MAX_LINE_BYTES`]), which is also the most memory one recording
//!   takes when it is streamed, beside half a MiB of buffers.
//! * A zstd checksum is verified when its frame ends, after the frame's lines were yielded. Holding
//!   them back would lose the whole lines of a torn frame.
//! * Nothing is played behind damage. A gap in the middle of a recording would be a silent one.

mod capture;
mod format;
mod index;
mod inspect;
mod lines;
pub mod live;
mod reader;
mod recorder;
mod recording;
mod replay;
mod report;
mod rewrite;
mod rolling;
mod seeded;
mod selection;
mod simulate;
mod tap;
mod unpack;
mod verify;
mod wait;
mod window;

pub use format::{Format, Mark, Record, RecordKind, VERSION};
pub use index::{FrameEntry, Index, IndexState};
pub use inspect::{Inspection, inspect};
pub use lines::{LineFeed, LineFeedOptions, LineSource, LineSourceError, LineStep};
pub use reader::Reader;
pub use recorder::{RecordError, Recorder, RecorderOptions, RecorderSummary};
pub use recording::Recording;
pub use replay::{
    Replay, ReplayControl, ReplayEnded, ReplayOptions, ReplayStatus, Speed, SpeedError,
    SpeedFactor, Step,
};
pub use report::{BadCount, BadLine, Damage, DamageKind, OpenError, OpenProblem, Tally};
pub use rewrite::{RewriteError, Rewritten, Sink, Target, rewrite};
pub use rolling::{Place, Rolling, RollingOptions, RollingSummary};
pub use selection::{Keep, Selection};
pub use simulate::{
    AccountTotal, SimulateError, SimulateOptions, SimulateSummary, Simulator, simulate,
};
pub use tap::{RecordFigures, RecordTap, Recorders, TapOptions};
pub use unpack::Compression;
pub use verify::{Verification, verify};
pub use wait::wait_until;
pub use window::MAX_LINE_BYTES;
