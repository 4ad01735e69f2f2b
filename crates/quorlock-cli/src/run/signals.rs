//! Signals from outside.

use std::io;
use std::task::{Context, Poll};

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// Signals that end a program by default.
pub(crate) const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// Other signals that are passed on to the command.
pub(crate) const TELLING: [Signal; 5] = [
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::CONT,
    Signal::TSTP,
];

/// Signals that are caught instead of having their default effect.
///
/// Signals that were ignored when this process started stay ignored, here and in the command, as `nohup` requires.
#[derive(Debug)]
pub(crate) struct Signals {
    streams: Vec<(Signal, Stream)>,
    /// The last received signal that ends a program.
    ending: Option<Signal>,
}

impl Signals {
    /// Catches these signals.
    pub(crate) fn catch(signals: &[Signal]) -> io::Result<Self> {
        let mut caught = Signals {
            streams: Vec::new(),
            ending: None,
        };
        caught.catch_also(signals)?;
        Ok(caught)
    }

    /// Catches these signals too, unless they are caught already.
    pub(crate) fn catch_also(&mut self, signals: &[Signal]) -> io::Result<()> {
        let ignored = ignored();
        for name in signals {
            let number = name.as_raw();
            let is_ignored = (ignored >> (number - 1)) & 1 == 1;
            let is_caught = self.streams.iter().any(|(caught, _)| caught == name);
            if !is_ignored && !is_caught {
                let stream = signal(SignalKind::from_raw(number))?;
                self.streams.push((*name, stream));
            }
        }
        Ok(())
    }

    /// Polls for the next signal.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        for (name, stream) in &mut self.streams {
            if let Poll::Ready(Some(())) = stream.poll_recv(cx) {
                if ENDING.contains(name) {
                    // An earlier INT, TERM or QUIT is not replaced by a HUP.
                    self.ending = match self.ending {
                        Some(before) if *name == Signal::HUP => Some(before),
                        _ => Some(*name),
                    };
                }
                return Poll::Ready(*name);
            }
        }
        Poll::Pending
    }

    /// Returns the last received signal that ends a program by default.
    pub(crate) fn ending(&self) -> Option<Signal> {
        self.ending
    }
}

/// Returns the signals that this process ignored at its start, one bit each, where the system shows them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
