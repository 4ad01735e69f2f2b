//! The clock, the timers, the tasks and the randomness of one schedule.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock::runtime::{Runtime, Task, Time, Timer, WallMillis};
use shuttle::future::{AbortHandle, JoinHandle};
use shuttle::sync::atomic::{AtomicU64, Ordering};

use quorlock_explore::{Pace, draw};

/// The longest time that a test may take on its own clock. A test that takes longer has lost a wake-up, or has a task
/// that does not end.
const LONGEST: Duration = Duration::from_secs(600);

/// Runs a test under many schedules, each in a separate world.
///
/// # Panics
/// Panics if the test panics, in the schedule in which it does.
pub fn explore<F, T>(name: &'static str, pace: Pace, test: F)
where
    F: Fn(World) -> T + Send + Sync + 'static,
    T: Future<Output = ()> + 'static,
{
    quorlock_explore::explore(name, pace, move || {
        let world = World::begin();
        let body = test(world.clone());
        async move {
            body.await;
            world.end();
        }
    });
}

/// The clock, the timers, the tasks and the randomness of one schedule. Clones are the same world.
///
/// One task, the clock, advances time to the next timer, and no further. The schedule decides when that task has its
/// turn.
#[derive(Clone)]
pub struct World(Arc<Shared>);

struct Shared {
    /// The time in nanoseconds. Each reading is a step, so time may pass between two readings.
    now: AtomicU64,
    /// The state. Its mutex is never held across a step.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    timers: BTreeMap<(Time, u64), Waker>,
    last_timer: u64,
    /// The number of tasks of the product that have not ended.
    tasks: usize,
    /// Handles that abort the tasks.
    ends: Vec<AbortHandle>,
    /// The waker of the clock's task, while there is no timer.
    clock: Option<Waker>,
    /// The waker of the task that waits for the end of all tasks.
    quiet: Option<Waker>,
    has_ended: bool,
}

impl World {
    pub(crate) fn begin() -> Self {
        let shared = Arc::new(Shared {
            // The time does not begin at zero, so that no reading can be mistaken for a missing one.
            now: AtomicU64::new(1_000_000_000),
            state: Mutex::default(),
        });
        let clock = shared.clone();
        drop(shuttle::future::spawn(poll_fn(move |cx| clock.tick(cx))));
        World(shared)
    }

    pub(crate) fn end(&self) {
        let mut state = self.0.state.lock().unwrap();
        state.has_ended = true;
        let clock = state.clock.take();
        drop(state);
        if let Some(clock) = clock {
            clock.wake();
        }
    }

    /// Returns how long the schedule has lasted, on its own clock.
    pub fn millis(&self) -> u64 {
        self.0.now.load(Ordering::SeqCst) / 1_000_000 - 1_000
    }

    /// Returns the runtime for locks and nodes.
    pub fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(self.clone())
    }

    /// Runs part of a test on a separate thread.
    pub fn thread(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        shuttle::future::spawn(task)
    }

    /// Sleeps for a span of this world's time.
    pub async fn sleep(&self, span: Duration) {
        let at = self.now() + span;
        let mut timer = self.timer();
        poll_fn(|cx| timer.poll_until(cx, at)).await;
    }

    /// Aborts all current tasks of the product, as a runtime does when it is shut down.
    pub fn shut_down(&self) {
        let ends = std::mem::take(&mut self.0.state.lock().unwrap().ends);
        ends.iter().for_each(AbortHandle::abort);
    }

    /// Continues after other threads had their turns.
    pub async fn step(&self) {
        shuttle::future::yield_now().await;
    }

    /// Draws a number below a bound.
    pub fn draw(&self, below: u64) -> u64 {
        draw() % below
    }

    /// Waits until every task of the product has ended. Call it when no value of the product is left.
    pub async fn quiet(&self) {
        poll_fn(|cx| {
            let mut state = self.0.state.lock().unwrap();
            if state.tasks == 0 {
                return Poll::Ready(());
            }
            state.quiet = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Shared {
    /// Advances time, once per turn.
    fn tick(&self, cx: &Context<'_>) -> Poll<()> {
        let next = {
            let mut state = self.state.lock().unwrap();
            if state.has_ended {
                return Poll::Ready(());
            }
            let next = state.timers.keys().next().map(|(at, _)| *at);
            if next.is_none() {
                state.clock = Some(cx.waker().clone());
            }
            next
        };
        let Some(next) = next else {
            return Poll::Pending;
        };
        let next = next.as_nanos();
        let now = self.now.load(Ordering::SeqCst);
        if now < next {
            // Sometimes only part of the way, so that leases that end between two timers end at a separate time.
            let to = match draw() {
                part if part % 4 == 0 => now + part / 4 % (next - now),
                _ => next,
            };
            self.now.store(to, Ordering::SeqCst);
            let limit = u64::try_from(LONGEST.as_nanos()).unwrap();
            assert!(
                to < limit,
                "no end after {LONGEST:?}: a wake-up is lost, or a task was left behind"
            );
        }
        let now = Time::from_nanos(self.now.load(Ordering::SeqCst));
        let due: Vec<Waker> = {
            let mut state = self.state.lock().unwrap();
            let later = state.timers.split_off(&(now, u64::MAX));
            let due = std::mem::replace(&mut state.timers, later);
            due.into_values().collect()
        };
        due.into_iter().for_each(Waker::wake);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn ended(&self) {
        let waker = {
            let mut state = self.state.lock().unwrap();
            state.tasks -= 1;
            if state.tasks == 0 {
                state.quiet.take()
            } else {
                None
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Runtime for World {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.now.load(Ordering::SeqCst))
    }

    fn wall_clock(&self) -> WallMillis {
        WallMillis(1_700_000_000_000 + self.0.now.load(Ordering::SeqCst) / 1_000_000)
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(WorldTimer {
            shared: self.0.clone(),
            set: None,
        })
    }

    fn spawn(&self, task: Task) {
        self.0.state.lock().unwrap().tasks += 1;
        let counted = Counted(self.0.clone());
        let task = shuttle::future::spawn(async move {
            task.await;
            drop(counted);
        });
        self.0.state.lock().unwrap().ends.push(task.abort_handle());
    }

    fn random(&self) -> u64 {
        draw()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}

/// A task that has not ended.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.ended();
    }
}

struct WorldTimer {
    shared: Arc<Shared>,
    set: Option<(Time, u64)>,
}

impl Timer for WorldTimer {
    fn poll_until(&mut self, cx: &mut Context<'_>, at: Time) -> Poll<()> {
        let now = Time::from_nanos(self.shared.now.load(Ordering::SeqCst));
        let mut state = self.shared.state.lock().unwrap();
        let before = self.set.take().and_then(|set| state.timers.remove(&set));
        if at <= now || at == Time::NEVER {
            drop(state);
            drop(before);
            return if at <= now {
                Poll::Ready(())
            } else {
                Poll::Pending
            };
        }
        state.last_timer += 1;
        let set = (at, state.last_timer);
        state.timers.insert(set, cx.waker().clone());
        self.set = Some(set);
        let clock = state.clock.take();
        drop(state);
        drop(before);
        if let Some(clock) = clock {
            clock.wake();
        }
        Poll::Pending
    }
}

impl Drop for WorldTimer {
    fn drop(&mut self) {
        // A waker may be the last owner of something of the product: it is dropped outside the mutex, because that drop
        // takes a step.
        if let Some(set) = self.set.take() {
            let waker = self.shared.state.lock().unwrap().timers.remove(&set);
            drop(waker);
        }
    }
}
