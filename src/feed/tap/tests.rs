use super::super::format::RecordKind;
use super::super::reader::Reader;
use super::super::rolling::{Place, RollingOptions};
use super::*;

const LONG: Duration = Duration::from_secs(60);

fn rolling(path: &std::path::Path) -> Rolling {
    let place = Place::File { path: path.to_owned(), replace: false };
    Rolling::new("feed", place, RollingOptions::default()).unwrap()
}

#[test]
fn what_a_feed_takes_in_is_in_the_file_exactly_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken");
    let mut recorders = Recorders::new(Clock::system());
    let mut tap = recorders.start("feed", rolling(&path), TapOptions::default()).unwrap();
    tap.mark(1, Mark::Connected);
    for number in 0..20_000 {
        tap.message(number, format!("{{\"n\":{number}}}").as_bytes());
    }
    tap.mark(2, Mark::Disconnected);
    assert!(recorders.finish(LONG));
    let figures = tap.figures();
    assert_eq!((figures.records(), figures.lost_to_overflow()), (20_002, 0));
    assert_eq!((figures.waiting_bytes(), figures.files()), (0, 1));
    assert_eq!(figures.file_bytes(), std::fs::metadata(&path).unwrap().len());
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.read_next().unwrap().kind, RecordKind::Mark(Mark::Connected));
    for number in 0..20_000 {
        let record = reader.read_next().unwrap();
        assert_eq!(record.receive_time, Some(number));
        assert_eq!(record.text, format!("{{\"n\":{number}}}").as_bytes());
    }
    assert_eq!(reader.read_next().unwrap().kind, RecordKind::Mark(Mark::Disconnected));
    assert!(!reader.advance() && reader.damage().is_none());
}

#[test]
fn b30_a_quiet_feed_is_on_disk_without_another_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quiet");
    let clock = Clock::system();
    let mut recorders = Recorders::new(clock.clone());
    let mut tap = recorders.start("feed", rolling(&path), TapOptions::default()).unwrap();
    tap.message(clock.wall(), b"{\"only\":1}");
    let until = clock.now() + LONG;
    while tap.figures().records() == 0 && clock.now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    // The file as a kill would leave it now.
    let mut reader = Reader::from_bytes("killed", std::fs::read(&path).unwrap().into()).unwrap();
    assert_eq!(reader.read_next().unwrap().text, b"{\"only\":1}");
    assert!(!reader.advance() && reader.damage().is_some());
    assert!(recorders.finish(LONG));
}

#[test]
fn a_recorder_that_cannot_keep_up_loses_by_count_and_marks_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flooded");
    let mut recorders = Recorders::new(Clock::system());
    let options = TapOptions { queue_bytes: 2 * BATCH_BYTES };
    let mut tap = recorders.start("feed", rolling(&path), options).unwrap();
    // Far faster than anything packs.
    let text = vec![b'x'; 10_000];
    let sent = 20_000;
    for number in 0..sent {
        tap.message(number, &text);
    }
    let lost = tap.figures().lost_to_overflow();
    assert!(lost > 0, "the flood was not wide enough");
    assert!(tap.figures().waiting_bytes() <= options.queue_bytes);
    let until = Clock::system();
    while tap.figures().waiting_bytes() > 0 && until.now().as_nanos() < 60_000_000_000 {
        std::thread::sleep(Duration::from_millis(1));
    }
    tap.message(sent, b"behind");
    let lost = tap.figures().lost_to_overflow().max(lost);
    assert!(recorders.finish(LONG));
    let mut reader = Reader::open(&path).unwrap();
    let (mut next, mut told) = (0, 0);
    while let Some(record) = reader.read_next() {
        match record.kind {
            RecordKind::Mark(Mark::Gap { lost }) => {
                assert_eq!(record.receive_time, Some(next), "the time of the first one lost");
                told += lost;
                next += i64::try_from(lost).unwrap();
            }
            _ => {
                assert_eq!(record.receive_time, Some(next), "each gap says how many are missing");
                next += 1;
            }
        }
    }
    assert_eq!((next, told, reader.damage()), (sent + 1, lost, None));
}
