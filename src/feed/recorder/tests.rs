use std::io::Cursor;

use bytes::Bytes;

use super::super::index::IndexState;
use super::super::reader::Reader;
use super::super::report::{Damage, DamageKind, Tally};
use super::super::seeded::Seeded;
use super::super::{RecordKind, Selection};
use super::*;

fn tiny_frames() -> RecorderOptions {
    RecorderOptions { flush_records: 7, frame_bytes: 700, ..RecorderOptions::default() }
}

/// A recording of `count` messages, one a second.
fn recording(count: i64) -> Vec<u8> {
    let mut recorder = Recorder::new(Vec::new(), tiny_frames()).unwrap();
    for number in 0..count {
        recorder.message(number, format!("{{\"number\":{number}}}").as_bytes()).unwrap();
    }
    recorder.finish().unwrap().0
}

#[test]
fn what_is_recorded_is_read_again_in_order_and_exactly() {
    let messages: [&[u8]; 4] = [b"{\"a\":1}", b"pong", b"\xff\xfe", b"line\nbreak"];
    let mut recorder = Recorder::new(Vec::new(), tiny_frames()).unwrap();
    recorder.mark(5, Mark::Connected).unwrap();
    for (time, text) in messages.iter().enumerate() {
        recorder.message(i64::try_from(time).unwrap() * 100, text).unwrap();
    }
    recorder.mark(-1, Mark::Disconnected).unwrap();
    let (file, summary) = recorder.finish().unwrap();
    assert_eq!((summary.records, summary.file_bytes), (6, file.len() as u64));

    let mut reader = Reader::from_bytes("memory", Bytes::from(file)).unwrap();
    let mut read = Vec::new();
    while let Some(record) = reader.read_next() {
        read.push((record.receive_time.unwrap(), record.kind, record.text.to_vec()));
    }
    assert_eq!(reader.damage(), None);
    assert_eq!(read[0], (5, RecordKind::Mark(Mark::Connected), Vec::new()));
    assert_eq!(read[5], (-1, RecordKind::Mark(Mark::Disconnected), Vec::new()));
    for (index, text) in messages.iter().enumerate() {
        let time = i64::try_from(index).unwrap() * 100;
        assert_eq!(read[index + 1], (time, RecordKind::Message, text.to_vec()));
    }
    assert_eq!((reader.tally().messages, reader.tally().marks), (4, 2));
}

#[test]
fn joined_recordings_are_one_recording() {
    let mut joined = recording(10);
    joined.extend(recording(10));
    let mut reader = Reader::from_bytes("memory", Bytes::from(joined)).unwrap();
    while reader.advance() {}
    assert_eq!((reader.tally().messages, reader.damage()), (20, None));
}

/// Plays a file's bytes; each record must be the next of a [`recording`].
fn plays(file: &[u8]) -> (u64, Option<Damage>, Tally) {
    let mut reader = match Reader::from_bytes("memory", Bytes::copy_from_slice(file)) {
        Ok(reader) => reader,
        Err(error) => panic!("{error}"),
    };
    let mut played = 0;
    while let Some(record) = reader.read_next() {
        assert_eq!(record.receive_time, Some(played));
        assert_eq!(record.text, format!("{{\"number\":{played}}}").as_bytes());
        played += 1;
    }
    (played.cast_unsigned(), reader.damage().cloned(), *reader.tally())
}

#[test]
fn b30_a_recording_cut_anywhere_plays_every_flushed_record_and_says_where_it_ends() {
    let mut recorder = Recorder::new(Vec::new(), tiny_frames()).unwrap();
    let mut flushed = Vec::new();
    for number in 0..100 {
        recorder.message(number, format!("{{\"number\":{number}}}").as_bytes()).unwrap();
        flushed.push((recorder.summary().file_bytes, recorder.summary().records));
    }
    let (whole, summary) = recorder.finish().unwrap();
    assert!(summary.frames > 2, "of several frames");
    let IndexState::Good(index) = Index::read(&mut Cursor::new(&whole)).unwrap() else { panic!() };
    for cut in 1..whole.len() {
        let (played, damage, _) = plays(&whole[..cut]);
        let least = flushed.iter().filter(|(at, _)| *at <= cut as u64).map(|(_, n)| *n).max();
        assert!(played >= least.unwrap_or(0), "cut at {cut}: {played} played");
        if cut as u64 >= index.covered() {
            assert_eq!(played, 100, "the index alone is torn");
        } else {
            let damage = damage.unwrap_or_else(|| panic!("nothing was said of the cut at {cut}"));
            assert_eq!(damage.record, played, "cut at {cut}");
            assert!(damage.file_offset <= cut as u64);
            let next = index.frames().iter().any(|frame| frame.file_offset == cut as u64);
            if next {
                assert_eq!(damage.kind, DamageKind::Unclosed, "a cut between frames is seen too");
            }
        }
    }
}

#[test]
fn b30_a_slow_feed_loses_no_more_than_the_age_of_a_flush() {
    let mut recorder = Recorder::new(Vec::new(), RecorderOptions::default()).unwrap();
    recorder.message(0, b"{\"first\":1}").unwrap();
    recorder.flush_due(499_999_999).unwrap();
    assert_eq!(recorder.summary().records, 0);
    recorder.flush_due(500_000_000).unwrap();
    assert_eq!(recorder.summary().records, 1, "in the file after half a second");
    assert!(!recorder.out.is_empty());
}

