//! The report as text for people.

use std::fmt::Write as _;

use super::findings::{NodeReport, Report};
use super::line::{Level, Line};

/// Whether words are coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Paint {
    Colours,
    Plain,
}

impl Paint {
    /// Colours are for terminals, unless `NO_COLOR` is set.
    pub(crate) fn of(is_terminal: bool) -> Self {
        let is_wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        match is_terminal && is_wanted {
            true => Paint::Colours,
            false => Paint::Plain,
        }
    }

    /// Returns the word of a level, in a column.
    fn word(self, level: Level) -> String {
        let word = format!("{:<9}", level.word());
        let colour = match level {
            Level::Ok => 32,
            Level::Doubtful => 33,
            Level::Absent | Level::Misconfigured => 31,
        };
        match self {
            Paint::Colours => format!("\x1b[{colour}m{word}\x1b[0m"),
            Paint::Plain => word,
        }
    }
}

/// Returns the whole report.
pub(crate) fn text(report: &Report, paint: Paint) -> String {
    let mut text = String::new();
    for node in &report.nodes {
        push_node(&mut text, node, paint);
    }
    text.push_str("together\n");
    push_lines(&mut text, &report.whole, paint);
    text
}

fn push_node(text: &mut String, node: &NodeReport, paint: Paint) {
    let _ = writeln!(text, "{}", node.address);
    push_lines(text, &node.lines, paint);
    for (address, lines) in &node.servers {
        let _ = writeln!(text, "  {address}");
        push_lines(text, lines, paint);
    }
    text.push('\n');
}

fn push_lines(text: &mut String, lines: &[Line], paint: Paint) {
    for line in lines {
        let word = paint.word(line.level);
        let _ = writeln!(text, "  {word} {:<12} {}", line.subject, line.text);
        for cure in &line.cures {
            let _ = writeln!(text, "{:25}-> {cure}", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_and_coloured_for_terminals_alone() {
        let report = Report {
            nodes: vec![NodeReport {
                address: "redis://a".into(),
                lines: vec![Line::doubtful("memory", "is short").cure("buy more")],
                servers: vec![("10.0.0.1:6379".into(), vec![Line::ok("role", "primary")])],
            }],
            whole: vec![Line::new("votes", Level::Absent, "none")],
        };
        assert_eq!(
            text(&report, Paint::Plain),
            "redis://a
  doubtful  memory       is short
                         -> buy more
  10.0.0.1:6379
  ok        role         primary

together
  wrong     votes        none
"
        );
        let coloured = text(&report, Paint::Colours);
        assert!(
            coloured.contains("\x1b[31mwrong    \x1b[0m votes"),
            "{coloured}"
        );
        assert_eq!(Paint::of(false), Paint::Plain);
    }
}
