//! Signals that come from outside.

use std::io;
use std::task::{Context, Poll};

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// What ends a program that does not care for it.
pub(crate) const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// What else is passed on to a command.
pub(crate) const TELLING: [Signal; 5] = [
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::CONT,
    Signal::TSTP,
];

/// Signals that are caught instead of doing what they would.
///
/// Those that were ignored when this process began stay ignored, here and in the command: `nohup` means it.
#[derive(Debug)]
pub(crate) struct Signals {
    streams: Vec<(Signal, Stream)>,
    /// The last one that ends a program.
    ending: Option<Signal>,
}

impl Signals {
    /// Catches these.
    pub(crate) fn catch(signals: &[Signal]) -> io::Result<Self> {
        let mut caught = Signals {
            streams: Vec::new(),
            ending: None,
        };
        caught.catch_also(signals)?;
        Ok(caught)
    }

    /// Catches these besides, as far as they are not caught yet.
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

    /// The next one.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        for (name, stream) in &mut self.streams {
            if let Poll::Ready(Some(())) = stream.poll_recv(cx) {
                if ENDING.contains(name) {
                    // One that is not HUP is not forgotten for its sake.
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

    /// The last of those that came which ends a program that does not care for it.
    pub(crate) fn ending(&self) -> Option<Signal> {
        self.ending
    }
}

/// The signals that this process was told to ignore, a bit each, where the system says so.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
