//! What is there: subscribers, instruments, feeds, volumes. Read where it is kept, copied, written.
//!
//! Prices and sums are texts with exact digits, times are nanoseconds since the Unix epoch, and
//! what is not known is `null`. Maps by reason or kind leave out what has not happened.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::admin::Inner;
use super::answer::{Problem, json, list};
use super::limits::hertz;
use crate::feed::Tally;
use crate::gateway::{Gateway, Report};
use crate::ingest::Feed;
use crate::market::{Decimal, InstrumentId, decimal};
use crate::venue::Class;
use crate::worker::Counters;

/// Which part of a list is wanted.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Part {
    /// Only those whose name holds this text, whatever the case.
    contains: Option<String>,
    /// At most so many; all if not given.
    limit: Option<usize>,
}

impl Part {
    fn of(query: Result<Query<Self>, QueryRejection>) -> Result<Self, Problem> {
        let Query(mut part) = query.map_err(|error| Problem::bad(error.body_text()))?;
        part.contains = part.contains.map(|text| text.to_lowercase()).filter(|t| !t.is_empty());
        Ok(part)
    }

    fn wants(&self, name: &str) -> bool {
        self.contains.as_ref().is_none_or(|text| name.to_lowercase().contains(text))
    }

    fn limit(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }
}

/// One subscriber's accounts, in ticks.
#[derive(Debug, Serialize)]
struct SubscriberView {
    id: String,
    peer: String,
    shard: usize,
    capacity: usize,
    in_flight: usize,
    /// In force: the lower of the operator's ceiling and the client's wish.
    max_hz: Number,
    instruments: usize,
    waiting: usize,
    received_ticks: u64,
    delivered: u64,
    conflated: u64,
    pending: u64,
    withdrawn: u64,
    batches: u64,
    blocked: bool,
    bytes_in_flight: u64,
    /// Bytes that may be in flight; null for any number.
    bytes_window: Option<u64>,
    /// Bytes a second the line delivers; null while it keeps up.
    line_rate: Option<f64>,
}

impl From<Report> for SubscriberView {
    fn from(report: Report) -> Self {
        Self {
            id: report.id.to_string(),
            peer: report.peer.to_string(),
            shard: report.shard,
            capacity: report.capacity,
            in_flight: report.in_flight,
            max_hz: hertz(report.max_hz),
            instruments: report.instruments,
            waiting: report.waiting,
            received_ticks: report.received,
            delivered: report.delivered,
            conflated: report.conflated,
            pending: report.pending,
            withdrawn: report.withdrawn,
            batches: report.batches,
            blocked: report.blocked,
            bytes_in_flight: report.bytes_in_flight,
            bytes_window: report.bytes_window,
            line_rate: report.line_rate.map(f64::round),
        }
    }
}

/// The total beside the list is the number connected: more than the list has when a shard did not
/// answer in time.
pub(super) async fn subscribers(
    State(inner): State<Arc<Inner>>,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Response, Problem> {
    let part = Part::of(part)?;
    let connected = inner.gateway.control().subscribers();
    let reports = inner.gateway.report(None).await;
    let views: Vec<SubscriberView> = reports
        .into_iter()
        .map(SubscriberView::from)
        .filter(|view| part.wants(&view.peer) || part.wants(&view.id))
        .take(part.limit())
        .collect();
    Ok(list(&views, connected))
}

/// An instrument with its newest quote.
#[derive(Debug, Serialize)]
struct InstrumentView<'a> {
    instrument: &'a str,
    tick: u64,
    bid: Option<String>,
    bid_size: Option<String>,
    ask: Option<String>,
    ask_size: Option<String>,
    last: Option<String>,
    last_size: Option<String>,
    venue_time: Option<i64>,
    receive_time: i64,
    feed: Option<&'a str>,
    health: Option<&'static str>,
}

fn digits(value: Option<Decimal>) -> Option<String> {
    let mut text = Vec::new();
    decimal::write(value?, &mut text);
    String::from_utf8(text).ok()
}

