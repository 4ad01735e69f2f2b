//! Prints the comparison as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Agreement, Compared, Expected, Results, Simulated};
use crate::chaos::run::Observed;

/// The shares of the matrix, as its tables print them, by class and lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrintedMatrix(BTreeMap<(String, String), String>);

impl PrintedMatrix {
    /// Reads the table of exclusion from the output of `quorlock-sim matrix`.
    pub(crate) fn read(markdown: &str) -> PrintedMatrix {
        let mut cells = BTreeMap::new();
        let mut locks: Vec<String> = Vec::new();
        let table = markdown
            .lines()
            .skip_while(|line| !line.starts_with("### Exclusion"))
            .skip(1);
        for line in table.take_while(|line| !line.starts_with("###")) {
            let mut fields = line
                .trim_matches('|')
                .split('|')
                .map(|field| field.trim().to_owned());
            let Some(first) = fields.next().filter(|_| line.starts_with('|')) else {
                continue;
            };
            match locks.is_empty() {
                true => locks = fields.collect(),
                false => cells.extend(
                    locks
                        .iter()
                        .cloned()
                        .zip(fields)
                        .map(|(lock, share)| ((first.clone(), lock), share)),
                ),
            }
        }
        PrintedMatrix(cells)
    }

    /// Returns the share of runs in which exclusion broke, in percent, with its bounds.
    pub(crate) fn share(&self, class: &str, lock: &str) -> Option<&str> {
        let share = self.0.get(&(class.to_owned(), lock.to_owned()));
        share.map(String::as_str)
    }
}

impl Results {
    /// Sets the figures for pages: the table, the disagreements, and the duration of the comparison.
    pub(crate) fn print(&mut self, matrix: &PrintedMatrix, classes: &[&str]) {
        let place = |class: &str| classes.iter().position(|id| *id == class);
        self.cells.sort_by_key(|cell| {
            (
                place(&cell.class),
                cell.expected == Expected::Breaks,
                cell.lock.clone(),
            )
        });
        let sum = |of: fn(&Compared) -> u64| self.cells.iter().map(of).sum::<u64>().to_string();
        let figures = [
            ("table", self.table(matrix)),
            ("disagreements", self.disagreements(matrix)),
            ("cells", self.cells.len().to_string()),
            ("holds", sum(|cell| cell.observed.holds)),
            ("faults", sum(|cell| cell.observed.faults)),
            (
                "minutes",
                (self
                    .cells
                    .iter()
                    .map(|cell| cell.observed.seconds)
                    .sum::<u64>()
                    / 60)
                    .to_string(),
            ),
        ];
        self.figures = figures.map(|(key, text)| (key.to_owned(), text)).into();
    }

    fn table(&self, matrix: &PrintedMatrix) -> String {
        let mut text = String::from(
            "| class | lock | matrix, % | storms, simulated | observed | min | holds | hand-overs | faults, during a hold | |\n|---|---|---:|---:|---|---:|---:|---:|---:|---|",
        );
        for cell in &self.cells {
            let (simulated, observed) = (&cell.simulated, &cell.observed);
            let share = matrix.share(&cell.class, &cell.lock);
            let is_claimed = matches!(cell.expected, Expected::Holds { .. });
            let seen = match (&observed.exclusion, observed.vacuous()) {
                (Some(broke), _) => {
                    format!("broke after {:.1} s, {}", broke.after, observed.how_often())
                }
                (None, Some(vacuous)) => format!("held, shows nothing: {}", vacuous.what()),
                (None, None) if is_claimed => "**held**".to_owned(),
                (None, None) => "held".to_owned(),
            };
            let _ = write!(
                text,
                "\n| {} | {}{} | {} | {} | {seen} | {} | {} | {} | {}, {} | {} |",
                cell.class,
                cell.lock,
                if cell.expected == Expected::Breaks {
                    " (control)"
                } else {
                    ""
                },
                share.unwrap_or(""),
                in_simulation(*simulated),
                minutes(observed.seconds),
                observed.holds,
                hand_overs(observed),
                observed.faults,
                observed.during_holds,
                match cell.agreement(share) {
                    Agreement::Agrees => "agrees",
                    Agreement::NotMet => "no break in this time",
                    Agreement::Disagrees => "**disagrees**",
                },
            );
        }
        text
    }

    fn disagreements(&self, matrix: &PrintedMatrix) -> String {
        let mut text = String::new();
        for cell in &self.cells {
            let share = matrix.share(&cell.class, &cell.lock);
            if cell.agreement(share) == Agreement::Disagrees
                && let Some(broke) = &cell.observed.exclusion
            {
                let _ = writeln!(
                    text,
                    "- {}, {}, seed {}: {}",
                    cell.class, cell.lock, cell.seed, broke.story
                );
            }
        }
        match text.is_empty() {
            true => "Nothing disagrees: what broke on real servers breaks in the simulator, too."
                .to_owned(),
            false => text.trim_end().to_owned(),
        }
    }
}

/// Formats the number of simulated storms that broke exclusion. Empty if there are none.
fn in_simulation(simulated: Simulated) -> String {
    match simulated.runs {
        0 => String::new(),
        runs => format!("{} of {runs}", simulated.exclusion),
    }
}

/// Formats the hand-overs, and among them those between two libraries.
fn hand_overs(observed: &Observed) -> String {
    let all = observed.hand_overs;
    match observed.beside {
        Some(beside) => format!(
            "{all} ({} to Redisson, {} back)",
            beside.to_them, beside.to_us
        ),
        None => all.to_string(),
    }
}

/// Formats minutes, as `1`, `1.5` or `30`.
fn minutes(seconds: u64) -> String {
    match seconds % 60 {
        0 => (seconds / 60).to_string(),
        _ => format!("{:.1}", seconds as f64 / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_from_the_tables_of_the_matrix() {
        let printed = "### Exclusion: share of 10 runs\n\n| | SET NX, DEL | ours |\n|---|---:|---:|\n| quiet | 2.30 (1.54 to 3.43) | **0** (< 0.38) |\n\n### Fencing: share\n\n| | ours |\n|---|---:|\n| quiet | 9 |\n";
        let matrix = PrintedMatrix::read(printed);
        assert_eq!(matrix.share("quiet", "ours"), Some("**0** (< 0.38)"));
        assert_eq!(
            matrix.share("quiet", "SET NX, DEL"),
            Some("2.30 (1.54 to 3.43)")
        );
        assert_eq!(matrix.share("flush", "ours"), None);
    }
}
