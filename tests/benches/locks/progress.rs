//! The progress of a measurement, on standard error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A line that is overwritten on a terminal, and printed now and then elsewhere.
pub(crate) struct Progress {
    what: String,
    all: u64,
    began: Instant,
    next: Instant,
    is_terminal: bool,
}

impl Progress {
    pub(crate) fn new(what: impl Into<String>, all: u64) -> Self {
        let now = Instant::now();
        Progress {
            what: what.into(),
            all: all.max(1),
            began: now,
            next: now,
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Notes how much of the measurement is done.
    pub(crate) fn at(&mut self, done: u64) {
        let now = Instant::now();
        if now < self.next && done < self.all {
            return;
        }
        let every = if self.is_terminal { 200 } else { 15_000 };
        self.next = now + Duration::from_millis(every);
        let percent = 100 * done / self.all;
        let seconds = self.began.elapsed().as_secs();
        let mut err = std::io::stderr().lock();
        let _ = if self.is_terminal {
            let end = if done < self.all { "" } else { "\n" };
            write!(err, "\r  {:40} {percent:3} % {seconds:4} s{end}", self.what)
        } else {
            writeln!(err, "  {:40} {percent:3} % {seconds:4} s", self.what)
        };
        let _ = err.flush();
    }
}
