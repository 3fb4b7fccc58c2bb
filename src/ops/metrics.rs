//! The figures for Prometheus, read at the moment of a scrape from where they are kept.
//!
//! Names follow the Prometheus rules: `tidegate_`, the thing, its unit, `_total` for what only
//! rises. No label names a subscriber or an account, so the number of series depends on the
//! configuration alone; `/v1/subscribers` and `/v1/volumes` tell the rest.
//!
//! *Conflated* is counted twice, because it happens in two places: between a feed and the board
//! (`worker_conflated`, once for everybody) and between the board and each subscriber
//! (`subscriber_ticks_conflated`). What was *lost* is elsewhere: `feed_refused`,
//! `feed_bad_lines`, `feed_dispatches_refused`, `feed_records_lost`, `worker_discarded`, `ledger_fills_refused`.

use std::fmt;

use axum::http::HeaderValue;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeMetric, MetricEncoder, NoLabelSet, prometheus_text,
    text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::admin::Admin;
use super::reload::Outcomes;
use crate::feed::{BadLine, RecordFigures};
use crate::gateway::{Close, Refused, Why};
use crate::ingest::{Feed, FeedFigures};
use crate::market::Health;
use crate::venue::Class;
use crate::worker::Counters;

/// How the figures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0, for those who ask for it; Prometheus does.
    OpenMetrics,
    /// The older text format, which everything reads.
    Prometheus,
}

impl Format {
    pub(super) fn accepted(accept: Option<&HeaderValue>) -> Self {
        let accept = accept.and_then(|accept| accept.to_str().ok()).unwrap_or("");
        if accept.contains("application/openmetrics-text") {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// What the answer's header says.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// Every figure of a running gateway.
#[derive(Debug)]
pub struct Metrics(Registry);

impl Metrics {
    /// The figures of what the admin server shows.
    #[must_use]
    pub fn new(admin: Admin) -> Self {
        let mut registry = Registry::with_prefix("tidegate");
        registry.register_collector(Box::new(Figures(admin)));
        Self(registry)
    }

    /// Reads and writes every figure. O(feeds + subscribers); may block for the lock of the
    /// configuration.
    ///
    /// # Errors
    ///
    /// None but for want of memory.
    pub fn write(&self, format: Format) -> Result<String, fmt::Error> {
        let mut out = String::new();
        match format {
            Format::OpenMetrics => text::encode(&mut out, &self.0)?,
            Format::Prometheus => prometheus_text::encode(&mut out, &self.0)?,
        }
        Ok(out)
    }
}

#[derive(Debug)]
struct Figures(Admin);

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet(encoder);
        let feeds: Vec<(&Feed, FeedFigures)> =
            self.0.gateway.feeds().iter().map(|feed| (&**feed, feed.figures())).collect();
        self.program(&mut sheet)?;
        of_feeds(&feeds, &mut sheet)?;
        of_workers(&feeds, &mut sheet)?;
        self.subscribers(&mut sheet)?;
        self.deliveries(&mut sheet)?;
        self.reloads(&mut sheet)
    }
}

impl Figures {
    fn program(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let gateway = &self.0.gateway;
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        sheet.info("build", "The program.", &version)?;
        sheet.gauge(
            "ready",
            "Whether the program has started and was not told to stop.",
            u64::from(self.0.readiness.why_not().is_none()),
        )?;
        let instruments = gateway.instruments();
        sheet.gauge("instruments", "Instruments known.", instruments.len())?;
        sheet.gauge("instruments_limit", "Instruments that may be known.", instruments.limit())?;
        let (board, ledger) = (gateway.board(), gateway.ledger());
        sheet.counter(
            "board_encodings",
            "Quotes written as text: at most once per newest value, and only if wanted.",
            board.encodings(),
        )?;
        sheet.counter(
            "ledger_fills",
            "Fills in the totals of all accounts.",
            ledger.folded_fills(),
        )?;
        sheet.counter(
            "ledger_fills_refused",
            "Fills that could not be added to a total exactly.",
            ledger.refused_fills(),
        )
    }

