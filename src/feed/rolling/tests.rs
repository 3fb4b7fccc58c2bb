use super::super::format::RecordKind;
use super::super::reader::Reader;
use super::*;

/// 2026-01-05 10:00:00 UTC.
const T: i64 = 1_767_607_200_000_000_000;
const SECOND: i64 = 1_000_000_000;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The texts and gaps of a file that must be whole.
fn texts(path: &Path) -> Vec<String> {
    let mut reader = Reader::open(path).unwrap();
    let mut texts = Vec::new();
    while let Some(record) = reader.read_next() {
        texts.push(match record.kind {
            RecordKind::Mark(Mark::Gap { lost }) => format!("gap of {lost}"),
            RecordKind::Mark(mark) => mark.name().to_owned(),
            RecordKind::Message => String::from_utf8(record.text.to_vec()).unwrap(),
        });
    }
    assert_eq!(reader.damage(), None, "{}", path.display());
    texts
}

fn every_ten_seconds() -> RollingOptions {
    RollingOptions { rotate_every: Some(Duration::from_secs(10)), ..RollingOptions::default() }
}

#[test]
fn files_follow_one_another_by_time_and_nothing_is_missing_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Folder(folder.path().join("made"));
    let mut rolling = Rolling::new("spot", place, every_ten_seconds()).unwrap();
    for second in 0..25 {
        rolling.message(T + second * SECOND, second.to_string().as_bytes()).unwrap();
    }
    let summary = rolling.finish().unwrap();
    assert_eq!((summary.records, summary.files, summary.lost), (25, 3, 0));
    let folder = folder.path().join("made");
    let files = names(&folder);
    assert_eq!(files[0], "spot-20260105T100000.000Z.jsonl.zst");
    assert_eq!(files[1], "spot-20260105T100010.000Z.jsonl.zst");
    let all: Vec<_> = files.iter().flat_map(|file| texts(&folder.join(file))).collect();
    assert_eq!(all, (0..25).map(|second| second.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_file_that_has_its_size_is_followed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = RecorderOptions { flush_records: 1, ..RecorderOptions::default() };
    let options =
        RollingOptions { rotate_bytes: Some(2000), recorder, ..RollingOptions::default() };
    let place = Place::Folder(folder.path().to_owned());
    let mut rolling = Rolling::new("spot", place, options).unwrap();
    for number in 0..1000 {
        rolling.message(T, format!("message {number}").as_bytes()).unwrap();
    }
    rolling.finish().unwrap();
    let files = names(folder.path());
    assert!(files.len() > 2, "{files:?}");
    let read: usize = files.iter().map(|file| texts(&folder.path().join(file)).len()).sum();
    assert_eq!(read, 1000, "of one receive time, and told apart");
}

#[test]
fn only_the_newest_files_of_this_feed_are_kept() {
    for (options, kept) in [
        (RollingOptions { keep_files: Some(3), ..every_ten_seconds() }, 3),
        (RollingOptions { keep_files: Some(1), ..every_ten_seconds() }, 1),
        (RollingOptions { keep_bytes: Some(0), ..every_ten_seconds() }, 1),
        (RollingOptions { keep_bytes: Some(1 << 30), ..every_ten_seconds() }, 6),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let others = [
            "spot-2-20200105T100000.000Z.jsonl.zst",
            "spot-20200105T100000.000Z.jsonl.zst.partial",
            "spot-yesterday.jsonl.zst",
            "perp-20200105T100000.000Z.jsonl.zst",
        ];
        for other in others {
            fs::write(folder.path().join(other), "not ours").unwrap();
        }
        let place = Place::Folder(folder.path().to_owned());
        let mut rolling = Rolling::new("spot", place, options).unwrap();
        for second in 0..60 {
            rolling.message(T + second * SECOND, b"{}").unwrap();
        }
        let summary = rolling.finish().unwrap();
        let files = names(folder.path());
        assert_eq!(files.len(), kept + others.len(), "{files:?}");
        assert_eq!(summary.removed, 6 - kept as u64);
        assert!(files.contains(&"spot-20260105T100050.000Z.jsonl.zst".to_owned()), "{files:?}");
        assert!(others.iter().all(|other| files.contains(&(*other).to_owned())), "{files:?}");
    }
}

#[test]
fn a_single_file_is_refused_if_it_is_there_and_is_replaced_only_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.jsonl.zst");
    fs::write(&path, "precious").unwrap();
    let place = |replace| Place::File { path: path.clone(), replace };
    let refused = Rolling::new("spot", place(false), RollingOptions::default()).err().unwrap();
    assert!(refused.to_string().contains("one.jsonl.zst"), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    let mut rolling = Rolling::new("spot", place(true), RollingOptions::default()).unwrap();
    rolling.message(T, b"new").unwrap();
    rolling.finish().unwrap();
    assert_eq!(texts(&path), ["new"]);
}

#[test]
fn after_a_failure_the_next_file_begins_with_the_gap() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    let mut rolling =
        Rolling::new("spot", Place::Folder(inner.clone()), every_ten_seconds()).unwrap();
    rolling.message(T, b"first").unwrap();
    // The folder goes away: the next file cannot be made.
    let moved = folder.path().join("moved");
    fs::rename(&inner, &moved).unwrap();
    assert!(rolling.message(T + 20 * SECOND, b"lost").is_err());
    rolling.message(T + 21 * SECOND, b"lost too").unwrap();
    assert!(rolling.has_failed());
    assert_eq!(rolling.summary().lost, 2);
    fs::rename(&moved, &inner).unwrap();
    rolling.message(T + 22 * SECOND, b"not tried yet").unwrap();
    rolling.retry();
    rolling.message(T + 23 * SECOND, b"again").unwrap();
    let summary = rolling.finish().unwrap();
    assert_eq!((summary.lost, summary.files), (3, 2));
    let files = names(&inner);
    assert_eq!(texts(&inner.join(&files[0])), ["first"], "closed in good order");
    assert_eq!(texts(&inner.join(&files[1])), ["gap of 3", "again"]);
}

#[test]
fn a_message_that_is_too_long_is_a_gap_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    let place = Place::File { path: path.clone(), replace: false };
    let mut rolling = Rolling::new("spot", place, RollingOptions::default()).unwrap();
    rolling.message(T, b"before").unwrap();
    assert!(rolling.message(T, &vec![b'x'; 3 << 20]).is_err());
    rolling.message(T, b"behind").unwrap();
    assert_eq!(rolling.finish().unwrap().lost, 1);
    assert_eq!(texts(&path), ["before", "gap of 1", "behind"]);
}
