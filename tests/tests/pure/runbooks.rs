//! The runbooks: each has the same parts, quotes what the programs say, and is what the alerts lead to.

use crate::links::identifier;

const PAGE: &str = include_str!("../../../docs/src/runbooks.md");
const OPERATING: &str = include_str!("../../../docs/src/operating.md");
const ALERTS: &str = include_str!("../../../docs/operating/alerts.yml");
const METRICS: &str = include_str!("../../../crates/quorlock/src/metrics.rs");

/// The sources of the events, errors and reports that the page quotes.
const SAID: &str = concat!(
    include_str!("../../../crates/quorlock/src/error.rs"),
    include_str!("../../../crates/quorlock/src/operate/inspect.rs"),
    include_str!("../../../crates/quorlock/src/telemetry.rs"),
    include_str!("../../../crates/quorlock-cli/src/run/held.rs"),
    include_str!("../../../crates/quorlock-core/src/renewal.rs"),
    include_str!("../../../crates/quorlock-core/src/trust.rs"),
    include_str!("../../../crates/quorlock-redis/src/doubtful_settings.rs"),
    include_str!("../../../crates/quorlock-redis/src/error.rs"),
    include_str!("../../../crates/quorlock-redis/src/failure.rs"),
);

/// Commands and settings, which are in the same quotes as what the programs say.
const TO_TYPE: [&str; 5] = [
    "appendfsync ",
    "appendonly ",
    "maxmemory-policy noeviction",
    "quorlock ",
    "redis-cli ",
];

/// Returns the sections of the page, each with its heading as the first line.
fn sections() -> Vec<&'static str> {
    PAGE.split("\n## ").skip(1).collect()
}

/// Returns the first line of a text.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns the code of the page, without its blocks. A piece of code may go over two lines.
fn quoted() -> Vec<String> {
    let pieces = PAGE.split('`').skip(1).step_by(2);
    let pieces = pieces.filter(|piece| !piece.starts_with("text\n"));
    pieces.map(|piece| piece.replace('\n', " ")).collect()
}

#[test]
fn each_runbook_has_the_same_four_parts() {
    let sections = sections();
    assert!(10 <= sections.len(), "{}", sections.len());
    for section in sections {
        let mut rest = section;
        for part in ["What you see", "Why", "What to do", "What not to do"] {
            let Some((_, after)) = rest.split_once(&format!("\n**{part}.**")) else {
                panic!("{}: {part}", first_line(section));
            };
            rest = after;
        }
    }
}

#[test]
fn each_alert_leads_to_a_runbook_that_names_it() {
    let alerts: Vec<&str> = ALERTS.split("- alert: ").skip(1).collect();
    assert!(!alerts.is_empty());
    for alert in alerts {
        let name = first_line(alert);
        let place = alert.split_once("runbook: docs/src/runbooks.md#");
        let (_, place) = place.expect(name);
        let anchor = first_line(place);
        let is_there = sections().iter().any(|section| {
            identifier(first_line(section)) == anchor && section.contains(&format!("`{name}`"))
        });
        assert!(is_there, "{name}: {anchor}");
        let row = OPERATING
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")));
        let link = format!("(runbooks.md#{anchor})");
        assert!(row.expect(name).contains(&link), "{name}: {link}");
    }
}

#[test]
fn the_page_quotes_what_the_programs_say() {
    let mut quotes = 0;
    for quote in quoted() {
        let is_said = quote.contains(' ')
            && quote.starts_with(char::is_lowercase)
            && !TO_TYPE.iter().any(|typed| quote.starts_with(*typed));
        if is_said {
            quotes += 1;
            for piece in quote.split("..") {
                assert!(SAID.contains(piece), "{quote}: {piece}");
            }
        }
    }
    assert!(40 < quotes, "{quotes}");
}

#[test]
fn the_page_names_metrics_and_alerts_that_exist() {
    for quote in quoted() {
        if quote.starts_with("quorlock_") && quote != "quorlock_marker" {
            assert!(METRICS.contains(&format!("\"{quote}\"")), "{quote}");
        }
        if quote.starts_with("Quorlock") {
            assert!(ALERTS.contains(&format!("- alert: {quote}\n")), "{quote}");
        }
    }
}