    fn subscribers(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let control = self.0.gateway.control();
        let limits = control.limits();
        sheet.gauge("subscribers", "Subscribers connected.", control.subscribers())?;
        sheet.gauge(
            "subscribers_limit",
            "Subscribers that may be connected.",
            limits.max_subscribers,
        )?;
        sheet.gauge(
            "subscriber_batches_in_flight",
            "Batches that their subscribers have not confirmed.",
            control.in_flight(),
        )?;
        sheet.gauge(
            "subscriber_capacity",
            "Unconfirmed batches that a subscriber may have, unless set for it alone; 0 pauses.",
            limits.capacity,
        )?;
        sheet.gauge(
            "subscriber_rate_limit_hertz",
            "Batches a second that a subscriber may get, unless set for it alone; 0 for no ceiling.",
            limits.max_hz,
        )?;
        sheet.gauge("limits_generation", "Changes of limits so far.", limits.generation)
    }

    fn deliveries(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let stats = self.0.gateway.stats();
        sheet.counter(
            "subscriber_quotes_delivered",
            "Quotes written to subscribers.",
            stats.delivered.get(),
        )?;
        sheet.counter(
            "subscriber_ticks_conflated",
            "Ticks skipped for subscribers because a newer quote stood for them.",
            stats.conflated.get(),
        )?;
        sheet.counters(
            "subscriber_batches",
            "Batches sent, by what their oldest change had waited for.",
            Why::ALL.iter().map(|why| ([("why", why.as_str())], stats.batches[why.index()].get())),
        )?;
        sheet.sized("subscriber_sent", "Text of batches sent.", stats.bytes.get())?;
        sheet.histogram(
            "batch_held",
            "From the acceptance of the oldest change in a batch to its send.",
            &stats.held,
        )?;
        sheet.counter(
            "sweeps",
            "Sweeps of the shards over what has changed.",
            stats.sweeps.get(),
        )?;
        sheet.counter(
            "connections_accepted",
            "Connections that became subscribers.",
            stats.accepted.get(),
        )?;
        sheet.counters(
            "connections_closed",
            "Connections that the gateway closed, by reason.",
            Close::ALL
                .iter()
                .map(|close| ([("reason", close.label())], stats.closed[close.index()].get())),
        )?;
        sheet.counters(
            "handshakes_refused",
            "Handshakes refused, by reason.",
            Refused::ALL.iter().map(|&refused| {
                ([("reason", refused.label())], stats.refused[refused as usize].get())
            }),
        )
    }