/// Instruments that have had a tick, in the order of their first. The total is the number that the
/// list would have without a limit.
pub(super) async fn instruments(
    State(inner): State<Arc<Inner>>,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Response, Problem> {
    let part = Part::of(part)?;
    let gateway = inner.gateway.clone();
    inner.work(move || instruments_of(&gateway, &part)).await
}

fn instruments_of(gateway: &Gateway, part: &Part) -> Response {
    let (known, feeds, board) = (gateway.instruments(), gateway.feeds(), gateway.board());
    let mut views = Vec::new();
    let mut total = 0;
    for index in 0..known.len() {
        #[expect(clippy::cast_possible_truncation, reason = "ids are 32 bits")]
        let id = InstrumentId(index as u32);
        let name = known.name(id);
        if board.tick(index) == 0 || !part.wants(name) {
            continue;
        }
        total += 1;
        if views.len() == part.limit() {
            continue;
        }
        let Some(quote) = board.get(index) else { continue };
        let feed = known.owner(id).map(|feed| feeds.get(feed));
        views.push(InstrumentView {
            instrument: name,
            tick: quote.tick,
            bid: digits(quote.bid),
            bid_size: digits(quote.bid_size),
            ask: digits(quote.ask),
            ask_size: digits(quote.ask_size),
            last: digits(quote.last),
            last_size: digits(quote.last_size),
            venue_time: quote.venue_time,
            receive_time: quote.receive_time,
            feed: feed.map(|feed| feed.name()),
            health: feed.map(|feed| feed.health().0.as_str()),
        });
    }
    list(&views, total)
}

/// Counts by kind, without those that are zero.
type Counts = BTreeMap<&'static str, u64>;

fn counts(all: impl Iterator<Item = (&'static str, u64)>) -> Counts {
    all.filter(|(_, count)| *count > 0).collect()
}

#[derive(Debug, Serialize)]
struct FeedView<'a> {
    name: &'a str,
    venue: &'a str,
    health: &'static str,
    reason: Option<&'static str>,
    since: i64,
    messages: Messages,
    /// Messages of which nothing was used, by reason.
    refused: Counts,
    /// What was odd about messages that were used.
    oddities: Counts,
    /// What the reader of the source met, before anything was decoded.
    lines: LinesView,
    /// Passes over a recording after the first.
    passes: u64,
    /// Connections after the first.
    reconnects: u64,
    /// Decoded quotes and fills that a worker refused.
    refused_dispatches: u64,
    damaged: bool,
    problem: Option<String>,
    quotes: WorkerView,
    fills: WorkerView,
}

/// Every message is in exactly one of these, or in `refused`; `total` is the sum of all.
#[derive(Debug, Serialize)]
struct Messages {
    total: u64,
    quote: u64,
    fill: u64,
    unknown: u64,
    refused: u64,
    unused: Counts,
    control: Counts,
}

#[derive(Debug, Serialize)]
struct LinesView {
    total: u64,
    messages: u64,
    marks: u64,
    blank: u64,
    other_records: u64,
    bad_total: u64,
    bad: BTreeMap<&'static str, BadView>,
}

#[derive(Debug, Serialize)]
struct BadView {
    count: u64,
    first_line: u64,
}

/// A worker between a feed and what stands behind it. What was dispatched is conflated, handled,
/// discarded, or on its way. The fills' worker conflates nothing, it folds: its second figure is
/// called `coalesced`.
#[derive(Debug, Serialize)]
struct WorkerView {
    dispatched: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflated: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coalesced: Option<u64>,
    handled: u64,
    errors: u64,
    discarded: u64,
    /// Keys that wait, approximately.
    pending: usize,
    /// Keys that may wait.
    capacity: usize,
}

impl WorkerView {
    fn new(counters: Counters, (pending, capacity): (usize, usize), folds: bool) -> Self {
        let (conflated, coalesced) =
            if folds { (None, Some(counters.conflated)) } else { (Some(counters.conflated), None) };
        Self {
            dispatched: counters.dispatched,
            conflated,
            coalesced,
            handled: counters.handled,
            errors: counters.errors,
            discarded: counters.discarded,
            pending,
            capacity,
        }
    }
}

impl From<&Tally> for LinesView {
    fn from(tally: &Tally) -> Self {
        Self {
            total: tally.lines,
            messages: tally.messages,
            marks: tally.marks,
            blank: tally.blank_lines,
            other_records: tally.other_records,
            bad_total: tally.bad_lines(),
            bad: tally
                .bad_by_reason()
                .map(|(reason, bad)| {
                    (reason.name(), BadView { count: bad.count, first_line: bad.first_line })
                })
                .collect(),
        }
    }
}

impl<'a> FeedView<'a> {
    fn new(feed: &'a Feed) -> Self {
        let (health, since) = feed.health();
        let figures = feed.figures();
        let of_group = |group: &'static str| {
            let classes = figures.classes.iter().filter(move |(class, _)| class.group() == group);
            counts(classes.map(|(class, count)| (class.label(), *count)))
        };
        let of = |class: Class| figures.classes[class.index()].1;
        let refused = of_group("refused");
        Self {
            name: feed.name(),
            venue: feed.venue(),
            health: health.as_str(),
            reason: health.reason(),
            since,
            messages: Messages {
                total: figures.classes.iter().map(|(_, count)| count).sum(),
                quote: of(Class::Quote),
                fill: of(Class::Fill),
                unknown: of(Class::Unknown),
                refused: refused.values().sum(),
                unused: of_group("unused"),
                control: of_group("control"),
            },
            refused,
            oddities: counts(figures.oddities.iter().map(|(odd, count)| (odd.label(), *count))),
            lines: (&figures.tally).into(),
            passes: figures.passes,
            reconnects: figures.reconnects,
            refused_dispatches: figures.refused_dispatches,
            damaged: figures.damaged,
            quotes: WorkerView::new(figures.quotes, figures.quotes_queue, false),
            fills: WorkerView::new(figures.fills, figures.fills_queue, true),
            problem: figures.problem,
        }
    }
}

