//! A time limit for runs that do not end.
//!
//! The engine ends a run in which too much happens while no time passes. It cannot end a client that loops in its own
//! code without using a clock or the network. For such a run, [`Patience`] prints the seed and ends the process.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest time that a run may take. A run takes milliseconds, or some seconds in a debug build on a busy machine.
const MOST: Duration = Duration::from_secs(90);

/// Watches all runs that are in progress until it is dropped.
pub(crate) struct Patience {
    running: Arc<Mutex<BTreeMap<u64, Instant>>>,
    _until_dropped: Sender<()>,
}

impl Patience {
    pub(crate) fn new() -> Self {
        let running = Arc::new(Mutex::new(BTreeMap::new()));
        let (until_dropped, is_dropped) = channel::<()>();
        let watched = running.clone();
        std::thread::spawn(move || {
            while is_dropped.recv_timeout(MOST / 9) == Err(RecvTimeoutError::Timeout) {
                if let Some(seed) = endless(&watched) {
                    say_and_exit(seed);
                }
            }
        });
        Patience {
            running,
            _until_dropped: until_dropped,
        }
    }

    /// Runs a seed within the time limit.
    #[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
    pub(crate) fn with<T>(&self, seed: u64, run: impl FnOnce() -> T) -> T {
        let running = || self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running().insert(seed, Instant::now());
        let ended = run();
        running().remove(&seed);
        ended
    }
}

/// Returns a seed that has run for too long.
fn endless(running: &Mutex<BTreeMap<u64, Instant>>) -> Option<u64> {
    let running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let endless = |(_, began): &(&u64, &Instant)| MOST < began.elapsed();
    running.iter().find(endless).map(|(seed, _)| *seed)
}

#[expect(
    clippy::print_stderr,
    clippy::exit,
    reason = "a thread in an endless loop cannot be stopped"
)]
fn say_and_exit(seed: u64) -> ! {
    eprintln!("error: the run of seed {seed} does not end");
    std::process::exit(3);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
    fn what_runs_for_too_long_is_named_and_what_has_ended_is_not() {
        let patience = Patience::new();
        assert_eq!(patience.with(7, || endless(&patience.running)), None);
        let mut running = patience.running.lock().unwrap();
        assert!(running.is_empty());
        let long_ago = Instant::now().checked_sub(2 * MOST).unwrap();
        running.insert(8, long_ago);
        drop(running);
        assert_eq!(endless(&patience.running), Some(8));
    }
}
