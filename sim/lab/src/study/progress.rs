//! Progress bars on a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// The quantity that a progress bar counts.
///
/// The line must fit into 60 columns. A terminal wraps a longer line, and then each step prints another line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counting {
    /// Runs of a campaign.
    Runs,
    /// Cases of scenarios. The message names the last case.
    Cases,
    /// Runs of a search. The message states the remaining size of the plan.
    Search,
    /// Seconds of a run on real servers. The message names the run.
    Seconds,
}

impl Counting {
    /// Returns the template. See `indicatif` for the fields: `wide_bar` and `wide_msg` take the remaining columns.
    const fn template(self) -> &'static str {
        match self {
            Counting::Runs => "{wide_bar} {pos}/{len} runs, {per_sec}, {eta} left",
            Counting::Cases => "{bar:10} {pos}/{len} cases, {eta} left; {wide_msg}",
            Counting::Seconds => "{bar:10} {pos}/{len} s, {eta} left; {wide_msg}",
            Counting::Search => "{bar:10} {pos}/{len} runs; {wide_msg}",
        }
    }
}

/// Creates a bar with this number of steps.
pub(crate) fn bar(steps: u64, counting: Counting) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    match ProgressStyle::with_template(counting.template()) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A terminal of 60 columns that records what is written.
    #[derive(Clone, Default, Debug)]
    struct Narrow(Arc<Mutex<Vec<String>>>);

    impl TermLike for Narrow {
        fn width(&self) -> u16 {
            60
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            let mut lines = self.0.lock().map_err(|_| io::ErrorKind::Other)?;
            lines.push(text.to_owned());
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_fits_into_sixty_columns() {
        for counting in [
            Counting::Runs,
            Counting::Cases,
            Counting::Search,
            Counting::Seconds,
        ] {
            let terminal = Narrow::default();
            let bar = bar(1_000_000, counting);
            bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
            bar.set_message("12 faults, 4 clients, 15 nodes, 1234 operations, 56789 events");
            bar.inc(999_999);
            bar.tick();
            let lines = terminal.0.lock().unwrap();
            let line = lines.iter().find(|line| line.contains("999999/1000000"));
            assert!(line.is_some(), "{lines:?}");
            for line in lines.iter() {
                assert!(
                    line.trim_end().chars().count() <= 60,
                    "{counting:?}: {line:?}"
                );
            }
        }
    }
}