pub(super) async fn feeds(State(inner): State<Arc<Inner>>) -> Response {
    let feeds = inner.gateway.feeds();
    let views: Vec<_> = feeds.iter().map(|feed| FeedView::new(feed)).collect();
    list(&views, views.len())
}

#[derive(Debug, Serialize)]
struct VolumeView {
    account: String,
    instrument: String,
    fills: u64,
    bought: String,
    sold: String,
    notional: String,
}

/// The volumes and the audit of the fills in them.
///
/// The figures are read from the totals back to the codec, so in one answer *folded ≤ dispatched ≤
/// in*, and once the feeds are quiet all three are equal unless a fill was refused on the way.
/// Nothing is subtracted: a fill that did not arrive shows as a difference, and where it went is
/// told by `refused_dispatches` (of quotes and fills) and `refused_fills`.
#[derive(Debug, Serialize)]
struct Volumes {
    volumes: Vec<VolumeView>,
    /// Pairs of account and instrument, whatever the limit of the list.
    total: usize,
    /// Fills that the codecs accepted.
    fills_in: u64,
    /// Fills that the workers between codec and ledger accepted.
    dispatched_fills: u64,
    /// Fills in the totals.
    folded_fills: u64,
    /// Decoded quotes and fills that a worker refused.
    refused_dispatches: u64,
    /// Fills that could not be added to their total.
    refused_fills: u64,
}

/// All volumes, sorted by account and instrument; `contains` looks at `account instrument`.
pub(super) async fn volumes(
    State(inner): State<Arc<Inner>>,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Response, Problem> {
    let part = Part::of(part)?;
    let gateway = inner.gateway.clone();
    inner.work(move || json(StatusCode::OK, &volumes_of(&gateway, &part))).await
}

fn volumes_of(gateway: &Gateway, part: &Part) -> Volumes {
    let totals = gateway.ledger().totals();
    let folded_fills = totals.iter().map(|total| total.volume.fills).sum();
    let refused_fills = gateway.ledger().refused_fills();
    let figures: Vec<_> = gateway.feeds().iter().map(|feed| feed.figures()).collect();
    let dispatched_fills = figures.iter().map(|figures| figures.fills.dispatched).sum();
    let refused_dispatches = figures.iter().map(|figures| figures.refused_dispatches).sum();
    let fills_in = gateway.feeds().iter().map(|feed| feed.counted(Class::Fill)).sum();
    let total = totals.len();
    let volumes = totals
        .into_iter()
        .filter(|total| part.wants(&format!("{} {}", total.account, total.instrument)))
        .take(part.limit())
        .map(|total| VolumeView {
            account: total.account,
            instrument: total.instrument,
            fills: total.volume.fills,
            bought: total.volume.bought.to_string(),
            sold: total.volume.sold.to_string(),
            notional: total.volume.notional.to_string(),
        })
        .collect();
    Volumes {
        volumes,
        total,
        fills_in,
        dispatched_fills,
        folded_fills,
        refused_dispatches,
        refused_fills,
    }
}
