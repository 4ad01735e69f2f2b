//! Time, tasks and randomness.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use quorlock::runtime::{Runtime, Task, Time, Timer, WallMillis};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep};

/// The time, timers and tasks of turmoil's hosts, and random numbers from a seed.
///
/// The monotonic clock shows the time since the simulation began, also after a restart of a host, and the wall clock that time after the
/// epoch of the simulation. A task runs on the host that spawned it, and ends with it.
#[derive(Debug)]
pub struct TurmoilRuntime {
    random: Mutex<Xoshiro256PlusPlus>,
    clock: SimClock,
}

impl TurmoilRuntime {
    /// Creates a runtime for all clients of a simulation. With one for each client, two clients would draw the same identity.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        TurmoilRuntime {
            random: Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
            clock: SimClock::default(),
        }
    }
}

impl Runtime for TurmoilRuntime {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn wall_clock(&self) -> WallMillis {
        let since = turmoil::since_epoch().unwrap_or_default();
        WallMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(SimTimer { sleep: None })
    }

    fn spawn(&self, task: Task) {
        // A guard that is dropped because its host crashes has no runtime any more. A dead process releases nothing.
        if let Ok(host) = Handle::try_current() {
            host.spawn(task);
        }
    }

    fn random(&self) -> u64 {
        let random = self.random.lock();
        random.unwrap_or_else(PoisonError::into_inner).next_u64()
    }
}

/// The time since the simulation began.
#[derive(Debug, Default)]
struct SimClock {
    /// The last reading, in nanoseconds. It is shown to what is dropped with its host, which has no time of its own.
    last: AtomicU64,
}

impl SimClock {
    fn now(&self) -> Time {
        // Without a runtime, turmoil would compare its time with that of the machine.
        let elapsed = Handle::try_current()
            .ok()
            .and_then(|_| turmoil::sim_elapsed());
        let nanos = match elapsed {
            Some(elapsed) => {
                let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
                self.last.store(nanos, Ordering::Relaxed);
                nanos
            }
            None => self.last.load(Ordering::Relaxed),
        };
        Time::ZERO + Duration::from_nanos(nanos)
    }
}

struct SimTimer {
    sleep: Option<Pin<Box<Sleep>>>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the Runtime seam, in the time of a simulated host"
)]
impl Timer for SimTimer {
    fn poll_until(&mut self, cx: &mut Context<'_>, at: Time) -> Poll<()> {
        if at == Time::NEVER {
            return Poll::Pending;
        }
        let elapsed = turmoil::sim_elapsed().expect("BUG: a task of a host");
        let wait = at.since(Time::ZERO + elapsed);
        let deadline = Instant::now() + wait;
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx)
    }
}
