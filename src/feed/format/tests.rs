use super::*;

fn there_and_back(text: &[u8]) -> (String, Vec<u8>) {
    let mut line = Vec::new();
    write_message(&mut line, 1_723_161_254_087_891_268, text);
    assert_eq!(line.pop(), Some(b'\n'));
    assert!(!line.contains(&b'\n'), "one line");
    assert!(is_whole_json(&line), "any JSON tool reads it");
    let mut scratch = Vec::new();
    let text = match read_own(&line, &mut scratch) {
        Ok(Content::Here(Some(1_723_161_254_087_891_268), range)) => line[range].to_vec(),
        Ok(Content::Decoded(Some(1_723_161_254_087_891_268))) => scratch,
        other => panic!("{other:?}"),
    };
    (String::from_utf8(line).unwrap(), text)
}

#[test]
fn every_message_comes_back_byte_for_byte() {
    for text in [
        &b"{\"a\":1.50,  \"b\":[\"\\u00e9\",null]}"[..],
        b"[1]",
        b"{}",
        b" {}",
        b"{} ",
        b"{\n}",
        b"{\"a\":1\r}",
        b"pong",
        b"\"pong\"",
        b"",
        b"{\"torn\":",
        b"{\"a\":1}}",
        b"quotes \" and \\ and \x00 and \x7f and \xe6\xbd\xae\xe6\xb1\x90",
        b"\xff\x00\xfe",
        b"{\"latin\":\"\xe9\"}",
    ] {
        assert_eq!(there_and_back(text).1, text, "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn a_json_message_is_written_as_it_is() {
    assert_eq!(
        there_and_back(b"{\"u\":1,\"b\":\"0.10\"}").0,
        "{\"at\":1723161254087891268,\"json\":{\"u\":1,\"b\":\"0.10\"}}"
    );
    assert_eq!(there_and_back(b"pong").0, "{\"at\":1723161254087891268,\"text\":\"pong\"}");
}

#[test]
fn a_record_written_by_hand_is_read_too() {
    let mut scratch = Vec::new();
    let line = b"{ \"json\" : {\"a\": 1}, \"at\" : -5 }";
    assert_eq!(read_own(line, &mut scratch), Ok(Content::Decoded(Some(-5))));
    assert_eq!(scratch, b"{\"a\": 1}");
    assert_eq!(Format::sniff(line), Some(Format::Recording));
    assert_eq!(
        read_own(b"{\"at\":7,\"mark\":\"disconnected\"}", &mut scratch),
        Ok(Content::Mark(Some(7), Mark::Disconnected))
    );
}

#[test]
fn what_a_later_version_may_add_is_passed_over() {
    let mut scratch = Vec::new();
    for line in ["{\"at\":7,\"mark\":\"moved\"}", "{\"at\":7,\"frame\":3}"] {
        assert_eq!(read_own(line.as_bytes(), &mut scratch), Ok(Content::Unknown), "{line}");
    }
    let header = b"{\"tidegate\":\"recording\",\"version\":9,\"by\":\"x\"}";
    assert_eq!(read_own(header, &mut scratch), Ok(Content::Header(9)));
}

#[test]
fn no_beginning_of_a_record_is_a_record() {
    let mut line = Vec::new();
    write_message(&mut line, 17, b"{\"a\":{\"b\":{}}}");
    let whole = line.len() - 1;
    for cut in 0..whole {
        assert!(!is_whole_json(&line[..cut]), "cut at {cut}");
    }
    assert!(is_whole_json(&line[..whole]));
}

#[test]
fn the_unit_of_a_time_is_told_by_its_digits() {
    let same = 1_723_161_254_000_000_000;
    for (line, nanos) in [
        ("1723161254 x", same),
        ("1723161254000 x", same),
        ("1723161254000000 x", same),
        ("1723161254000000000\tx", same),
        ("1723161254.5 x", same + 500_000_000),
        ("1723161254.123456789999 x", same + 123_456_789),
        ("1723161254000.25   x", same + 250_000),
        ("0 x", 0),
        ("9223372036854775807 x", i64::MAX),
    ] {
        let (time, text) = stamped(line.as_bytes()).unwrap();
        assert_eq!((time, &line[text..]), (Some(nanos), "x"), "{line}");
    }
}

#[test]
fn a_time_beyond_all_times_is_no_time_and_its_text_is_kept() {
    for time in [
        "18446744073709551615",
        "9223372036854775808",
        "99999999999",
        "999999999999999999999999999",
    ] {
        let line = format!("{time} text");
        assert_eq!(stamped(line.as_bytes()), Ok((None, time.len() + 1)), "{time}");
    }
}

#[test]
fn a_line_without_a_time_or_a_text_says_which() {
    for (line, reason) in [
        ("{\"a\":1}", BadLine::NoTime),
        ("17a {}", BadLine::NoTime),
        ("-17 {}", BadLine::NoTime),
        ("17: {}", BadLine::NoTime),
        ("1723161254", BadLine::NoText),
        ("1723161254 ", BadLine::NoText),
        ("1723161254.5", BadLine::NoText),
    ] {
        assert_eq!(stamped(line.as_bytes()), Err(reason), "{line}");
    }
}

#[test]
fn formats_are_told_by_a_line() {
    for (line, format) in [
        ("{\"tidegate\":\"recording\",\"version\":1}", Some(Format::Recording)),
        ("{\"at\":1,\"json\":{}}", Some(Format::Recording)),
        ("{\"at\":\"x\",\"json\":{}}", Some(Format::Plain)),
        ("{\"stream\":\"x\"}", Some(Format::Plain)),
        ("[1]", Some(Format::Plain)),
        ("1723161254 {}", Some(Format::Stamped)),
        ("{\"t\":\"header\",\"format\":2}", Some(Format::Cryptofeed)),
        ("wss://x <-> 1723161254.5", Some(Format::CryptofeedText)),
        ("1723161254.5: {}", Some(Format::CryptofeedText)),
        ("wss://x", None),
        ("1723161254", None),
        ("# a remark", None),
    ] {
        assert_eq!(Format::sniff(line.as_bytes()), format, "{line}");
    }
}