    fn reloads(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let outcomes = self.0.reload.outcomes();
        let failed = Outcomes::FAILURES.into_iter().zip(outcomes.failed);
        sheet.counters(
            "config_reloads",
            "Reloads of the configuration, by outcome: success, or what stood in the way.",
            std::iter::once(("success", outcomes.succeeded))
                .chain(failed)
                .map(|(outcome, count)| ([("outcome", outcome)], count)),
        )?;
        sheet.gauge(
            "config_last_reload_successful",
            "Whether the last reload succeeded; 1 before the first.",
            u64::from(!outcomes.last_failed),
        )?;
        sheet.times(
            "config_last_reload_success_timestamp",
            "When a reload last succeeded; absent before the first.",
            outcomes.last_success.map(|at| ([], at)),
        )
    }
}

fn of_feeds(feeds: &[(&Feed, FeedFigures)], sheet: &mut Sheet<'_>) -> fmt::Result {
    let each = |figure: fn(&Feed, &FeedFigures) -> u64| {
        feeds.iter().map(move |(feed, figures)| ([("feed", feed.name())], figure(feed, figures)))
    };
    sheet.gauges(
        "feed_live",
        "Whether data flows: 1 live, 0 stale.",
        each(|feed, _| u64::from(feed.health().0 == Health::Live)),
    )?;
    sheet.times(
        "feed_health_changed_timestamp",
        "When the health of a feed last changed.",
        feeds.iter().map(|(feed, _)| ([("feed", feed.name())], feed.health().1)),
    )?;
    sheet.counters(
        "feed_ticks",
        "Ticks received: messages that made a quote.",
        each(|feed, _| feed.counted(Class::Quote)),
    )?;
    sheet.counters("feed_fills", "Fills received.", each(|feed, _| feed.counted(Class::Fill)))?;
    sheet.counters(
        "feed_messages",
        "Messages received; each is of exactly one class.",
        feeds.iter().flat_map(|(feed, figures)| {
            figures.classes.iter().map(|&(class, count)| {
                let labels =
                    [("feed", feed.name()), ("group", class.group()), ("class", class.label())];
                (labels, count)
            })
        }),
    )?;
    sheet.counters(
        "feed_refused",
        "Messages of which nothing was used, by reason.",
        feeds.iter().flat_map(|(feed, figures)| {
            let refused =
                figures.classes.iter().filter(|(class, _)| matches!(class, Class::Refused(_)));
            refused
                .map(|&(class, count)| ([("feed", feed.name()), ("reason", class.label())], count))
        }),
    )?;
    sheet.counters(
        "feed_oddities",
        "What was odd about messages that were used.",
        feeds.iter().flat_map(|(feed, figures)| {
            figures
                .oddities
                .iter()
                .map(|&(odd, count)| ([("feed", feed.name()), ("oddity", odd.label())], count))
        }),
    )?;
    sheet.counters(
        "feed_dispatches_refused",
        "Decoded quotes and fills that a worker refused.",
        each(|_, figures| figures.refused_dispatches),
    )?;
    sheet.counters("feed_lines", "Lines read.", each(|_, figures| figures.tally.lines))?;
    sheet.counters(
        "feed_bad_lines",
        "Lines skipped, by reason.",
        feeds.iter().flat_map(|(feed, figures)| {
            BadLine::ALL.iter().map(|&reason| {
                let labels = [("feed", feed.name()), ("reason", reason.name())];
                (labels, figures.tally.bad(reason).count)
            })
        }),
    )?;
    sheet.counters(
        "feed_passes",
        "Passes over a recording after the first.",
        each(|_, figures| figures.passes),
    )?;
    sheet.counters(
        "feed_reconnects",
        "Connections to the source after the first.",
        each(|_, figures| figures.reconnects),
    )?;
    sheet.gauges(
        "feed_damaged",
        "Whether a recording was found damaged.",
        each(|_, figures| u64::from(figures.damaged)),
    )?;
    let recorded = |figure: fn(&RecordFigures) -> u64| {
        feeds.iter().filter_map(move |(feed, _)| {
            Some(([("feed", feed.name())], figure(feed.record_figures()?)))
        })
    };
    sheet.counters(
        "feed_records_written",
        "Records in the files of a feed that is recorded.",
        recorded(RecordFigures::records),
    )?;
    sheet.counters(
        "feed_record_file_bytes",
        "Bytes of these files.",
        recorded(RecordFigures::file_bytes),
    )?;
    sheet.counters(
        "feed_records_lost",
        "Records that are missing in these files, by reason.",
        feeds.iter().filter_map(|(feed, _)| Some((feed, feed.record_figures()?))).flat_map(
            |(feed, figures)| {
                [("overflow", figures.lost_to_overflow()), ("failure", figures.lost_to_failures())]
                    .map(|(reason, count)| ([("feed", feed.name()), ("reason", reason)], count))
            },
        ),
    )
}

fn of_workers(feeds: &[(&Feed, FeedFigures)], sheet: &mut Sheet<'_>) -> fmt::Result {
    let each = |figure: fn(&Counters) -> u64| {
        feeds.iter().flat_map(move |(feed, figures)| {
            [("quotes", &figures.quotes), ("fills", &figures.fills)].map(|(worker, counters)| {
                ([("feed", feed.name()), ("worker", worker)], figure(counters))
            })
        })
    };
    let queues = |figure: fn((usize, usize)) -> usize| {
        feeds.iter().flat_map(move |(feed, figures)| {
            [("quotes", figures.quotes_queue), ("fills", figures.fills_queue)].map(
                |(worker, queue)| {
                    ([("feed", feed.name()), ("worker", worker)], figure(queue) as u64)
                },
            )
        })
    };
    sheet.counters(
        "worker_dispatched",
        "Quotes and fills given to the worker behind a feed.",
        each(|counters| counters.dispatched),
    )?;
    sheet.counters(
        "worker_conflated",
        "Quotes that gave way to a newer one of their instrument before the board's stage took them.",
        feeds.iter().map(|(feed, figures)| ([("feed", feed.name())], figures.quotes.conflated)),
    )?;
    sheet.counters(
        "worker_coalesced",
        "Fills added to others of their account before the ledger's stage took them; none is lost.",
        feeds.iter().map(|(feed, figures)| ([("feed", feed.name())], figures.fills.conflated)),
    )?;
    sheet.counters(
        "worker_handled",
        "Newest quotes and folded fills that the stage took.",
        each(|counters| counters.handled),
    )?;
    sheet.counters("worker_errors", "Failures of the stage.", each(|counters| counters.errors))?;
    sheet.counters(
        "worker_discarded",
        "Quotes and fills dropped by a hard stop.",
        each(|counters| counters.discarded),
    )?;
    sheet.gauges(
        "worker_pending",
        "Keys that wait for the stage, approximately.",
        queues(|(pending, _)| pending),
    )?;
    sheet.gauges(
        "worker_capacity",
        "Keys that may wait for the stage.",
        queues(|(_, capacity)| capacity),
    )
}

/// Writes one family after the other.
struct Sheet<'a>(DescriptorEncoder<'a>);

