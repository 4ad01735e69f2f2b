//! Progress: bars on a terminal, and on the signal USR1 a line of JSON.

use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

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
    /// Returns the unit of the numbers.
    const fn unit(self) -> &'static str {
        match self {
            Counting::Runs | Counting::Search => "runs",
            Counting::Cases => "cases",
            Counting::Seconds => "seconds",
        }
    }

    /// Returns the template. See `indicatif` for the fields: `wide_bar` and `wide_msg` take the remaining columns.
    const fn template(self) -> &'static str {
        match self {
            Counting::Runs => "{wide_bar} {pos}/{len} runs, {per_sec}, {eta} left",
            Counting::Cases => "{bar:6} {pos}/{len} cases, {per_sec}, {eta} left; {wide_msg}",
            Counting::Seconds => "{bar:10} {pos}/{len} s, {eta} left; {wide_msg}",
            Counting::Search => "{bar:6} {pos}/{len} runs, {per_sec}, {eta} left; {wide_msg}",
        }
    }
}

/// The bar that was created last, with what it counts.
static LAST: Mutex<Option<(ProgressBar, Counting)>> = Mutex::new(None);

/// Creates a bar with this number of steps. Without a terminal it is not shown, but still counts.
pub(crate) fn bar(steps: u64, counting: Counting) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    let bar = match ProgressStyle::with_template(counting.template()) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    };
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    *last = Some((bar.clone(), counting));
    bar
}

/// How far a command has come.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Report {
    /// What is counted: `runs`, `cases` or `seconds`; `None` before the first one, and between two counts.
    progress: Option<&'static str>,
    /// How many have ended.
    done: u64,
    /// How many there are, if none ends early.
    of: u64,
    per_second: f64,
    /// The time since the count began.
    seconds: f64,
    /// The time until the end at the rate of the last seconds.
    seconds_left: f64,
    /// What is counted now, in words, such as the name of a case.
    at: String,
}

/// Returns how far this process has come.
pub(crate) fn report() -> Report {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some((bar, counting)) = last.filter(|(bar, _)| !bar.is_finished()) else {
        return Report {
            progress: None,
            done: 0,
            of: 0,
            per_second: 0.0,
            seconds: 0.0,
            seconds_left: 0.0,
            at: String::new(),
        };
    };
    Report {
        progress: Some(counting.unit()),
        done: bar.position(),
        of: bar.length().unwrap_or(0),
        per_second: bar.per_sec(),
        seconds: bar.elapsed().as_secs_f64(),
        seconds_left: bar.eta().as_secs_f64(),
        at: bar.message(),
    }
}

/// Prints how far this process has come to standard error at each signal USR1, as a line of JSON. Without this, the signal would end the
/// process.
#[cfg(unix)]
pub(crate) fn tell_on_signal() {
    use std::io::Write as _;
    use tokio::signal::unix::{SignalKind, signal};

    let (is_set, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        runtime.block_on(async {
            let mut signals = signal(SignalKind::user_defined1())?;
            let _ = is_set.send(());
            while signals.recv().await.is_some() {
                let line = serde_json::to_string(&report()).unwrap_or_default();
                // If stderr cannot be written, there is no other place for it.
                let _ = writeln!(std::io::stderr().lock(), "{line}");
            }
            std::io::Result::Ok(())
        })
    });
    // A signal that comes before this would end the process. If the thread has failed, the sender is gone.
    let _ = wait.recv();
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
