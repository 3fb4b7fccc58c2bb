//! Charts of one case, as SVG files: what a quote costs, and how old quotes are.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::case::{Case, Row};
use super::harness::Role;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 120.0;
const TOP: f64 = 64.0;

/// Colours of ours, of the control, and of peers in their order.
const OURS: &str = "#0b6bcb";
const CONTROL: &str = "#8a8f98";
const PEERS: [&str; 5] = ["#d9822b", "#8f4bb5", "#2f9e69", "#c23b4e", "#7a6a3a"];

/// Writes the charts of a case into a folder under the target folder; answers the files.
pub fn write(case: &Case) -> std::io::Result<Vec<PathBuf>> {
    // …/target/release/deps/fanout-0123
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(3).unwrap_or(&program);
    let folder = target.join("fanout").join("charts");
    std::fs::create_dir_all(&folder)?;
    let mut files = Vec::new();
    for (kind, chart) in [("cost", cost(case)), ("age", age(case))] {
        let Some(chart) = chart else { continue };
        let file = folder.join(format!("{}-{kind}.svg", case.name));
        std::fs::write(&file, chart)?;
        files.push(file);
    }
    Ok(files)
}

/// Bars: processor time of the whole server for a delivered quote, the least first.
fn cost(case: &Case) -> Option<String> {
    const STEP: f64 = 34.0;
    let figure = |row: &Row| row.median(|outcome| outcome.whole);
    let mut rows: Vec<&Row> = case.rows.iter().filter(|row| figure(row).is_finite()).collect();
    rows.sort_by(|one, other| figure(one).total_cmp(&figure(other)));
    let most = rows.last().map(|row| figure(row)).filter(|most| *most > 0.0)?;
    let height = TOP + STEP * rows.len() as f64 + 16.0;
    let mut svg = start(&case.name, "processor time of the server for a delivered quote", height);
    for (at, row) in rows.iter().enumerate() {
        let (y, long) = (TOP + STEP * at as f64, (WIDTH - LEFT - RIGHT) * figure(row) / most);
        text(&mut svg, (LEFT - 10.0, y + 15.0), "end", row.name);
        let _ = write!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"22\" rx=\"3\" fill=\"{}\"/>",
            long.max(1.0),
            colour(case, row),
        );
        let value = format!("{:.0} ns", figure(row));
        text(&mut svg, (LEFT + long + 8.0, y + 15.0), "start", &value);
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// Lines: age at receipt over the share of quotes that are no older, both axes logarithmic, so that
/// the tail is as long as its interest.
fn age(case: &Case) -> Option<String> {
    const SHARES: [(f64, &str); 5] =
        [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")];
    const PLOT: f64 = 260.0;
    let rows: Vec<&Row> =
        case.rows.iter().filter(|row| row.ages(|outcome| &outcome.ages).len() > 0).collect();
    let ages: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| {
            let ages = row.ages(|outcome| &outcome.ages);
            SHARES.iter().map(|&(share, _)| (ages.at(share) / 1e3).max(1.0)).collect()
        })
        .collect();
    let most = ages.iter().flatten().copied().fold(1.0, f64::max).log10().ceil();
    let least = ages.iter().flatten().copied().fold(f64::INFINITY, f64::min).log10().floor();
    if !least.is_finite() || most <= least {
        return None;
    }
    let x = |at: usize| LEFT + (WIDTH - LEFT - RIGHT) * at as f64 / (SHARES.len() - 1) as f64;
    let y = |age: f64| TOP + PLOT * (most - age.log10()) / (most - least);
    let mut svg =
        start(&case.name, "age of a quote at receipt, by share of quotes", TOP + PLOT + 44.0);
    let mut decade = least;
    while decade <= most {
        let at = y(10_f64.powf(decade));
        line(&mut svg, (LEFT, at), (WIDTH - RIGHT, at));
        text(&mut svg, (LEFT - 10.0, at + 4.0), "end", &micros(10_f64.powf(decade)));
        decade += 1.0;
    }
    for (at, (_, name)) in SHARES.iter().enumerate() {
        text(&mut svg, (x(at), TOP + PLOT + 24.0), "middle", name);
    }
    // Names stand at the ends of the lines, pushed apart where these meet.
    let mut ends: Vec<(f64, usize)> =
        ages.iter().enumerate().map(|(row, ages)| (y(ages[SHARES.len() - 1]), row)).collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut above = f64::NEG_INFINITY;
    for (end, row) in ends {
        let colour = colour(case, rows[row]);
        let points: Vec<String> = ages[row]
            .iter()
            .enumerate()
            .map(|(at, &age)| format!("{:.1},{:.1}", x(at), y(age)))
            .collect();
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\"/>",
            points.join(" "),
            if rows[row].role == Role::Ours { 3 } else { 2 },
        );
        above = end.max(above + 15.0);
        let _ = write!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" fill=\"{colour}\">{}</text>",
            WIDTH - RIGHT + 8.0,
            above + 4.0,
            rows[row].name,
        );
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

fn colour(case: &Case, row: &Row) -> &'static str {
    match row.role {
        Role::Ours => OURS,
        Role::Control => CONTROL,
        Role::Peer => {
            let peers = case.rows.iter().filter(|row| row.role == Role::Peer);
            let place = peers.take_while(|peer| peer.name != row.name).count();
            PEERS[place % PEERS.len()]
        }
    }
}

fn start(case: &str, what: &str, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" \
         fill=\"#24292f\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"600\">{what}</text>\n\
         <text x=\"16\" y=\"46\" fill=\"#57606a\">case {case}, medians of interleaved rounds; less \
         is better</text>\n"
    )
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = write!(svg, "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{words}</text>");
}

fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = write!(
        svg,
        "<line x1=\"{x1:.0}\" y1=\"{y1:.0}\" x2=\"{x2:.0}\" y2=\"{y2:.0}\" stroke=\"#d8dee4\"/>"
    );
}

fn micros(micros: f64) -> String {
    match micros {
        large if large >= 1e6 => format!("{:.0} s", large / 1e6),
        middle if middle >= 1e3 => format!("{:.0} ms", middle / 1e3),
        small => format!("{small:.0} µs"),
    }
}
