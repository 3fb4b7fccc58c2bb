use std::path::PathBuf;

use super::super::recorder::{Recorder, RecorderOptions};
use super::*;

/// Five frames of a hundred messages, and what each flush had written.
fn recording(folder: &Path) -> (PathBuf, Vec<u8>, Index) {
    let path = folder.join("recording");
    let options =
        RecorderOptions { flush_records: 50, frame_bytes: 3000, ..RecorderOptions::default() };
    let mut recorder = Recorder::create(&path, options).unwrap();
    for number in 0..500 {
        recorder.message(number, format!("{{\"number\":{number:09}}}").as_bytes()).unwrap();
    }
    recorder.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let IndexState::Good(index) = Index::read(&mut File::open(&path).unwrap()).unwrap() else {
        panic!("a closed recording has an index")
    };
    assert!(index.frames().len() >= 5);
    (path, bytes, index)
}

fn of(path: &Path, bytes: &[u8]) -> Verification {
    std::fs::write(path, bytes).unwrap();
    verify(path, |_| {}).unwrap()
}

#[test]
fn a_whole_recording_is_proven_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes, index) = recording(folder.path());
    let found = of(&path, &bytes);
    assert!(found.is_whole());
    assert_eq!((found.records(), found.proven_records, found.kept_by_repair()), (500, 500, 500));
    assert_eq!(found.proven_bytes, bytes.len() as u64);
    assert_eq!(found.frames, Some(index.frames().len() as u64));
    assert_eq!((found.broken_frame, &found.index), (None, &IndexState::Good(index)));
}

#[test]
fn a_torn_recording_keeps_what_can_be_read_and_says_how_far_it_is_proven() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes, index) = recording(folder.path());
    for cut in (8..usize::try_from(index.covered()).unwrap()).step_by(37) {
        let found = of(&path, &bytes[..cut]);
        assert!(!found.is_whole() && found.is_torn(), "cut at {cut}");
        assert_eq!(found.damage.as_ref().unwrap().record, found.records());
        assert_eq!(found.kept_by_repair(), found.records());
        let last = index.frames().iter().rev().find(|frame| frame.file_offset <= cut as u64);
        let last = last.unwrap();
        assert_eq!((found.proven_bytes, found.proven_records), (last.file_offset, last.records));
        if last.file_offset < cut as u64 {
            assert_eq!(found.broken_frame, Some((last.file_offset, cut as u64)));
        }
    }
}

#[test]
fn a_corrupt_frame_is_named_and_only_what_is_before_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes, index) = recording(folder.path());
    let frame = index.frames()[2];
    let end = index.frames()[3].file_offset;
    for at in (frame.file_offset..end).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[usize::try_from(at).unwrap()] ^= 0x41;
        let found = of(&path, &bytes);
        if found.is_whole() {
            // A bit of a frame's header that means nothing.
            assert_eq!(found.proven_records, 500, "byte {at}");
            continue;
        }
        assert_eq!(found.proven_records, frame.records, "byte {at}");
        assert_eq!(found.proven_bytes, frame.file_offset, "byte {at}");
        assert_eq!(found.broken_frame.unwrap().0, frame.file_offset, "byte {at}");
        if !found.is_torn() {
            assert_eq!(found.kept_by_repair(), frame.records);
        }
    }
}

#[test]
fn a_damaged_index_is_seen_though_every_record_is_good() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut bytes, index) = recording(folder.path());
    bytes[usize::try_from(index.covered()).unwrap() + 20] ^= 1;
    let found = of(&path, &bytes);
    assert_eq!((found.damage.as_ref(), found.records()), (None, 500));
    assert_eq!(found.index, IndexState::Damaged);
    assert!(!found.is_whole());
}
