//! A time limit for runs that do not end.
//!
//! The engine ends a run in which too much happens while no time passes. It cannot end a client that loops in its own
//! code without using a clock or the network. For such a run, [`TimeLimit`] prints the seed and ends the process.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest time that a run may compute. A run takes milliseconds, or some seconds in a debug build.
const MOST: Duration = Duration::from_secs(90);

/// How long this process has computed on all its threads. A machine that has no time for the process is not taken for a
/// run that does not end.
#[cfg(unix)]
fn computed() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// How much time has passed since the first call.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
fn computed() -> Duration {
    static BEGAN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGAN.get_or_init(std::time::Instant::now).elapsed()
}

/// The name of the cell of a run, and its seed.
type RunName = (String, u64);

/// Watches all runs that are in progress until it is dropped.
pub(crate) struct TimeLimit {
    /// The runs, each with how long the process had computed when it began.
    running: Arc<Mutex<BTreeMap<RunName, Duration>>>,
    _until_dropped: Sender<()>,
}

impl TimeLimit {
    pub(crate) fn new() -> Self {
        let running = Arc::new(Mutex::new(BTreeMap::new()));
        let (until_dropped, is_dropped) = channel::<()>();
        let watched = running.clone();
        std::thread::spawn(move || {
            while is_dropped.recv_timeout(MOST / 9) == Err(RecvTimeoutError::Timeout) {
                if let Some(run) = endless(&watched, computed()) {
                    say_and_exit(&run);
                }
            }
        });
        TimeLimit {
            running,
            _until_dropped: until_dropped,
        }
    }

    /// Runs a seed of a cell within the time limit.
    pub(crate) fn with<T>(&self, cell: &str, seed: u64, run: impl FnOnce() -> T) -> T {
        let name = (cell.to_owned(), seed);
        let running = || self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running().insert(name.clone(), computed());
        let ended = run();
        running().remove(&name);
        ended
    }
}

/// Returns a run that has lasted for too long at this time. All runs compute at the same time, so each is allowed the share of
/// the others as well.
fn endless(running: &Mutex<BTreeMap<RunName, Duration>>, now: Duration) -> Option<RunName> {
    let running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let most = MOST * u32::try_from(running.len()).unwrap_or(u32::MAX);
    let endless = |(_, began): &(&RunName, &Duration)| most < now.saturating_sub(**began);
    running.iter().find(endless).map(|(run, _)| run.clone())
}

#[expect(
    clippy::print_stderr,
    clippy::exit,
    reason = "a thread in an endless loop cannot be stopped"
)]
fn say_and_exit((cell, seed): &RunName) -> ! {
    eprintln!("error: the run of seed {seed} of {cell} does not end");
    std::process::exit(3);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_computes_for_too_long_is_named_and_what_has_ended_is_not() {
        let limit = TimeLimit::new();
        let much = computed() + 2 * MOST;
        let seven = |at| limit.with("a", 7, || endless(&limit.running, at));
        assert_eq!(seven(computed()), None);
        assert_eq!(seven(much), Some(("a".to_owned(), 7)));
        assert_eq!(endless(&limit.running, much), None);
        // With three runs, each may have waited for the two others.
        let run = |seed, then: &dyn Fn()| limit.with("a", seed, then);
        run(1, &|| {
            run(2, &|| {
                run(3, &|| {
                    assert_eq!(endless(&limit.running, much), None);
                    let first = endless(&limit.running, much + 2 * MOST);
                    assert_eq!(first, Some(("a".to_owned(), 1)));
                })
            })
        });
    }
}
