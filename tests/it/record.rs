//! Recording, and the commands that work on recordings.

mod commands;
mod kills;
mod schedule;
mod serving;
mod size;

use std::path::Path;

use tidegate::feed::{Damage, Reader, RecordKind};

/// The messages of a file with their times, and its damage.
fn read(path: &Path) -> (Vec<(i64, String)>, Option<Damage>) {
    let mut reader = Reader::open(path).unwrap();
    let mut messages = Vec::new();
    while let Some(record) = reader.read_next() {
        if record.kind == RecordKind::Message {
            let text = String::from_utf8(record.text.to_vec()).unwrap();
            messages.push((record.receive_time.unwrap(), text));
        }
    }
    (messages, reader.damage().cloned())
}

/// The texts alone, of a file that must be whole.
fn texts(path: &Path) -> Vec<String> {
    let (messages, damage) = read(path);
    assert_eq!(damage, None, "{}", path.display());
    messages.into_iter().map(|(_, text)| text).collect()
}
