//! The time when a node must be probed, set by the nodes and read by the keeper's task.

use std::fmt;
use std::task::Waker;

use quorlock_core::time::Time;

use crate::mutex::Mutex;

/// The time at which the keeper must look at the nodes of a client, and the task that sleeps until then.
///
/// It is below both: a node knows when it must be probed, but does not know the keeper.
pub(crate) struct Alarm(Mutex<AlarmState>);

struct AlarmState {
    due: Time,
    /// When the task wakes up by itself.
    sleeps_until: Time,
    waker: Option<Waker>,
}

impl Default for Alarm {
    fn default() -> Self {
        Alarm(Mutex::new(AlarmState {
            due: Time::NEVER,
            sleeps_until: Time::NEVER,
            waker: None,
        }))
    }
}

impl Alarm {
    /// Sets the alarm to `due`, if that is earlier. Wakes the task only if it would sleep for too long.
    pub(crate) fn set(&self, due: Time) {
        let waker = {
            let mut state = self.0.lock();
            state.due = state.due.min(due);
            if due < state.sleeps_until {
                state.waker.take()
            } else {
                None
            }
        };
        // Without the mutex: the waker may poll the keeper's task on this thread, which reads the alarm.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Clears the alarm.
    pub(crate) fn clear(&self) {
        self.0.lock().due = Time::NEVER;
    }

    pub(crate) fn due(&self) -> Time {
        self.0.lock().due
    }

    /// Registers the task of `waker`. It sleeps until the time that `until` returns for the due time.
    ///
    /// `until` is called under the mutex. Otherwise the task could read that nothing is due, a node could then set
    /// the alarm, and the task would go to sleep without having seen it.
    pub(crate) fn sleep(&self, waker: &Waker, until: impl FnOnce(Time) -> Time) -> Time {
        let mut state = self.0.lock();
        match &mut state.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        state.sleeps_until = until(state.due);
        state.sleeps_until
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Alarm").field(&self.due()).finish()
    }
}

#[cfg(all(test, shuttle))]
mod threads {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::task::Poll;

    use super::*;

    #[test]
    fn no_alarm_is_missed_by_the_task_that_goes_to_sleep() {
        let name = "no_alarm_is_missed_by_the_task_that_goes_to_sleep";
        quorlock_explore::explore_all(name, 10_000, async || {
            let alarm = Arc::new(Alarm::default());
            for due in [3, 2] {
                let alarm = alarm.clone();
                drop(shuttle::future::spawn(async move {
                    alarm.set(Time::from_nanos(due));
                }));
            }
            // Sleeps until both have been set.
            let sleeping = poll_fn(|cx| {
                let until = alarm.sleep(cx.waker(), |due| due);
                match until == Time::from_nanos(2) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            });
            sleeping.await;
        });
    }
}
