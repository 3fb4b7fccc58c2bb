//! Messages in, lines out.

use std::borrow::Cow;
use std::collections::HashMap;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ANSWERED;
use super::message::{
    Ack, Batch, Effective, Head, Limits, Pong, Quote, Refusal, Shutdown, Status, Volume, Welcome,
};
use crate::cli::table::{Align, pad};
use crate::cli::terminal::{Paint, Style, group, plural, time_of_day};

/// How values are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A line each, for people.
    Lines,
    /// An object each.
    Json,
    /// Whole messages as they came.
    Raw,
}

/// What a message leads to, beside lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// To be told on standard error.
    pub(super) note: Option<String>,
    /// The batch to be acknowledged.
    pub(super) acknowledge: Option<u64>,
    /// All that was asked for has been refused.
    pub(super) refused: bool,
}

/// Instruments whose tick is remembered. A gateway allows a subscriber fewer; for one that does
/// not, no conflation is told past it.
const MAX_INSTRUMENTS: usize = 10_000_000;

/// The columns of a quote that grow to what they have to hold.
const INSTRUMENT: usize = 0;
const COLUMNS: usize = 7;

/// Turns messages into lines, and remembers what that takes.
pub(super) struct Show {
    form: Form,
    paint: Paint,
    notes: Paint,
    left: Option<u64>,
    widths: [usize; COLUMNS],
    ticks: HashMap<Box<str>, u64>,
    /// Whether batches are confirmed by acknowledging them.
    confirms: bool,
    subscribed: bool,
    printed: u64,
    conflated: u64,
}

impl Show {
    pub(super) fn new(form: Form, paint: Paint, notes: Paint, count: Option<u64>) -> Self {
        // Room for the digits that most venues use, so that columns rarely move.
        Self {
            form,
            paint,
            notes,
            left: count,
            widths: [16, 14, 12, 14, 12, 14, 10],
            ticks: HashMap::new(),
            confirms: false,
            subscribed: false,
            printed: 0,
            conflated: 0,
        }
    }

