use proptest::prelude::*;

use super::*;

fn whole(text: &[u8]) -> Result<Span, Fault> {
    let mut scanner = Scanner::new(text);
    let span = scanner.value()?;
    scanner.finish()?;
    Ok(span)
}

/// Also by keys and values, as a codec reads an object.
fn stepwise(text: &[u8]) -> Result<(), Fault> {
    let mut scanner = Scanner::new(text);
    scanner.enter()?;
    let mut first = true;
    while scanner.letter_key(first).is_some() || scanner.key(first)?.is_some() {
        scanner.value()?;
        first = false;
    }
    scanner.finish()
}

/// By elements and values, as a codec reads an array.
fn by_elements(text: &[u8]) -> Result<(), Fault> {
    let mut scanner = Scanner::new(text);
    scanner.enter_array()?;
    let mut first = true;
    while scanner.element(first)? {
        scanner.value()?;
        first = false;
    }
    scanner.finish()
}

fn agrees(text: &[u8]) {
    let oracle = serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok();
    let ours = whole(text);
    assert_eq!(ours.is_ok(), oracle, "{:?}: {ours:?}", String::from_utf8_lossy(text));
    if ours.is_ok_and(|span| span.kind == Kind::Object) {
        assert_eq!(stepwise(text), Ok(()), "{:?}", String::from_utf8_lossy(text));
    } else {
        assert!(stepwise(text).is_err());
    }
    let array = ours.is_ok_and(|span| span.kind == Kind::Array);
    assert_eq!(by_elements(text).is_ok(), array, "{:?}", String::from_utf8_lossy(text));
}

#[test]
fn the_verdict_on_the_grammars_corners_is_the_oracles() {
    for text in [
        "",
        " ",
        "{}",
        "[]",
        " {} ",
        "{,}",
        "{\"a\":1,}",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\" 1}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\":1}{",
        "{\"a\":1}}",
        "0",
        "-0",
        "00",
        "01",
        "-",
        "1.",
        ".1",
        "1e",
        "1e+",
        "1E-5",
        "+1",
        "0x1",
        "NaN",
        "nul",
        "null",
        "nullx",
        "tru",
        "true",
        "false",
        "\"",
        "\"\\",
        "\"\\u12\"",
        "\"\\u00zz\"",
        "\"\\x\"",
        "\"a\tb\"",
        "\"a\u{0}b\"",
        "\"\\ud800\"",
        "[[[]]]",
        "[[[]]",
        "[{]}",
        "{\"a\":[1,{\"b\":null}],\"c\":\"\\\"\"}",
        "{\"a\":1,\"a\":2}",
        "[\"12345678\",\"123456789\",\"1234567\"]",
        "{\"\":0}",
        "{\"a\":1 ,\n\"b\":2}",
        "{\"a\":1,\"b\":}",
        "{\"a\":1\"b\":2}",
        "{\"a\":1,,\"b\":2}",
        "{\"a\":1,\"b\":2,\"c\"}",
        "[[\"1\",\"2\"],[\"3\",\"4\"]]",
        "[[\"1\",\"2\"][\"3\",\"4\"]]",
        "[[\"1\",\"2\",\"3\"]]",
        "[[\"1\",\"2\"",
        "[[\"1\",\"2",
        "[[\"1\" ,\"2\"]]",
        "[[\"1\\n\",\"2\"]]",
        "[[\"1\",\"2\"],]",
    ] {
        agrees(text.as_bytes());
    }
}

#[test]
fn what_is_nested_too_deep_is_refused_without_recursion() {
    let deep = |levels: usize| [vec![b'['; levels], vec![b']'; levels]].concat();
    assert!(whole(&deep(MAX_DEPTH as usize)).is_ok());
    assert_eq!(whole(&deep(MAX_DEPTH as usize + 1)), Err(Fault::TooLarge));
    assert_eq!(whole(&vec![b'['; 1_000_000]), Err(Fault::TooLarge));
}

#[test]
fn escapes_mean_what_the_oracle_says() {
    for text in [
        r#""\u0042TC""#,
        r#""\"\\\/\b\f\n\r\t""#,
        r#""龙\u9f99""#,
        r#""\ud83d\ude00x""#,
        r#""\ud83d""#,
        r#""\ude00""#,
        r#""\ud83dx""#,
        r#""\ud83d\u0041""#,
        r#""\ud83d\ue000""#,
    ] {
        let span = whole(text.as_bytes()).unwrap();
        let mut ours = Vec::new();
        let ours = unescape(span.of(text.as_bytes()), &mut ours).map(|()| ours);
        let oracle = serde_json::from_str::<String>(text).ok().map(String::into_bytes);
        assert_eq!(ours, oracle, "{text}");
    }
}

#[test]
fn text_ends_where_it_ends_at_any_offset() {
    for length in 0..40 {
        for stop in [&b"\""[..], b"\\", b"\n", b"\0", b"\x1f", b""] {
            let text = [&vec![0xE9; length], stop, b"\"\\zz\x01"].concat();
            assert_eq!(plain_end(&text, 0), length, "{stop:?}");
        }
    }
}

#[test]
fn eight_digits_are_told_at_once() {
    assert!(all_digits(u64::from_le_bytes(*b"01234567")) && all_digits(ONES * 0x39));
    for place in 0..8 {
        for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
            let mut text = *b"09909990";
            text[place] = byte;
            assert!(!all_digits(u64::from_le_bytes(text)), "{byte} at {place}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::with_cases(2_000)
    })]

    #[test]
    fn the_verdict_on_any_text_is_the_oracles(
        text in r#"[\[\]{},:" \\0-9eE.+a"ntrufls-]{0,24}"#,
    ) {
        agrees(text.as_bytes());
    }
}
