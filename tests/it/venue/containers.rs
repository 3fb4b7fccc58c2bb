//! Real recordings through the program's own reader of recordings, and containers that it refuses.

use std::collections::BTreeMap;

use tidegate::feed::{Reader, RecordKind, inspect};
use tidegate::venue::{Class, Refusal};

use super::recordings::{self, FILES};
use super::subject::Subject;

#[test]
fn every_line_of_every_capture_is_a_message_that_is_explained_or_no_message_for_a_reason() {
    let Some(folder) = recordings::folder() else {
        eprintln!("SKIPPED: no recordings at hand, so none was read through the program's reader");
        return;
    };
    // What the reader does not unpack is unpacked by the tests of the folds.
    for (venue, file) in FILES.iter().filter(|(_, file)| !file.ends_with(".xz")) {
        let mut subject = Subject::new(venue);
        let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
        let Ok(mut reader) = Reader::open(&folder.join(file)) else { continue };
        let found = inspect(&mut reader, |record, _| {
            if record.kind != RecordKind::Message {
                return;
            }
            let class = subject.read(record.text);
            *groups.entry(class.group()).or_default() += 1;
            let explained = !matches!(class, Class::Unknown | Class::Refused(_))
                || matches!(class, Class::Refused(Refusal::DuplicateTrade | Refusal::LateTrade));
            assert!(explained, "{file}: {class:?} {:?}", subject.codec.last_problem());
        });
        assert!(found.damage.is_none(), "{file}");
        assert_eq!(groups.values().sum::<u64>(), found.tally.messages, "{file}: {groups:?}");
        assert_eq!(found.tally.bad_by_reason().count(), 0, "{file}");
        let others = found.tally.marks + found.tally.blank_lines + found.tally.other_records;
        assert_eq!(found.tally.messages + others, found.tally.lines, "{file}");
    }
}

#[test]
fn an_archive_of_many_files_is_refused_by_its_name() {
    let mut archive = b"PK\x03\x04\x14\x00".to_vec();
    archive.extend_from_slice(&[0; 400]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), archive).unwrap();
    let error = Reader::open(file.path()).err().expect("an archive is no recording");
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    assert!(text.contains("zip is not read here") && text.contains("`unzip`"), "{text}");
}
