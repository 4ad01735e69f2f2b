//! How far long work is, on a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over so many steps, and what is said behind it (see `indicatif` for the fields).
pub(crate) fn bar(steps: u64, text: &str) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    match ProgressStyle::with_template(&format!("{{bar:40}} {text}")) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
