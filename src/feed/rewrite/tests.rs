use bytes::Bytes;

use super::super::format::Mark;
use super::super::reader::Reader;
use super::super::recording::Recording;
use super::super::replay::{ReplayOptions, Speed};
use super::*;

const T: i64 = 1_700_000_000_123_456_789;

type Kept = (Option<i64>, RecordKind, Vec<u8>);

/// Messages of every odd kind, between two marks.
fn odd() -> Vec<Kept> {
    let texts: [&[u8]; 11] = [
        b"{\"a\":1.50}",
        b"pong",
        b"",
        b" leading",
        b"trailing ",
        b"line\nbreak",
        b"carriage\r",
        b"\xff\x00",
        b"quote \" backslash \\ control \x01 \xe6\xbd\xae",
        b"{\"torn\":",
        b"[1,2]",
    ];
    let mut records = vec![(Some(T), RecordKind::Mark(Mark::Connected), Vec::new())];
    records.extend(
        texts
            .iter()
            .zip(0..)
            .map(|(text, n)| (Some(T + n * 1_000_001), RecordKind::Message, text.to_vec())),
    );
    records.push((Some(T + 99_000_000), RecordKind::Mark(Mark::Gap { lost: 3 }), Vec::new()));
    records
}

fn recorded(records: &[Kept]) -> Vec<u8> {
    let mut recorder = Recorder::new(Vec::new(), RecorderOptions::default()).unwrap();
    for (time, kind, text) in records {
        match *kind {
            RecordKind::Message => recorder.message(time.unwrap(), text).unwrap(),
            RecordKind::Mark(mark) => recorder.mark(time.unwrap(), mark).unwrap(),
        }
    }
    recorder.finish().unwrap().0
}

fn read(file: Vec<u8>) -> Vec<Kept> {
    let mut reader = Reader::from_bytes("memory", Bytes::from(file)).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.read_next() {
        records.push((record.receive_time, record.kind, record.text.to_vec()));
    }
    assert_eq!((reader.damage(), reader.tally().bad_lines()), (None, 0));
    records
}

fn into(target: Target, files: Vec<Vec<u8>>) -> (Vec<u8>, Rewritten) {
    let recordings = files
        .into_iter()
        .map(|file| Recording::from_bytes("memory", file.into(), 1 << 30).unwrap())
        .collect();
    let options = ReplayOptions { speed: Speed::Max, ..ReplayOptions::default() };
    let mut replay = Replay::new(recordings, options).unwrap();
    let mut sink = Sink::new(target, Vec::new()).unwrap();
    let done = rewrite(&mut replay, &mut sink, |_, _| {}).unwrap();
    (sink.finish().unwrap(), done)
}

#[test]
fn our_own_format_keeps_everything_and_the_others_say_what_they_lose() {
    let whole = odd();
    let (file, done) = into(Target::Recording, vec![recorded(&whole)]);
    assert_eq!(read(file), whole);
    assert_eq!((done.messages, done.marks, done.messages_lost, done.marks_lost), (11, 2, 0, 0));

    // Empty, a blank in front, a line's end, a carriage return behind, not UTF-8.
    let (file, done) = into(Target::Stamped, vec![recorded(&whole)]);
    assert_eq!((done.messages, done.messages_lost, done.marks_lost), (6, 5, 2));
    let fit = |(_, kind, text): &&Kept| *kind == RecordKind::Message && fits_a_line(text);
    let expected: Vec<Kept> = whole.iter().filter(fit).cloned().collect();
    assert_eq!(read(file.clone()), expected);
    let (back, _) = into(Target::Recording, vec![file]);
    assert_eq!(read(back), expected, "and there and back again");

    let (file, done) = into(Target::Cryptofeed, vec![recorded(&whole)]);
    assert_eq!((done.messages, done.messages_lost, done.marks_lost), (10, 1, 2));
    let fit =
        |(_, kind, text): &&Kept| *kind == RecordKind::Message && std::str::from_utf8(text).is_ok();
    let expected: Vec<Kept> = whole.iter().filter(fit).cloned().collect();
    assert_eq!(read(file.clone()), expected);
    let (back, _) = into(Target::Recording, vec![file]);
    assert_eq!(read(back), expected, "and there and back again");
}

#[test]
fn recordings_are_merged_by_time_and_those_named_first_go_first() {
    let file = |times: &[i64], name: &str| {
        let records: Vec<Kept> = times
            .iter()
            .map(|time| (Some(T + time), RecordKind::Message, format!("{name}{time}").into_bytes()))
            .collect();
        recorded(&records)
    };
    let (merged, done) =
        into(Target::Recording, vec![file(&[1, 5, 5, 9], "a"), file(&[0, 5, 7], "b")]);
    let texts: Vec<String> =
        read(merged).into_iter().map(|record| String::from_utf8(record.2).unwrap()).collect();
    assert_eq!(texts, ["b0", "a1", "a5", "a5", "b5", "b7", "a9"]);
    assert_eq!(done.span, Some((T, T + 9)));
}

#[test]
fn a_damaged_source_is_written_up_to_its_damage_and_that_is_told() {
    let whole = recorded(&odd());
    let (file, done) = into(Target::Recording, vec![whole[..whole.len() / 2].to_vec()]);
    assert_eq!(done.damaged.len(), 1);
    let kept = read(file);
    assert_eq!(kept, odd()[..kept.len()]);
}

#[test]
fn a_record_without_a_time_gets_that_of_the_one_before_it() {
    let (file, done) = into(Target::Recording, vec![b"{\"a\":1}\n{\"a\":2}\n".to_vec()]);
    assert_eq!(done.times_made_up, 2);
    assert!(read(file).iter().all(|record| record.0 == Some(0)));
}
