//! What is in flight to a subscriber whose line is slow.

use std::time::Duration;

use tidegate::gateway::{Limits, Report};

use super::gateway_support::{Load, Rig, subscribe};

/// Bytes of a quote as this market spells it, about.
const QUOTE: u64 = 170;

/// A reader of about 2 MB/s of a market that offers more; answers the quotes of its latest batches
/// and its report while under way.
async fn read_slowly(limits: Limits) -> (Vec<usize>, Report) {
    let rig = Rig::start(limits).await;
    let mut market = rig.market("binance");
    for n in 0..1_000 {
        market.tick(&format!("S{n}"));
    }
    let mut next = 0;
    let load = Load::run(market, 200, move |market| {
        next = (next + 1) % 1_000;
        market.tick(&format!("S{next}"));
    });
    let mut client = rig.narrow_client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    let mut sizes = Vec::new();
    let until = tokio::time::Instant::now() + Duration::from_millis(1_500);
    while tokio::time::Instant::now() < until {
        let message = client.next().await;
        let quotes = message["quotes"].as_array().map_or(0, Vec::len);
        sizes.push(quotes);
        tokio::time::sleep(Duration::from_micros(quotes as u64 * QUOTE / 2)).await;
    }
    let report = rig.report(&client).await;
    load.end();
    rig.settle(&mut client).await;
    (sizes.split_off(sizes.len() - sizes.len().min(10)), report)
}

#[tokio::test]
async fn a_slow_reader_gets_smaller_batches_and_accounts_that_add_up() {
    let bounded = Limits { max_in_flight: Duration::from_millis(5), ..Limits::default() };
    let (sizes, report) = read_slowly(bounded).await;
    let none = Limits { max_in_flight: Duration::ZERO, ..Limits::default() };
    let (unbounded, unbounded_report) = read_slowly(none).await;
    let mean = |sizes: &[usize]| sizes.iter().sum::<usize>() / sizes.len();
    assert!(mean(&sizes) * 2 < mean(&unbounded), "{sizes:?} against {unbounded:?}");
    let window = report.bytes_window.unwrap();
    assert!(window < 60_000 && report.bytes_in_flight <= window.max(2_048), "{report:?}");
    assert!(report.line_rate.is_some_and(|rate| rate < 20e6), "{report:?}");
    assert_eq!(unbounded_report.bytes_window, None);
}