    /// Reads one message and appends its lines to `out`.
    ///
    /// # Errors
    ///
    /// What is no message of the protocol.
    pub(super) fn message(&mut self, text: &str, out: &mut Vec<u8>) -> anyhow::Result<Effect> {
        let kind = read::<Head<'_>>(text)?.kind;
        let mut effect = match kind.as_ref() {
            "quotes" | "volume" => return self.batch(kind.as_ref(), text, out),
            "welcome" => {
                let welcome: Welcome<'_> = read(text)?;
                self.confirms = welcome.effective.confirm == "client";
                let note = format!(
                    "connected to {} as subscriber {}: {}",
                    welcome.server,
                    welcome.subscriber,
                    told(&welcome.effective)
                );
                Effect { note: Some(note), ..Effect::default() }
            }
            "ack" => {
                self.subscribed = true;
                Effect { note: self.ack(&read(text)?), ..Effect::default() }
            }
            "error" => {
                let refusal: Refusal<'_> = read(text)?;
                let names = match &refusal.names[..] {
                    [] => String::new(),
                    names => format!(" for {}", names.join(", ")),
                };
                let note = format!("refused ({}){names}: {}", refusal.code, refusal.message);
                let note = self.notes.paint(Style::Red, &note);
                // Told in any form: an error that only a program sees is easily overlooked.
                self.other(text, None, out);
                return Ok(Effect { note: Some(note), ..Effect::default() });
            }
            "pong" => {
                let pong: Pong<'_> = read(text)?;
                let ours =
                    pong.id.and_then(|id| serde_json::from_str::<Cow<'_, str>>(id.get()).ok());
                let answered = ours.is_some_and(|id| id == ANSWERED);
                return Ok(Effect { refused: answered && !self.subscribed, ..Effect::default() });
            }
            "status" => {
                let status: Status<'_> = read(text)?;
                self.other(text, Some(self.status(&status)), out);
                return Ok(Effect::default());
            }
            "limits" => {
                let limits: Limits<'_> = read(text)?;
                self.confirms = limits.effective.confirm == "client";
                let line = format!(
                    "{}generation {}: {}",
                    self.label("limits"),
                    limits.generation,
                    told(&limits.effective)
                );
                self.other(text, Some(line), out);
                return Ok(Effect::default());
            }
            "shutdown" => {
                let seconds = read::<Shutdown>(text)?.retry_after_ms.div_ceil(1000);
                let note = format!("the gateway shuts down; come back in {seconds} s");
                Effect { note: Some(self.notes.paint(Style::Yellow, &note)), ..Effect::default() }
            }
            _ => Effect::default(),
        };
        self.other(text, None, out);
        if self.form != Form::Lines {
            effect.note = None;
        }
        Ok(effect)
    }

    /// How many values were printed.
    pub(super) const fn printed(&self) -> u64 {
        self.printed
    }

    /// Whether as many values as were asked for have been printed.
    pub(super) fn is_enough(&self) -> bool {
        self.left == Some(0)
    }

    /// What came, in a sentence.
    pub(super) fn summary(&self) -> String {
        let text = format!(
            "{} of {}; {} conflated on the way",
            plural(self.printed, "update"),
            plural(self.ticks.len() as u64, "instrument"),
            plural(self.conflated, "tick"),
        );
        self.notes.paint(Style::Dim, &text)
    }

    fn batch(&mut self, kind: &str, text: &str, out: &mut Vec<u8>) -> anyhow::Result<Effect> {
        let batch: Batch<'_> = read(text)?;
        if self.form == Form::Raw {
            self.raw(text, out);
            self.count();
        }
        for value in &batch.quotes {
            if self.is_enough() {
                break;
            }
            if kind == "quotes" {
                self.quote(value, &batch, out)?;
            } else {
                self.volume(value, &batch, out)?;
            }
        }
        let acknowledge = batch.batch.filter(|_| self.confirms);
        Ok(Effect { acknowledge, ..Effect::default() })
    }

    fn quote(
        &mut self,
        value: &RawValue,
        batch: &Batch<'_>,
        out: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        let quote: Quote<'_> = read(value.get())?;
        let conflated = self.conflated_since(&quote);
        self.conflated += conflated.unwrap_or(0);
        match self.form {
            Form::Raw => return Ok(()),
            Form::Json => {
                let conflated = conflated.map_or("null".to_owned(), |count| count.to_string());
                json_line("quote", batch, &format!("\"conflated\":{conflated},"), value, out);
            }
            Form::Lines => {
                let line = self.quote_line(&quote, conflated);
                out.extend_from_slice(line.as_bytes());
                out.push(b'\n');
            }
        }
        self.count();
        Ok(())
    }

    fn volume(
        &mut self,
        value: &RawValue,
        batch: &Batch<'_>,
        out: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        let volume: Volume<'_> = read(value.get())?;
        match self.form {
            Form::Raw => return Ok(()),
            Form::Json => json_line("volume", batch, "", value, out),
            Form::Lines => {
                let mut line = self.label("volume");
                self.grow(INSTRUMENT, &volume.instrument);
                pad(&volume.instrument, self.widths[INSTRUMENT], Align::Left, &mut line);
                let Volume { account, fills, bought, sold, notional, .. } = volume;
                let fills = plural(fills, "fill");
                line += &format!(
                    "  {account}  bought {bought}  sold {sold}  notional {notional}  {fills}\n"
                );
                out.extend_from_slice(line.as_bytes());
            }
        }
        self.count();
        Ok(())
    }

    /// Ticks between the last quote of this instrument and this one; `None` for its first.
    fn conflated_since(&mut self, quote: &Quote<'_>) -> Option<u64> {
        if let Some(before) = self.ticks.get_mut(quote.instrument.as_ref()) {
            let gap = quote.tick.saturating_sub(*before).saturating_sub(1);
            *before = quote.tick;
            return Some(gap);
        }
        if self.ticks.len() < MAX_INSTRUMENTS {
            self.ticks.insert(quote.instrument.as_ref().into(), quote.tick);
        }
        None
    }

    /// Time, instrument, bid × size, ask × size, last × size, tick, conflated.
    fn quote_line(&mut self, quote: &Quote<'_>, conflated: Option<u64>) -> String {
        let texts = [
            quote.instrument.as_ref(),
            quote.bid.as_deref().unwrap_or("-"),
            quote.bid_size.as_deref().unwrap_or("-"),
            quote.ask.as_deref().unwrap_or("-"),
            quote.ask_size.as_deref().unwrap_or("-"),
            quote.last.as_deref().unwrap_or("-"),
            quote.last_size.as_deref().unwrap_or("-"),
        ];
        for (column, text) in texts.into_iter().enumerate() {
            self.grow(column, text);
        }
        let paint = self.paint;
        let cell = |column: usize, align: Align, style: Style| {
            let mut cell = String::new();
            pad(texts[column], self.widths[column], align, &mut cell);
            paint.paint(style, &cell)
        };
        let mut line = paint.paint(Style::Dim, &time_of_day(quote.receive_time));
        line += "  ";
        line += &cell(INSTRUMENT, Align::Left, Style::Bold);
        for (column, name, style) in
            [(1, "bid", Style::Green), (3, "ask", Style::Red), (5, "last", Style::Plain)]
        {
            line += &format!(
                "  {} {} {} {}",
                paint.paint(Style::Dim, name),
                cell(column, Align::Right, style),
                paint.paint(Style::Dim, "×"),
                cell(column + 1, Align::Left, Style::Plain),
            );
        }
        line += &format!("  {} {}", paint.paint(Style::Dim, "tick"), quote.tick);
        match conflated {
            Some(count) if count > 0 => {
                let told = format!("  {} conflated", group(count));
                line += &paint.paint(Style::Yellow, &told);
            }
            _ => {}
        }
        line
    }

    fn ack(&self, ack: &Ack<'_>) -> Option<String> {
        let mut note = match &ack.subscribed[..] {
            [] if ack.waiting.is_empty() => "subscribed".to_owned(),
            [] => "subscribed".to_owned(),
            [one] => format!("subscribed to {one}"),
            many => format!("subscribed to {} names", group(many.len() as u64)),
        };
        if !ack.waiting.is_empty() {
            note += &format!("; nothing has come yet of {}", ack.waiting.join(", "));
        }
        if let Some(effective) = ack.effective.as_ref().filter(|effective| effective.max_hz > 0.0) {
            note += &format!("; {}", told(effective));
        }
        Some(self.notes.paint(Style::Dim, &note))
    }

    fn status(&self, status: &Status<'_>) -> String {
        let style = if status.health == "live" { Style::Green } else { Style::Yellow };
        let reason = status.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!(
            "{}feed {} is {}{reason}",
            self.label("status"),
            status.feed,
            self.paint.paint(style, &status.health)
        )
    }

    /// A message that is no batch: its line for people, or itself.
    fn other(&self, text: &str, line: Option<String>, out: &mut Vec<u8>) {
        match (self.form, line) {
            (Form::Lines, Some(line)) => {
                out.extend_from_slice(line.as_bytes());
                out.push(b'\n');
            }
            (Form::Lines, None) => {}
            _ => self.raw(text, out),
        }
    }

    #[expect(clippy::unused_self, reason = "beside the other ways to print")]
    fn raw(&self, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
    }

    /// A word where other lines have their time.
    fn label(&self, word: &str) -> String {
        self.paint.paint(Style::Dim, &format!("{word:<12}")) + "  "
    }

    fn grow(&mut self, column: usize, text: &str) {
        const WIDEST: usize = 40;
        let width = unicode_width::UnicodeWidthStr::width(text).min(WIDEST);
        self.widths[column] = self.widths[column].max(width);
    }

    fn count(&mut self) {
        self.printed += 1;
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> anyhow::Result<T> {
    serde_json::from_str(text).with_context(|| {
        let begin: String = text.chars().take(200).collect();
        format!("reading a message of the gateway that is none of protocol version 1: {begin}")
    })
}

/// A value as an object of its own, with what its batch says of it.
fn json_line(kind: &str, batch: &Batch<'_>, more: &str, value: &RawValue, out: &mut Vec<u8>) {
    let number = |number: Option<u64>| number.map_or("null".to_owned(), |n| n.to_string());
    let why = match &batch.why {
        Some(why) => serde_json::Value::from(why.as_ref()).to_string(),
        None => "null".to_owned(),
    };
    let members = value.get().trim_start().strip_prefix('{').unwrap_or("}");
    let line = format!(
        "{{\"type\":\"{kind}\",\"snapshot\":{},\"batch\":{},\"held_us\":{},\"why\":{why},{more}{members}\n",
        batch.snapshot,
        number(batch.batch),
        number(batch.held_us),
    );
    out.extend_from_slice(line.as_bytes());
}

/// What is in force, in words.
fn told(effective: &Effective<'_>) -> String {
    let capacity = match effective.capacity {
        0 => "paused (capacity 0)".to_owned(),
        capacity => format!("capacity {capacity}"),
    };
    let rate = if effective.max_hz > 0.0 {
        format!("at most {} batches a second", effective.max_hz)
    } else {
        "no rate ceiling".to_owned()
    };
    format!("{capacity}, {rate}, confirmed by {}", effective.confirm)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELCOME: &str = r#"{"type":"welcome","version":1,"server":"tidegate/0","subscriber":"3","effective":{"max_hz":0,"capacity":8,"confirm":"client"}}"#;

    fn batch(tick: u64) -> String {
        format!(
            r#"{{"type":"quotes","batch":4,"held_us":12,"why":"none","quotes":[{{"instrument":"binance:A","tick":{tick},"bid":"1.50","bid_size":"2","ask":null,"ask_size":null,"last":"1.49","last_size":"1","venue_time":null,"receive_time":1767607200123456789}}]}}"#
        )
    }

    fn lines(show: &mut Show, text: &str) -> (String, Effect) {
        let mut out = Vec::new();
        let effect = show.message(text, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), effect)
    }

    fn show(form: Form, count: Option<u64>) -> Show {
        Show::new(form, Paint::none(), Paint::none(), count)
    }

    #[test]
    fn a_quote_is_a_line_that_tells_what_was_conflated() {
        let mut show = show(Form::Lines, None);
        let (first, effect) = lines(&mut show, &batch(7));
        assert_eq!(
            first,
            "10:00:00.123  binance:A         bid           1.50 × 2             ask              - × -             last           1.49 × 1           tick 7\n"
        );
        assert_eq!(effect, Effect::default(), "nothing is acknowledged unasked");
        let (next, _) = lines(&mut show, &batch(20));
        assert!(next.ends_with("tick 20  12 conflated\n"), "{next}");
        assert_eq!(show.summary(), "2 updates of 1 instrument; 12 ticks conflated on the way");
    }

    #[test]
    fn batches_are_acknowledged_where_the_gateway_wants_that() {
        let mut show = show(Form::Lines, None);
        let note = lines(&mut show, WELCOME).1.note.unwrap();
        assert!(note.contains("as subscriber 3: capacity 8, no rate ceiling, confirmed by client"));
        assert_eq!(lines(&mut show, &batch(1)).1.acknowledge, Some(4));
        let limits = r#"{"type":"limits","generation":4,"effective":{"max_hz":2,"capacity":0,"confirm":"pong"}}"#;
        assert_eq!(
            lines(&mut show, limits).0,
            "limits        generation 4: paused (capacity 0), at most 2 batches a second, confirmed by pong\n"
        );
        assert_eq!(lines(&mut show, &batch(2)).1.acknowledge, None);
    }

    #[test]
    fn json_is_an_object_a_value_with_the_venues_digits() {
        let mut show = show(Form::Json, None);
        assert_eq!(lines(&mut show, WELCOME), (format!("{WELCOME}\n"), Effect::default()));
        lines(&mut show, &batch(1));
        let (line, _) = lines(&mut show, &batch(4));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["type"], "quote");
        assert_eq!((&value["conflated"], &value["tick"]), (&2.into(), &4.into()));
        assert_eq!((&value["bid"], &value["batch"]), (&"1.50".into(), &4.into()));
        let volume = r#"{"type":"volume","snapshot":true,"batch":5,"held_us":1,"why":"none","volumes":[{"account":"d","instrument":"binance:A","fills":2,"bought":"1","sold":"0","notional":"9.5"}]}"#;
        let (line, _) = lines(&mut show, volume);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&value["type"], &value["notional"]), (&"volume".into(), &"9.5".into()));
    }

    #[test]
    fn raw_messages_pass_untouched_also_those_of_a_later_version() {
        let mut show = show(Form::Raw, Some(1));
        let novel = r#"{"type":"novelty","x":[1]}"#;
        assert_eq!(lines(&mut show, novel).0, format!("{novel}\n"));
        assert!(!show.is_enough());
        assert_eq!(lines(&mut show, &batch(1)).0, format!("{}\n", batch(1)));
        assert!(show.is_enough());
    }

    #[test]
    fn no_more_than_was_asked_for_is_printed() {
        let quote = |n: u32| format!(r#"{{"instrument":"binance:{n}","tick":1,"receive_time":0}}"#);
        let text = format!(
            r#"{{"type":"quotes","batch":1,"quotes":[{},{},{}]}}"#,
            quote(1),
            quote(2),
            quote(3)
        );
        let mut show = show(Form::Lines, Some(2));
        assert_eq!(lines(&mut show, &text).0.lines().count(), 2);
        assert!(show.is_enough());
    }

    #[test]
    fn when_all_was_answered_and_nothing_acknowledged_everything_was_refused() {
        let pong = format!(r#"{{"type":"pong","id":"{ANSWERED}","time":1}}"#);
        let error = r#"{"type":"error","id":"quotes","code":"unknown_venue","temporary":false,"message":"no feed of that venue; there are: binance","names":["kraken:*"]}"#;
        let mut show = show(Form::Lines, None);
        let (line, effect) = lines(&mut show, error);
        assert_eq!(line, "");
        assert_eq!(
            effect.note.unwrap(),
            "refused (unknown_venue) for kraken:*: no feed of that venue; there are: binance"
        );
        assert!(lines(&mut show, &pong).1.refused);
        let ack = r#"{"type":"ack","id":"quotes","subscribed":["binance:A"],"waiting":["binance:B"],"effective":{"max_hz":0,"capacity":8,"confirm":"pong"},"generation":1}"#;
        assert_eq!(
            lines(&mut show, ack).1.note.unwrap(),
            "subscribed to binance:A; nothing has come yet of binance:B"
        );
        assert!(!lines(&mut show, &pong).1.refused);
    }

    #[test]
    fn what_is_no_message_is_an_error_that_shows_it() {
        let error = show(Form::Lines, None).message("<html>", &mut Vec::new()).unwrap_err();
        assert!(error.to_string().ends_with("protocol version 1: <html>"), "{error}");
    }
}