/// Names and values of a series' labels.
type Labels<'l, const N: usize> = [(&'static str, &'l str); N];

impl Sheet<'_> {
    fn family(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        kind: MetricType,
        write: impl FnOnce(MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        write(self.0.encode_descriptor(name, help, unit, kind)?)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.family(name, help, None, MetricType::Counter, |mut family| {
            family.encode_counter::<NoLabelSet, _, u64>(&value, None)
        })
    }

    /// A counter of bytes.
    fn sized(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.family(name, help, Some(&Unit::Bytes), MetricType::Counter, |mut family| {
            family.encode_counter::<NoLabelSet, _, u64>(&value, None)
        })
    }

    fn counters<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<'l, N>, u64)>,
    ) -> fmt::Result {
        self.family(name, help, None, MetricType::Counter, |mut family| {
            rows.into_iter().try_for_each(|(labels, value)| {
                family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
            })
        })
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
        self.family(name, help, None, MetricType::Gauge, |mut family| family.encode_gauge(&value))
    }

    fn gauges<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<'l, N>, u64)>,
    ) -> fmt::Result {
        self.family(name, help, None, MetricType::Gauge, |mut family| {
            rows.into_iter()
                .try_for_each(|(labels, value)| family.encode_family(&labels)?.encode_gauge(&value))
        })
    }

    /// Gauges of wall times, given in nanoseconds and written in seconds.
    fn times<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<'l, N>, i64)>,
    ) -> fmt::Result {
        self.family(name, help, Some(&Unit::Seconds), MetricType::Gauge, |mut family| {
            rows.into_iter().try_for_each(|(labels, nanoseconds)| {
                #[expect(clippy::cast_precision_loss, reason = "some 200 ns are lost, of a date")]
                let seconds = nanoseconds as f64 / 1e9;
                match labels.is_empty() {
                    true => family.encode_gauge(&seconds),
                    false => family.encode_family(&labels)?.encode_gauge(&seconds),
                }
            })
        })
    }

    /// A histogram of seconds.
    fn histogram(&mut self, name: &str, help: &str, histogram: &impl EncodeMetric) -> fmt::Result {
        let kind = histogram.metric_type();
        self.family(name, help, Some(&Unit::Seconds), kind, |family| histogram.encode(family))
    }

    fn info<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: &Labels<'_, N>,
    ) -> fmt::Result {
        self.family(name, help, None, MetricType::Info, |mut family| family.encode_info(labels))
    }
}
