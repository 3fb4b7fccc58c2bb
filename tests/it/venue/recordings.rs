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

/// Every recording that is known of: its venue, and its file in the folder.
#[allow(dead_code, reason = "the bench has no use for it")]
pub(crate) const FILES: &[(&str, &str)] = &[
    ("binance", "binance/spot/btcusdt_20240808.gz"),
    ("binance", "binance/spot/ethusdt_20240808.gz"),
    ("binance-usdm", "binance/usdm/btcusdt_20240808.gz"),
    ("binance-cm", "binance/cm/btcusd_perp_20240808.gz"),
    ("binance-cm", "binance/cm/ethusd_perp_20240808.gz"),
    ("binance", "binance/cryptofeed/cf_binance.jsonl.zst"),
    ("binance", "binance/cryptofeed/cf_binance_us.jsonl.zst"),
    ("binance", "binance/cryptofeed/cfv1_binance-ee25be.0.gz"),
    ("binance-usdm", "binance/cryptofeed/cf_binance_futures.jsonl.zst"),
    ("binance-cm", "binance/cryptofeed/cf_binance_delivery.jsonl.zst"),
    ("coinbase", "coinbase/cfv1_coinbase_first_third.ws.gz"),
    ("coinbase-advanced", "coinbase/cf_coinbase_first_third.jsonl.zst"),
    ("kraken", "kraken/cf_kraken.jsonl.zst"),
    ("kraken", "kraken/cfv1_kraken.ws.48.0.gz"),
    ("kraken", "kraken/cfv1_kraken.ws.49.0.gz"),
    ("kraken", "kraken/cfv1_kraken.ws.50.0.gz"),
    ("bitstamp", "bitstamp/cf_bitstamp.jsonl.zst"),
    ("bitstamp", "bitstamp/bitstamp_2015-05-01_orders_first_third.log.xz"),
    ("bybit", "bybit/cf_bybit_first_third.jsonl.zst"),
    ("bybit", "bybit/cfv1_bybit.ws.25.0.gz"),
    ("bybit", "bybit/cfv1_bybit.ws.26.0.gz"),
    ("okx", "okx/cf_okx.jsonl.zst"),
    ("okx", "okx/cfv1_okcoin.ws.1.0.gz"),
    ("bitmex", "bitmex/cfv1_bitmex.ws.1.0.gz"),
    ("bitmex", "bitmex/cfv1_bitmex.ws.17.0.gz"),
    ("deribit", "deribit/cf_deribit.jsonl.zst"),
];

/// Those of a venue that can be read; `None` if there are none at hand.
#[allow(dead_code, reason = "the bench has no use for it")]
pub(crate) fn of(venue: &str) -> Option<Vec<Recording>> {
    let folder = folder()?;
    let files = FILES.iter().filter(|(of, _)| *of == venue);
    let found: Vec<Recording> = files
        .filter_map(|(venue, file)| Some(captured(venue, file, &unpacked(&folder.join(file))?)))
        .collect();
    (!found.is_empty()).then_some(found)
}

/// The text of a file, if it is there and can be unpacked: for xz by the program of that name.
#[allow(dead_code, reason = "the bench has no use for it")]
pub(crate) fn unpacked(path: &Path) -> Option<Vec<u8>> {
    let packed = std::fs::read(path).ok()?;
    let mut text = Vec::new();
    match path.extension()?.to_str()? {
        "gz" => drop(flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut text).ok()?),
        "zst" => text = zstd::decode_all(packed.as_slice()).ok()?,
        "xz" => {
            let done = std::process::Command::new("xz").arg("-dc").arg(path).output();
            let Some(done) = done.ok().filter(|done| done.status.success()) else {
                eprintln!("SKIPPED: {} needs the program xz", path.display());
                return None;
            };
            text = done.stdout;
        }
        _ => text = packed,
    }
    Some(text)
}

/// The messages of a capture of either kind, or of lines with a time before them.
#[allow(dead_code, reason = "the bench has no use for it")]
pub(crate) fn captured(venue: &'static str, name: &str, text: &[u8]) -> Recording {
    let mut recording = empty(venue, name);
    for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        if line.starts_with(b"{\"t\":") {
            let record: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
            if record["t"] == "recv" {
                recording.push(0, record["data"].as_str().unwrap_or_default().as_bytes());
            }
        } else if line[0].is_ascii_digit() {
            let space = memchr::memchr(b' ', line).unwrap_or(line.len() - 1);
            recording.push(0, &line[space + 1..]);
        }
    }
    recording
}

/// The folder of recordings, if there is one above the package.
pub(crate) fn folder() -> Option<PathBuf> {
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
