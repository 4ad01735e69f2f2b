//! What the kernel does for a process that is stopped.

use std::ffi::CStr;
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use nix::sys::signal::{SigEvent, SigevNotify, Signal};
#[cfg(target_os = "linux")]
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
#[cfg(target_os = "linux")]
use nix::time::ClockId;

use super::clock::Moment;

/// A timer of the kernel that sends this process CONT. On Linux it continues a process that is stopped then, so that
/// `kill -STOP` cannot keep it from what it has to do at that time. It repeats until it is set again: a process that is
/// stopped once more before it has done that is continued once more.
#[derive(Debug)]
pub(super) struct Alarm {
    #[cfg(target_os = "linux")]
    timer: Option<Timer>,
    set: Option<Moment>,
}

/// Time between two signals of an alarm that is due.
#[cfg(target_os = "linux")]
const BETWEEN_SIGNALS: Duration = Duration::from_millis(1);

impl Alarm {
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> Self {
        let signal = SigevNotify::SigevSignal {
            signal: Signal::SIGCONT,
            si_value: 0,
        };
        // A kernel without such timers is one where a stopped process stays stopped.
        let timer = Timer::new(ClockId::CLOCK_BOOTTIME, SigEvent::new(signal)).ok();
        Alarm { timer, set: None }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new() -> Self {
        Alarm { set: None }
    }

    /// Sets the timer to this time, and to no other.
    pub(super) fn set(&mut self, at: Moment) {
        if self.set != Some(at) {
            self.set = Some(at);
            self.arm(at);
        }
    }

    /// Stops the timer until it is set again.
    pub(super) fn clear(&mut self) {
        self.set = None;
        // The kernel takes zero as "never".
        self.arm(Moment::of_nanos(0));
    }

    #[cfg(target_os = "linux")]
    fn arm(&mut self, at: Moment) {
        if let Some(timer) = &mut self.timer {
            let at = Duration::from_nanos(at.as_nanos());
            let at = Expiration::IntervalDelayed(at.into(), BETWEEN_SIGNALS.into());
            let _ = timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn arm(&mut self, _: Moment) {}
}

/// Gives this process a name of its own. `pkill` and `killall` look at the name: a signal that reaches the wrapper by
/// its name must not reach the processes that end the command when the wrapper cannot.
pub(super) fn take_name(name: &CStr) {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(name);
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}