#[test]
fn every_flipped_byte_is_noticed_or_harmless() {
    let whole = recording(40);
    let mut harmless = 0;
    for at in 0..whole.len() {
        for flip in 1..=255 {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            let Ok(mut reader) = Reader::from_bytes("memory", Bytes::from(bytes)) else { continue };
            let mut same = true;
            let mut played = 0;
            while let Some(record) = reader.read_next() {
                same &= record.receive_time == Some(played)
                    && record.text == format!("{{\"number\":{played}}}").as_bytes();
                played += 1;
            }
            let noticed = reader.damage().is_some() || reader.tally().bad_lines() > 0;
            // zstd leaves a few bits of its headers free.
            assert!(noticed || same && played == 40, "byte {at} flipped by {flip}");
            harmless += usize::from(!noticed);
        }
    }
    // Most of the harmless ones are in the index, which has a sum of its own.
    assert!(harmless < whole.len() * 255 / 2, "{harmless} of {}", whole.len() * 255);
}

#[test]
fn a_range_is_the_same_with_the_index_and_without_whatever_the_order_of_the_stamps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shuffled");
    let mut random = Seeded::new(9);
    let mut recorder = Recorder::create(&path, tiny_frames()).unwrap();
    for number in 0..400_i64 {
        let time = number * 10 + i64::try_from(random.below(300)).unwrap();
        recorder.message(time, format!("{{\"number\":{number}}}").as_bytes()).unwrap();
    }
    recorder.finish().unwrap();
    let whole = std::fs::read(&path).unwrap();
    for _ in 0..200 {
        let bound = |random: &mut Seeded| {
            (random.below(8) > 0).then(|| i64::try_from(random.below(4600)).unwrap() - 100)
        };
        let selection = Selection::default().between(bound(&mut random), bound(&mut random));
        let texts = |mut reader: Reader| {
            let mut texts = Vec::new();
            while let Some(record) = reader.read_next() {
                texts.push((record.receive_time, record.text.to_vec()));
            }
            assert_eq!(reader.damage(), None);
            (texts, reader.tally().lines)
        };
        let all = Reader::from_bytes("memory", Bytes::from(whole.clone())).unwrap();
        let (scanned, all_lines) = texts(all.selecting(selection.clone()));
        let (found, lines) = texts(Reader::open_selected(&path, selection.clone()).unwrap());
        assert_eq!(found, scanned, "{selection:?}");
        assert!(lines <= all_lines);
        let inside = |time: &Option<i64>| time.is_some_and(|time| selection.has(time));
        assert!(found.iter().all(|(time, _)| inside(time)));
    }
    let late = Selection::default().between(Some(3900), None);
    let mut reader = Reader::open_selected(&path, late).unwrap();
    while reader.advance() {}
    assert!(reader.tally().lines < 150, "{} lines were read", reader.tally().lines);
}

#[test]
fn damage_behind_a_place_found_by_the_index_is_told_where_the_file_has_it() {
    let whole = recording(100);
    let IndexState::Good(index) = Index::read(&mut Cursor::new(&whole)).unwrap() else { panic!() };
    let last = *index.frames().last().unwrap();
    let mut bytes = whole.clone();
    let at = usize::try_from(last.file_offset).unwrap() + 12;
    bytes[at] ^= 0x55;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged");
    std::fs::write(&path, &bytes).unwrap();
    let selection = Selection::default().between(Some(last.earliest), None);
    let ends = |mut reader: Reader| {
        while reader.advance() {}
        reader.damage().cloned().unwrap()
    };
    let found = ends(Reader::open_selected(&path, selection.clone()).unwrap());
    assert_eq!(found, ends(Reader::open(&path).unwrap()));
    assert!(found.record >= last.records && found.file_offset >= last.file_offset);
}

#[test]
fn a_message_above_the_bound_is_refused_and_recording_goes_on() {
    let mut recorder = Recorder::new(Vec::new(), tiny_frames()).unwrap();
    let long = vec![b'"'; MAX_MESSAGE_BYTES + 1];
    assert!(matches!(recorder.message(1, &long), Err(RecordError::TooLong(_))));
    recorder.message(2, &long[1..]).unwrap();
    let (file, summary) = recorder.finish().unwrap();
    assert_eq!(summary.records, 1);
    let mut reader = Reader::from_bytes("memory", Bytes::from(file)).unwrap();
    assert_eq!(reader.read_next().unwrap().text, &long[1..], "and what is at it is read again");
}

#[test]
fn a_write_that_fails_is_told_with_what_is_good() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut recorder = Recorder::new(Full(2), tiny_frames()).unwrap();
    let refused = (0..100).find_map(|time| recorder.message(time, b"{}").err()).unwrap();
    assert!(matches!(refused, RecordError::Io { records: 14, .. }), "{refused}");
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken");
    std::fs::write(&path, "precious").unwrap();
    let refused = Recorder::create(&path, RecorderOptions::default()).err().unwrap();
    assert!(refused.to_string().contains("taken: "), "{refused}");
    assert!(refused.to_string().contains("name another file"), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_newer_version_is_refused_at_the_start_and_is_damage_further_on() {
    let newer = "{\"tidegate\":\"recording\",\"version\":3}\n";
    let refused = Reader::from_bytes("memory", Bytes::from_static(newer.as_bytes())).err();
    assert!(refused.unwrap().to_string().contains("line 1: format version 3"));

    let later = format!("{{\"at\":1,\"json\":{{}}}}\n{newer}{{\"at\":2,\"json\":{{}}}}\n");
    let mut reader = Reader::from_bytes("memory", Bytes::from(later)).unwrap();
    while reader.advance() {}
    let damage = reader.damage().unwrap();
    assert_eq!((damage.record, damage.line), (1, 2));
    assert_eq!(damage.kind, DamageKind::Version(3));
}
