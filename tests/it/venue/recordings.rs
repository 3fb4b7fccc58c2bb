//! Real recordings, if they are at hand: a folder `shared/feeds` in any folder above the package.
//! They are not part of the package; what needs them says so and goes without.

use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Messages of one recording, in the order they were received.
pub(crate) struct Recording {
    /// The file's name within its folder.
    #[allow(dead_code, reason = "the bench has no use for it")]
    pub(crate) name: String,
    /// The venue whose codec reads it.
    pub(crate) venue: &'static str,
    text: Vec<u8>,
    messages: Vec<(i64, std::ops::Range<usize>)>,
}

impl Recording {
    /// Each message with its receive time.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (i64, &[u8])> {
        self.messages.iter().map(|(time, range)| (*time, &self.text[range.clone()]))
    }

    fn push(&mut self, time: i64, message: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(message);
        self.messages.push((time, start..self.text.len()));
    }
}

/// The five Binance recordings that were made at the same time on one clock.
pub(crate) fn binance() -> Option<Vec<Recording>> {
    let folder = folder()?.join("binance");
    let files = [
        ("binance", "spot/btcusdt_20240808.gz"),
        ("binance", "spot/ethusdt_20240808.gz"),
        ("binance-usdm", "usdm/btcusdt_20240808.gz"),
        ("binance-cm", "cm/btcusd_perp_20240808.gz"),
        ("binance-cm", "cm/ethusd_perp_20240808.gz"),
    ];
    files.into_iter().map(|(venue, file)| timed(venue, &folder, file)).collect()
}

/// Whole conversations, acks and requests' answers included.
#[allow(dead_code, reason = "the bench has no use for it")]
pub(crate) fn binance_conversations() -> Option<Vec<Recording>> {
    let folder = folder()?.join("binance/cryptofeed");
    let files = [
        ("binance", "cf_binance.jsonl.zst"),
        ("binance", "cf_binance_us.jsonl.zst"),
        ("binance-usdm", "cf_binance_futures.jsonl.zst"),
        ("binance-cm", "cf_binance_delivery.jsonl.zst"),
    ];
    files.into_iter().map(|(venue, file)| conversation(venue, &folder, file)).collect()
}

/// Every recording of a venue; `None` if there are none at hand.
#[allow(dead_code, reason = "the bench has no use for it")]
pub(crate) fn of(venue: &str) -> Option<Vec<Recording>> {
    let all = binance().into_iter().chain(binance_conversations()).flatten();
    let found: Vec<Recording> = all.filter(|recording| recording.venue == venue).collect();
    (!found.is_empty()).then_some(found)
}

fn folder() -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().map(|above| above.join("shared/feeds")).find(|path| path.is_dir())
}

fn empty(venue: &'static str, name: &str) -> Recording {
    Recording { name: name.to_owned(), venue, text: Vec::new(), messages: Vec::new() }
}

/// Lines of `<receive time in nanoseconds> <message>`.
fn timed(venue: &'static str, folder: &Path, name: &str) -> Option<Recording> {
    let file = std::fs::File::open(folder.join(name)).ok()?;
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text).ok()?;
    let mut recording = empty(venue, name);
    for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let space = line.iter().position(|&byte| byte == b' ')?;
        let time = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        recording.push(time, &line[space + 1..]);
    }
    Some(recording)
}

/// Records of a capture, of which those received hold a message.
fn conversation(venue: &'static str, folder: &Path, name: &str) -> Option<Recording> {
    let packed = std::fs::read(folder.join(name)).ok()?;
    let text = zstd::decode_all(packed.as_slice()).ok()?;
    let mut recording = empty(venue, name);
    for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let record: serde_json::Value = serde_json::from_slice(line).ok()?;
        if record["t"] == "recv" {
            recording.push(0, record["data"].as_str()?.as_bytes());
        }
    }
    Some(recording)
}
