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

/// Watches all runs that are in progress until it is dropped.
pub(crate) struct TimeLimit {
    /// The seeds, each with how long the process had computed when its run began.
    running: Arc<Mutex<BTreeMap<u64, Duration>>>,
    _until_dropped: Sender<()>,
}

impl TimeLimit {
    pub(crate) fn new() -> Self {
        let running = Arc::new(Mutex::new(BTreeMap::new()));
        let (until_dropped, is_dropped) = channel::<()>();
        let watched = running.clone();
        std::thread::spawn(move || {
            while is_dropped.recv_timeout(MOST / 9) == Err(RecvTimeoutError::Timeout) {
                if let Some(seed) = endless(&watched, computed()) {
                    say_and_exit(seed);
                }
            }
        });
        TimeLimit {
            running,
            _until_dropped: until_dropped,
        }
    }

    /// Runs a seed within the time limit.
    pub(crate) fn with<T>(&self, seed: u64, run: impl FnOnce() -> T) -> T {
        let running = || self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running().insert(seed, computed());
        let ended = run();
        running().remove(&seed);
        ended
    }
}

/// Returns a seed that has run for too long at this time. All runs compute at the same time, so each is allowed the share of
/// the others as well.
fn endless(running: &Mutex<BTreeMap<u64, Duration>>, now: Duration) -> Option<u64> {
    let running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let most = MOST * u32::try_from(running.len()).unwrap_or(u32::MAX);
    let endless = |(_, began): &(&u64, &Duration)| most < now.saturating_sub(**began);
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
    fn what_computes_for_too_long_is_named_and_what_has_ended_is_not() {
        let limit = TimeLimit::new();
        let much = computed() + 2 * MOST;
        assert_eq!(limit.with(7, || endless(&limit.running, computed())), None);
        assert_eq!(limit.with(7, || endless(&limit.running, much)), Some(7));
        assert_eq!(endless(&limit.running, much), None);
        // With three runs, each may have waited for the two others.
        let run = |seed, then: &dyn Fn()| limit.with(seed, then);
        run(1, &|| {
            run(2, &|| {
                run(3, &|| {
                    assert_eq!(endless(&limit.running, much), None);
                    assert_eq!(endless(&limit.running, much + 2 * MOST), Some(1));
                })
            })
        });
    }
}
