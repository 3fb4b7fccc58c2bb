//! The contents of a recording, for people.

use std::collections::BTreeMap;
use std::time::Duration;

use super::contents::{Contents, Exact};
use crate::cli::table::{Align, Table};
use crate::cli::terminal::{Paint, Style, bytes, date_time, duration, group, plural, time_of_day};

use Align::{Left, Right};

/// Everything that is worth a line.
pub(super) fn for_people(found: &Contents, paint: Paint) -> String {
    let mut out = paint.paint(Style::Bold, &found.file) + "\n";
    head(found, paint, &mut out);
    messages(found, paint, &mut out);
    instruments(found, paint, &mut out);
    volumes(found, paint, &mut out);
    bad_lines(found, paint, &mut out);
    if let Some(damage) = &found.damage {
        out += &paint.paint(Style::Red, &format!("\n  DAMAGED: {}\n", damage.message));
    }
    out
}

fn head(found: &Contents, paint: Paint, out: &mut String) {
    let mut line = |name: &str, text: String| {
        *out += &format!("  {}  {text}\n", paint.paint(Style::Dim, &format!("{name:<8}")));
    };
    let format = found.format.as_deref().unwrap_or("format not recognised");
    line(
        "file",
        format!(
            "{}, {}, {format}; {} of messages",
            bytes(found.file_bytes),
            found.compression,
            bytes(found.text_bytes)
        ),
    );
    let mut lines = group(found.lines);
    for (count, what) in [
        (found.marks, "mark"),
        (found.blank_lines, "blank line"),
        (found.crlf_lines, "line ending in CR LF"),
        (found.other_records, "unknown record"),
        (found.times_out_of_range, "time out of range"),
        (found.bad_lines.values().map(|bad| bad.count).sum(), "bad line"),
    ] {
        if count > 0 {
            lines += &format!(", {}", counted(count, what));
        }
    }
    line("lines", lines);
    match (found.first_time, found.last_time) {
        (Some(first), Some(last)) => line(
            "span",
            format!(
                "{} to {} UTC, {}; longest gap {}, {} out of order",
                date_time(first),
                same_day(first, last),
                duration(Duration::from_nanos(found.span_ns)),
                duration(Duration::from_nanos(found.longest_gap_ns)),
                group(found.out_of_order),
            ),
        ),
        _ => line("span", "no receive times".to_owned()),
    }
    line("venue", found.venue.clone());
}

fn messages(found: &Contents, paint: Paint, out: &mut String) {
    *out += &format!("\n  {}\n", plural(found.messages, "message"));
    let mut table = Table::new(&[("what it is", Left), ("messages", Right)]);
    let mut row = |name: String, count: u64| {
        if count > 0 {
            table.row([name, group(count)]);
        }
    };
    row("quote".to_owned(), found.quotes);
    row("fill".to_owned(), found.fills);
    for (name, classes) in
        [("unused", &found.unused), ("control", &found.control), ("refused", &found.refused)]
    {
        for (class, count) in classes {
            row(format!("{name}: {class}"), *count);
        }
    }
    row("unknown".to_owned(), found.unknown);
    for (oddity, count) in &found.oddities {
        row(format!("used, but odd: {oddity}"), *count);
    }
    section(&table, paint, out);
    if let Some(problem) = &found.last_problem {
        *out += &format!("  {} {problem}\n", paint.paint(Style::Yellow, "last problem:"));
    }
    let mut table = Table::new(&[("stream", Left), ("messages", Right)]);
    for (stream, count) in by_count(&found.streams) {
        table.row([stream.clone(), group(*count)]);
    }
    section(&table, paint, out);
}

fn instruments(found: &Contents, paint: Paint, out: &mut String) {
    let mut table = Table::new(&[
        ("instrument", Left),
        ("ticks", Right),
        ("first", Left),
        ("last", Left),
        ("bid", Right),
        ("ask", Right),
        ("last trade", Right),
    ]);
    let time = |time: Option<i64>| time.map_or("-".to_owned(), time_of_day);
    for instrument in &found.instruments {
        table.row([
            instrument.instrument.clone(),
            group(instrument.ticks),
            time(instrument.first_time),
            time(instrument.last_time),
            price(instrument.bid),
            price(instrument.ask),
            price(instrument.last),
        ]);
    }
    section(&table, paint, out);
}

fn volumes(found: &Contents, paint: Paint, out: &mut String) {
    let mut table = Table::new(&[
        ("account", Left),
        ("instrument", Left),
        ("fills", Right),
        ("bought", Right),
        ("sold", Right),
        ("notional", Right),
    ]);
    for volume in &found.volumes {
        table.row([
            volume.account.clone(),
            volume.instrument.clone(),
            group(volume.fills),
            volume.bought.clone(),
            volume.sold.clone(),
            volume.notional.clone(),
        ]);
    }
    section(&table, paint, out);
    if found.unfolded_fills > 0 {
        *out += &format!("  {} too large to add up\n", plural(found.unfolded_fills, "fill"));
    }
}

fn bad_lines(found: &Contents, paint: Paint, out: &mut String) {
    let mut table =
        Table::new(&[("bad lines", Right), ("first at", Right), ("reason", Left), ("", Left)]);
    for (reason, bad) in &found.bad_lines {
        table.row([
            group(bad.count),
            format!("line {}", bad.first_line),
            (*reason).to_owned(),
            bad.message.clone(),
        ]);
    }
    section(&table, paint, out);
}

/// Appends a table below an empty line, if it has rows.
fn section(table: &Table, paint: Paint, out: &mut String) {
    if !table.is_empty() {
        out.push('\n');
        table.write(paint, out);
    }
}

fn price(price: Exact) -> String {
    price.0.map_or("-".to_owned(), |price| price.to_string())
}

/// The later time, without its date if that is the same.
fn same_day(first: i64, last: i64) -> String {
    let (first, text) = (date_time(first), date_time(last));
    match (first.split_once(' '), text.split_once(' ')) {
        (Some((day, _)), Some((same, time))) if day == same => time.to_owned(),
        _ => text,
    }
}

/// `2 lines ending in CR LF`: the thing is the first word that a plural changes.
fn counted(count: u64, what: &str) -> String {
    let many = match what {
        "line ending in CR LF" => "lines ending in CR LF".to_owned(),
        "time out of range" => "times out of range".to_owned(),
        other => format!("{other}s"),
    };
    if count == 1 { format!("1 {what}") } else { format!("{} {many}", group(count)) }
}

/// The most frequent first.
fn by_count(counts: &BTreeMap<String, u64>) -> Vec<(&String, &u64)> {
    let mut all: Vec<_> = counts.iter().collect();
    all.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    all
}
