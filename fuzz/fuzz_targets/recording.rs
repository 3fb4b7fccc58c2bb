//! Any bytes as a recording: read to its end, whatever they are.
#![no_main]

use std::io::Cursor;

use tidegate::feed::{Reader, inspect};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = Reader::from_reader("fuzz", Box::new(Cursor::new(data.to_vec()))) else {
        return;
    };
    let mut messages = 0_u64;
    let found = inspect(&mut reader, |record, _| {
        messages += u64::from(record.kind == tidegate::feed::RecordKind::Message);
    });
    assert_eq!(found.tally.messages, messages, "every message is told once");
});
