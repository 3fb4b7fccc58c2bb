//! Text in columns.

use unicode_width::UnicodeWidthStr as _;

use super::terminal::{Paint, Style};

/// On which side of its column a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A heading line and rows, as wide as their widest texts.
pub(super) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|&(name, align)| (name.to_owned(), align)).collect();
        Self { columns, rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends the table, indented.
    pub(super) fn write(&self, paint: Paint, out: &mut String) {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let heading = self.columns[column].0.width();
                cells.map(|cell| cell.width()).fold(heading, usize::max)
            })
            .collect();
        let headings: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        out.push_str(&paint.paint(Style::Dim, &self.line(&headings, &widths)));
        out.push('\n');
        for row in &self.rows {
            out.push_str(&self.line(row, &widths));
            out.push('\n');
        }
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, (_, align)), width) in cells.iter().zip(&self.columns).zip(widths) {
            line.push_str("  ");
            pad(cell, *width, *align, &mut line);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Appends a text and the spaces that make it `width` wide.
pub(super) fn pad(text: &str, width: usize, align: Align, out: &mut String) {
    let spaces = " ".repeat(width.saturating_sub(text.width()));
    match align {
        Align::Left => out.extend([text, &spaces]),
        Align::Right => out.extend([spaces.as_str(), text]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_text_whatever_the_alphabet() {
        let mut table = Table::new(&[("name", Align::Left), ("count", Align::Right)]);
        table.row(["龙币USDT".to_owned(), "7".to_owned()]);
        table.row(["A".to_owned(), "1,234,567".to_owned()]);
        let mut out = String::new();
        table.write(Paint::none(), &mut out);
        assert_eq!(out, "  name          count\n  龙币USDT          7\n  A         1,234,567\n");
    }
}
