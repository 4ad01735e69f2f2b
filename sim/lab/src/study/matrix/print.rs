//! Prints a matrix as Markdown and as CSV.

use std::fmt::Write as _;

use super::{BreakRate, CLASSES, Cell, MatrixTable, contenders};

impl MatrixTable {
    /// Returns the matrix as Markdown: the tables of exclusion and fencing, and what the names mean.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        self.section(&mut text, "Exclusion", |cell| &cell.exclusion);
        self.section(&mut text, "Fencing", |cell| &cell.fencing);
        text.push_str("### Locks\n\n| lock | |\n|---|---|\n");
        let is_there = |id: &str| {
            self.cells
                .iter()
                .any(|cell| cell.lock == id || cell.class == id)
        };
        for contender in contenders().iter().filter(|lock| is_there(lock.id)) {
            let _ = writeln!(text, "| {} | {} |", contender.id, contender.title);
        }
        text.push_str("\n### Classes of fault\n\n| class | |\n|---|---|\n");
        for class in CLASSES.iter().filter(|class| is_there(class.id)) {
            let _ = writeln!(text, "| {} | {} |", class.id, class.title);
        }
        text
    }

    fn section(&self, text: &mut String, title: &str, of: impl Fn(&Cell) -> &BreakRate) {
        let runs = self.runs;
        let _ = writeln!(
            text,
            "### {title}: share of {runs} runs in which it broke\n"
        );
        let mut locks: Vec<&str> = self.cells.iter().map(|cell| cell.lock.as_str()).collect();
        locks.dedup();
        let mut classes: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !classes.contains(&cell.class.as_str()) {
                classes.push(&cell.class);
            }
        }
        let _ = writeln!(text, "| | {} |", locks.join(" | "));
        let _ = writeln!(text, "|---|{}", "---:|".repeat(locks.len()));
        for class in classes {
            let cells = locks.iter().map(|lock| match self.cell(lock, class) {
                Some(cell) => share(of(cell)),
                None => String::new(),
            });
            let cells: Vec<_> = cells.collect();
            let _ = writeln!(text, "| {class} | {} |", cells.join(" | "));
        }
        text.push('\n');
    }

    /// Returns the matrix as CSV, with one line for each cell and property.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "lock,class,property,runs,vacuous,holds,effects,violations,rate,least,most,first_seed,claimed\n",
        );
        for cell in &self.cells {
            for (property, broken) in [("exclusion", &cell.exclusion), ("fencing", &cell.fencing)] {
                let (min, max) = broken.interval;
                let first = broken.first_seed.map_or(String::new(), |s| s.to_string());
                let _ = writeln!(
                    text,
                    "\"{}\",\"{}\",{property},{},{},{},{},{},{:.6},{min:.6},{max:.6},{first},{}",
                    cell.lock,
                    cell.class,
                    cell.tally.runs,
                    cell.tally.vacuous,
                    cell.tally.holds,
                    cell.tally.effects(),
                    broken.violations,
                    broken.rate,
                    broken.is_claimed_to_hold,
                );
            }
        }
        text
    }
}

/// Formats a share. It is **0** if the lock claims to keep the property and it was never broken, and 0 if the lock
/// claims nothing and it was not broken either. The bounds with 95 % confidence follow in brackets.
fn share(broken: &BreakRate) -> String {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    let (min, max) = broken.interval;
    match (broken.violations, broken.is_claimed_to_hold) {
        (0, true) => format!("**0** (< {})", percent(max)),
        (0, false) => format!("0 (< {})", percent(max)),
        (_, is_claimed) => {
            let mark = if is_claimed { " **!**" } else { "" };
            let rate = percent(broken.rate);
            format!("{rate} ({} to {}){mark}", percent(min), percent(max))
        }
    }
}
