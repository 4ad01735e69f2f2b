//! A stopwatch for wall-clock time and processor time.

use std::fmt;
use std::ops::AddAssign;
use std::time::Instant;

use serde::Serialize;

/// A stopwatch that is running.
pub(super) struct Watch {
    wall: Instant,
    cpu: Option<f64>,
}

/// A measurement, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Took {
    pub(super) wall: f64,
    /// The processor time of all threads of this process, or `None` if it is not available.
    pub(super) cpu: Option<f64>,
}

/// An amount of work per second. On a machine that runs other programs as well, the rate per second of processor time
/// is more reliable.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Rate {
    pub(super) per_second: f64,
    pub(super) per_cpu_second: Option<f64>,
}

impl Watch {
    #[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
    pub(super) fn start() -> Self {
        Watch {
            wall: Instant::now(),
            cpu: cpu_seconds(),
        }
    }

    pub(super) fn read(&self) -> Took {
        Took {
            wall: self.wall.elapsed().as_secs_f64(),
            cpu: self
                .cpu
                .zip(cpu_seconds())
                .map(|(began, ended)| ended - began),
        }
    }
}

impl Took {
    pub(super) fn rate(&self, amount: f64) -> Rate {
        Rate {
            per_second: amount / self.wall,
            per_cpu_second: self.cpu.map(|cpu| amount / cpu),
        }
    }
}

impl AddAssign for Took {
    fn add_assign(&mut self, other: Took) {
        self.wall += other.wall;
        self.cpu = other.cpu.map(|cpu| self.cpu.unwrap_or(0.0) + cpu);
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} per second", self.per_second)?;
        match self.per_cpu_second {
            Some(rate) => write!(f, " ({rate:.0} per second of processor time)"),
            None => Ok(()),
        }
    }
}

/// Returns the processor time that this process has used so far.
#[cfg(unix)]
fn cpu_seconds() -> Option<f64> {
    use rustix::time::{ClockId, clock_gettime};
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Some(used.tv_sec as f64 + used.tv_nsec as f64 / 1e9)
}

#[cfg(not(unix))]
fn cpu_seconds() -> Option<f64> {
    None
}
