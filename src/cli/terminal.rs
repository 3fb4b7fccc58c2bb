//! Writing for people: output that may be cut short, colour, progress, and figures.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use crate::clock::{Clock, Instant};

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("writing to standard output: {0}")]
pub(super) struct OutputError(#[source] pub(super) io::Error);

impl OutputError {
    /// Whether only nobody reads it any more.
    pub(super) fn is_unread(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Writes to standard output, at once.
pub(super) fn print(bytes: &[u8]) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(OutputError)
}

/// Whether to write colours: to a terminal that knows them, unless `NO_COLOR` is set
/// (no-color.org).
pub(super) fn is_coloured(terminal: bool) -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    on: bool,
}

/// How a text is set off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// As the rest.
    Plain,
    /// A heading, a name.
    Bold,
    /// Beside the point.
    Dim,
    /// Good, a bid.
    Green,
    /// Bad, an ask.
    Red,
    /// Worth a look.
    Yellow,
}

impl From<bool> for Paint {
    fn from(on: bool) -> Self {
        Self { on }
    }
}

impl Paint {
    /// For standard output as it is now.
    pub(super) fn stdout() -> Self {
        Self { on: is_coloured(io::stdout().is_terminal()) }
    }

    /// Never any.
    #[cfg(test)]
    pub(super) const fn none() -> Self {
        Self { on: false }
    }

    pub(super) fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Green => "32",
            Style::Red => "31",
            Style::Yellow => "33",
            Style::Plain => return text.to_owned(),
        };
        if self.on && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// What a bar counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// Bytes.
    Bytes,
    /// Milliseconds of a recording.
    Milliseconds,
    /// Records, of which nobody knows how many there will be.
    Records,
}

/// A progress bar on standard error if that is a terminal, nothing otherwise. It shows after a
/// moment, so that short work leaves no trace, and is gone when dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    unit: Unit,
    /// When the work began, until the bar is shown; `None` also if it never is.
    hidden: Option<(Clock, Instant)>,
}

/// Work that is done sooner shows no bar.
const UNSHOWN: Duration = Duration::from_millis(400);

impl Progress {
    pub(super) fn new(what: String, length: u64, unit: Unit) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        let hidden = io::stderr().is_terminal().then(|| {
            let clock = Clock::system();
            let began = clock.now();
            (clock, began)
        });
        let (template, unknown) = match unit {
            Unit::Bytes => (
                "{prefix} [{bar:30}] {percent:>3} %  {bytes}/{total_bytes}  {bytes_per_sec}  {msg}  {eta} \
                 left",
                "{prefix} {spinner} {bytes}  {bytes_per_sec}  {msg}",
            ),
            Unit::Milliseconds => ("{prefix} [{bar:30}] {percent:>3} %  {msg}  {eta} left", ""),
            Unit::Records => ("", "{prefix} {spinner} {msg}  {per_sec}  {elapsed}"),
        };
        let template = if length == 0 { unknown } else { template };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what);
        Self { bar, unit, hidden }
    }

    /// Shows how far it is; `messages` so far.
    pub(super) fn at(&mut self, position: u64, messages: u64) {
        if let Some((clock, began)) = &self.hidden
            && clock.now().since(*began) >= UNSHOWN
        {
            self.hidden = None;
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        if self.bar.is_hidden() {
            return;
        }
        let position = match (self.unit, self.bar.length()) {
            (Unit::Bytes | Unit::Records, None | Some(0)) => position,
            (_, length) => position.min(length.unwrap_or(position)),
        };
        self.bar.set_position(position);
        self.bar.set_message(format!("{} messages", group(messages)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A count with commas: `1,234,567`.
pub(super) fn group(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number of bytes: `812 bytes`, `1.2 MiB`.
#[expect(clippy::cast_precision_loss, reason = "one digit behind the point is shown")]
pub(super) fn bytes(count: u64) -> String {
    if count == 1 {
        return "1 byte".to_owned();
    }
    if count < 1024 {
        return format!("{count} bytes");
    }
    let mut amount = count as f64;
    let mut unit = "";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        // What would be rounded up to 1024 is shown in the next unit.
        if amount < 1023.95 {
            break;
        }
        amount /= 1024.0;
        unit = next;
    }
    format!("{amount:.1} {unit}")
}

/// One thing, or several: `1 file`, `2 files`.
pub(super) fn plural(count: u64, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {thing}{s}", group(count))
}

/// A length of time, to three or four digits: `812 ns`, `3.20 ms`, `60.0 s`, `5 min 46 s`.
pub(super) fn duration(length: Duration) -> String {
    let nanos = length.as_nanos();
    let seconds = length.as_secs_f64();
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} µs", seconds * 1e6),
        1_000_000..1_000_000_000 => format!("{:.1} ms", seconds * 1e3),
        1_000_000_000..120_000_000_000 => format!("{seconds:.1} s"),
        _ => {
            let seconds = length.as_secs();
            let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            if hours > 0 {
                format!("{hours} h {minutes} min")
            } else {
                format!("{minutes} min {seconds} s")
            }
        }
    }
}

/// A wall time in nanoseconds since the Unix epoch, in UTC: `2026-01-05 10:00:00.000`. A time that
/// no calendar has is shown as the number.
pub(super) fn date_time(nanos: i64) -> String {
    formatted(nanos, "%Y-%m-%d %H:%M:%S%.3f")
}

/// The time of day of a wall time, in UTC: `10:00:00.000`.
pub(super) fn time_of_day(nanos: i64) -> String {
    formatted(nanos, "%H:%M:%S%.3f")
}

fn formatted(nanos: i64, format: &str) -> String {
    match Timestamp::from_nanosecond(nanos.into()) {
        Ok(time) => time.strftime(format).to_string(),
        Err(_) => format!("{nanos} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_write_them() {
        assert_eq!(
            [0, 7, 999, 1000, 1_234_567].map(group),
            ["0", "7", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [0, 1, 1023, 1024, 1_048_575, 5 << 30].map(bytes),
            ["0 bytes", "1 byte", "1023 bytes", "1.0 KiB", "1.0 MiB", "5.0 GiB"]
        );
        assert_eq!(
            [0, 1_500, 3_240_000, 60_000_000_000, 346_000_000_000, 7_260_000_000_000]
                .map(|nanos| duration(Duration::from_nanos(nanos))),
            ["0 ns", "1.5 µs", "3.2 ms", "60.0 s", "5 min 46 s", "2 h 1 min"]
        );
        assert_eq!(plural(1, "file"), "1 file");
        assert_eq!(plural(1000, "file"), "1,000 files");
    }

    #[test]
    fn a_time_is_shown_in_utc_to_the_millisecond() {
        assert_eq!(date_time(1_767_607_200_123_456_789), "2026-01-05 10:00:00.123");
        assert_eq!(time_of_day(1_767_607_200_123_456_789), "10:00:00.123");
        assert_eq!(date_time(-1), "1969-12-31 23:59:59.999");
    }

    #[test]
    fn without_colour_a_text_is_left_alone() {
        assert_eq!(Paint::none().paint(Style::Red, "x"), "x");
        assert_eq!(Paint { on: true }.paint(Style::Red, "x"), "\x1b[31mx\x1b[0m");
        assert!(!is_coloured(false));
    }
}
