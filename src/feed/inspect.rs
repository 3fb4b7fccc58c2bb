//! What a recording holds, as far as that can be told without knowing its venue.

use std::time::Duration;

use super::format::{Format, Record};
use super::reader::Reader;
use super::report::{Damage, Tally};
use super::unpack::Compression;

/// What a recording holds.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The file, as it was named.
    pub file: String,
    /// How it is packed.
    pub compression: Compression,
    /// The format of its lines; `None` when no line told it.
    pub format: Option<Format>,
    /// Bytes of the file, packed, up to the damage if there is any.
    pub file_bytes: u64,
    /// Counts of lines, messages and bad lines by reason.
    pub tally: Tally,
    /// The earliest and latest receive time, in ns since the Unix epoch.
    pub span: Option<(i64, i64)>,
    /// Records whose receive time is before that of the record before them.
    pub out_of_order: u64,
    /// The longest step forward between two records.
    pub longest_gap: Duration,
    /// Where the file stops being readable.
    pub damage: Option<Damage>,
}

/// Reads what is left of `reader` and answers what it holds. Each record is shown to `visit`, with
/// the bytes of the file used so far, so that a caller can count what it understands and show
/// progress.
///
/// Cost: one pass over the recording, nothing allocated per record.
pub fn inspect(reader: &mut Reader, mut visit: impl FnMut(Record<'_>, u64)) -> Inspection {
    let mut span: Option<(i64, i64)> = None;
    let mut before: Option<i64> = None;
    let mut out_of_order = 0;
    let mut longest_gap = 0;
    while reader.advance() {
        let used = reader.file_offset();
        let Some(record) = reader.record() else { break };
        if let Some(time) = record.receive_time {
            let (low, high) = span.unwrap_or((time, time));
            span = Some((low.min(time), high.max(time)));
            let last = before.replace(time).unwrap_or(time);
            if time < last {
                out_of_order += 1;
            } else {
                longest_gap = longest_gap.max(time.abs_diff(last));
            }
        }
        visit(record, used);
    }
    Inspection {
        file: reader.name().to_owned(),
        compression: reader.compression(),
        format: reader.format(),
        file_bytes: reader.file_offset(),
        tally: *reader.tally(),
        span,
        out_of_order,
        longest_gap: Duration::from_nanos(longest_gap),
        damage: reader.damage().cloned(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_recording_is_counted_whole_and_every_record_is_shown() {
        let text = "1700000003 {\"a\":1}\n1700000001 x\nbad\n1700000009 {\"a\":2}\n17000";
        let mut reader = Reader::from_bytes("some file", Bytes::from(text)).unwrap();
        let mut seen = Vec::new();
        let found = inspect(&mut reader, |record, used| {
            assert!(used <= text.len() as u64);
            seen.push(record.text.to_vec());
        });
        assert_eq!(seen, [&b"{\"a\":1}"[..], b"x", b"{\"a\":2}"]);
        assert_eq!(found.file, "some file");
        assert_eq!((found.compression, found.format), (Compression::None, Some(Format::Stamped)));
        assert_eq!(found.span, Some((1_700_000_001_000_000_000, 1_700_000_009_000_000_000)));
        assert_eq!((found.out_of_order, found.longest_gap), (1, Duration::from_secs(8)));
        assert_eq!((found.tally.messages, found.tally.bad_lines()), (3, 1));
        assert_eq!(found.damage.unwrap().record, 3);
    }
}
