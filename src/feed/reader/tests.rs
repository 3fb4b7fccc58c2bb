use std::io::{self, Write as _};

use super::*;

/// A record's time and text.
type Kept = (Option<i64>, Vec<u8>);

fn reader(bytes: impl Into<Vec<u8>>) -> Reader {
    Reader::from_bytes("memory", Bytes::from(bytes.into())).unwrap()
}

fn all(reader: &mut Reader) -> Vec<Kept> {
    let mut read = Vec::new();
    while let Some(record) = reader.read_next() {
        read.push((record.receive_time, record.text.to_vec()));
    }
    assert!(!reader.advance() && reader.record().is_none(), "the end stays the end");
    read
}

fn texts(reader: &mut Reader) -> Vec<String> {
    all(reader).into_iter().map(|(_, text)| String::from_utf8(text).unwrap()).collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

/// One frame a chunk, each with its checksum.
fn zstd_frames(text: &[u8], chunk: usize) -> Vec<u8> {
    let mut packer = zstd::bulk::Compressor::new(3).unwrap();
    packer.include_checksum(true).unwrap();
    text.chunks(chunk).flat_map(|part| packer.compress(part).unwrap()).collect()
}

fn stamped(lines: i64) -> String {
    (0..lines).map(|n| format!("{} {{\"number\":{n}}}\n", 1_700_000_000_000 + n)).collect()
}

#[test]
fn the_three_formats_yield_the_same_messages_however_they_are_packed() {
    let plain = "{\"a\":1}\n{\"a\":2}\n";
    let stamped = "1700000000 {\"a\":1}\n1700000000.5 {\"a\":2}\n";
    let own = "{\"tidegate\":\"recording\",\"version\":1}\n\
               {\"at\":1700000000000000000,\"json\":{\"a\":1}}\n\
               {\"at\":1700000000500000000,\"json\":{\"a\":2}}\n";
    let times = [Some(1_700_000_000_000_000_000), Some(1_700_000_000_500_000_000)];
    for (text, format, times) in [
        (plain, Format::Plain, [None, None]),
        (stamped, Format::Stamped, times),
        (own, Format::Recording, times),
    ] {
        for (packed, compression) in [
            (text.as_bytes().to_vec(), Compression::None),
            (gzip(text.as_bytes()), Compression::Gzip),
            (zstd_frames(text.as_bytes(), 10), Compression::Zstd),
        ] {
            let length = packed.len() as u64;
            let mut reader = reader(packed);
            let expected = [(times[0], b"{\"a\":1}".to_vec()), (times[1], b"{\"a\":2}".to_vec())];
            assert_eq!(all(&mut reader), expected, "{format} {compression}");
            assert_eq!(reader.damage(), None);
            assert_eq!((reader.format(), reader.compression()), (Some(format), compression));
            assert_eq!(reader.file_offset(), length);
            assert_eq!((reader.tally().messages, reader.tally().text_bytes), (2, 14));
        }
    }
}

#[test]
fn every_member_of_a_gzip_file_and_every_frame_of_a_zstd_file_is_read() {
    let text = stamped(90);
    let members: Vec<u8> = text.as_bytes().chunks(100).flat_map(gzip).collect();
    let mut skippable = vec![0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    skippable.extend(zstd_frames(text.as_bytes(), 100));
    for packed in [members, skippable] {
        let mut reader = reader(packed);
        assert_eq!(all(&mut reader).len(), 90);
        assert_eq!(reader.damage(), None);
    }
}

/// A line of a JSON capture.
fn received(number: i64) -> String {
    let data = format!("{{\\\"number\\\":{number}}}");
    format!("{{\"t\":\"recv\",\"conn\":\"X\",\"ts\":{number}.5,\"data\":\"{data}\"}}\n")
}

#[test]
fn b30_a_plain_file_cut_anywhere_plays_every_whole_line_and_tells_of_the_torn_one() {
    for text in [
        stamped(12),
        (0..12).map(|n| format!("{{\"number\":{n}}}\n")).collect(),
        (0..12).map(|n| format!("{{\"at\":{n},\"json\":{{\"number\":{n}}}}}\n")).collect(),
        (0..12).map(|n| format!("{n}.25: {{\"number\":{n}}}\n")).collect(),
        (0..12).map(received).collect(),
    ] {
        for cut in 0..=text.len() {
            let kept = &text[..cut];
            let line_start = kept.rfind('\n').map_or(0, |at| at + 1);
            // A line that lost its end alone is whole.
            let whole = kept[line_start..].ends_with('}') && text[cut..].starts_with('\n');
            let lines = kept.matches('\n').count() + usize::from(whole);
            let mut reader = reader(kept);
            let read = texts(&mut reader);
            assert_eq!(read.len(), lines, "cut at {cut}");
            for (number, text) in read.iter().enumerate() {
                assert_eq!(*text, format!("{{\"number\":{number}}}"));
            }
            let torn = (!whole && line_start < cut).then(|| Damage {
                record: lines as u64,
                line: lines as u64 + 1,
                text_offset: line_start as u64,
                file_offset: cut as u64,
                kind: DamageKind::TornLine,
            });
            assert_eq!(reader.damage(), torn.as_ref(), "cut at {cut}");
        }
    }
}

/// How many whole lines another decoder gets out of a packed file that may be cut.
fn whole_lines(mut decoder: impl io::Read) -> usize {
    let mut text = Vec::new();
    let _ = decoder.read_to_end(&mut text);
    let ends = text.iter().filter(|byte| **byte == b'\n').count();
    ends + usize::from(text.ends_with(b"}"))
}

#[test]
fn b30_a_packed_file_cut_anywhere_plays_every_whole_line_and_tells_of_the_damage_once() {
    let text = stamped(60);
    let gzip_members: Vec<u8> = text.as_bytes().chunks(500).flat_map(gzip).collect();
    for packed in [gzip_members, zstd_frames(text.as_bytes(), 500), gzip(text.as_bytes())] {
        for cut in 4..packed.len() {
            let kept = &packed[..cut];
            let lines = if packed[0] == 0x1f {
                whole_lines(flate2::read::MultiGzDecoder::new(kept))
            } else {
                whole_lines(zstd::Decoder::new(kept).unwrap())
            };
            let mut reader = reader(kept);
            let read = texts(&mut reader);
            for (number, text) in read.iter().enumerate() {
                assert_eq!(*text, format!("{{\"number\":{number}}}"));
            }
            assert_eq!(read.len(), lines, "cut at {cut}");
            match reader.damage() {
                Some(damage) => {
                    assert_eq!(damage.record, lines as u64, "cut at {cut}");
                    assert_eq!(damage.line, lines as u64 + 1, "cut at {cut}");
                    assert!(damage.file_offset <= cut as u64);
                }
                // Between two members or frames there is nothing to see, if no line is torn.
                None => assert!(is_between(&packed, cut), "cut at {cut} went unseen"),
            }
        }
    }
}

/// Whether a packed file begins again at `cut`.
fn is_between(packed: &[u8], cut: usize) -> bool {
    packed[cut..].starts_with(&packed[..4])
}

#[test]
fn a_bit_flipped_anywhere_never_panics_and_every_line_is_accounted_for() {
    let text = stamped(30);
    for packed in [gzip(text.as_bytes()), zstd_frames(text.as_bytes(), 200), text.into_bytes()] {
        for at in 0..packed.len() {
            for bit in 0..8 {
                let mut bytes = packed.clone();
                bytes[at] ^= 1 << bit;
                if let Ok(mut reader) = Reader::from_bytes("memory", Bytes::from(bytes)) {
                    while reader.advance() {}
                    let tally = reader.tally();
                    let accounted = tally.messages + tally.blank_lines + tally.bad_lines();
                    assert_eq!(tally.lines, accounted, "flip of bit {bit} in byte {at}");
                }
            }
        }
    }
}

#[test]
fn what_follows_the_last_member_is_damage_at_its_place_and_all_before_is_played() {
    for packed in [gzip(b"{\"a\":1}\n"), zstd_frames(b"{\"a\":1}\n", 100)] {
        let whole = packed.len();
        let mut bytes = packed;
        bytes.extend_from_slice(b"something else");
        let mut reader = reader(bytes);
        assert_eq!(all(&mut reader).len(), 1);
        let damage = reader.damage().unwrap();
        assert_eq!((damage.record, damage.text_offset), (1, 8));
        assert!(matches!(damage.kind, DamageKind::Corrupt(_)), "{damage}");
        assert!(damage.file_offset >= whole as u64);
    }
}

#[test]
fn bad_lines_are_skipped_and_counted_by_reason_with_their_place() {
    let mut text = b"garbage\n1700000000 {\"a\":1}\n\n{\"a\":2}\n1700000001\n".to_vec();
    text.extend_from_slice(b"1700000002 {\"a\":\"\xff\"}\n1700000003 pong\nx\ny\n");
    let mut reader = reader(text);
    assert_eq!(texts(&mut reader), ["{\"a\":1}", "pong"]);
    let tally = reader.tally();
    assert_eq!(tally.bad(BadLine::Unrecognised).first_line, 1);
    assert_eq!((tally.bad(BadLine::NoTime).count, tally.bad(BadLine::NoTime).first_line), (3, 4));
    assert_eq!(tally.bad(BadLine::NoText).first_line, 5);
    assert_eq!(tally.bad(BadLine::NotUtf8).first_line, 6);
    assert_eq!((tally.bad_lines(), tally.blank_lines, tally.lines), (6, 1, 9));
    assert_eq!(tally.bad_by_reason().map(|(_, bad)| bad.count).sum::<u64>(), 6);
    assert_eq!(reader.damage(), None);
}

#[test]
fn a_line_above_the_bound_is_skipped_and_its_neighbours_are_read() {
    let mut text = b"{\"a\":1}\n[".to_vec();
    text.extend(std::iter::repeat_n(b'1', MAX_LINE_BYTES));
    text.extend_from_slice(b"]\n{\"a\":2}\n");
    for bytes in [zstd_frames(&text, 1 << 20), text] {
        let mut reader = reader(bytes);
        assert_eq!(texts(&mut reader), ["{\"a\":1}", "{\"a\":2}"]);
        assert_eq!(
            reader.tally().bad(BadLine::TooLong),
            crate::feed::BadCount { count: 1, first_line: 2 }
        );
        assert_eq!(reader.damage(), None);
    }
}

#[test]
fn windows_line_ends_a_byte_order_mark_and_empty_lines_are_taken_off_and_counted() {
    let mut reader = reader("\u{feff}{\"a\":1}\r\n\r\n\n{\"a\":2}\r");
    assert_eq!(texts(&mut reader), ["{\"a\":1}", "{\"a\":2}"]);
    let tally = reader.tally();
    assert_eq!((tally.byte_order_marks, tally.crlf_lines, tally.blank_lines), (1, 3, 2));
    assert_eq!((tally.bad_lines(), reader.damage()), (0, None));
}

#[test]
fn b28_a_stamp_beyond_all_times_costs_the_time_and_not_the_message() {
    let mut reader = reader("18446744073709551615 {\"a\":1}\n0 {\"a\":2}\n");
    assert_eq!(all(&mut reader), [(None, b"{\"a\":1}".to_vec()), (Some(0), b"{\"a\":2}".to_vec())]);
    assert_eq!(reader.tally().times_out_of_range, 1);
}

#[test]
fn an_empty_file_has_no_records_and_no_damage() {
    for bytes in [vec![], gzip(b""), zstd_frames(b"", 1), b"\n\n".to_vec()] {
        let mut reader = reader(bytes);
        assert_eq!((all(&mut reader).len(), reader.damage()), (0, None));
    }
}

#[test]
fn a_file_packed_otherwise_is_refused_with_what_would_be_right() {
    let xz = Bytes::from_static(b"\xfd7zXZ\0\0\0");
    let refused = Reader::from_bytes("feed.xz", xz).err().unwrap().to_string();
    assert_eq!(
        refused,
        "opening recording feed.xz: xz is not read here; plain, gzip and zstd are: unpack it first \
         with `xz -d`"
    );
    let missing = Reader::open(Path::new("no/such/file")).err().unwrap().to_string();
    assert!(missing.starts_with("opening recording no/such/file: "), "{missing}");
}

#[test]
fn a_file_that_cannot_be_read_on_is_damage_and_what_came_before_is_played() {
    struct Failing(u32);
    impl io::Read for Failing {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Err(io::ErrorKind::Interrupted.into()),
                2 => {
                    let text = b"{\"a\":1}\n{\"a\"";
                    space[..text.len()].copy_from_slice(text);
                    Ok(text.len())
                }
                _ => Err(io::Error::other("the disk is gone")),
            }
        }
    }
    let mut reader = Reader::from_reader("disk", Box::new(Failing(0))).unwrap();
    assert_eq!(texts(&mut reader), ["{\"a\":1}"]);
    let damage = reader.damage().unwrap();
    assert_eq!(damage.kind, DamageKind::Io("the disk is gone".into()));
    assert_eq!((damage.record, damage.line, damage.text_offset), (1, 2, 8));
}
