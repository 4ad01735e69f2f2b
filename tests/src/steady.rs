//! Compares the cost of a lock at two addresses, without faults.

use std::time::{Duration, Instant};

use quorlock::Locks;

/// The number of measured rounds, unless `QUORLOCK_MEASURE` overrides it.
const ROUNDS: usize = 30;

/// The number of locks that a client acquires and releases in a round.
pub const LOCKS: u32 = 100;

/// Returns how long one lock takes from its acquisition to its release.
///
/// # Panics
/// Panics if a lock is not granted or not released.
pub async fn took(locks: &Locks) -> Duration {
    let lock = locks.lock("steady");
    let began = Instant::now();
    for _ in 0..LOCKS {
        let guard = lock.acquire().await.expect("the lock is free");
        guard.release().await.expect("it is held");
    }
    began.elapsed() / LOCKS
}

/// The medians of many rounds.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The time of a lock at the other address, divided by the time at the plain address.
    pub ratio: f64,
    /// The same ratio for a second client of the plain address. It shows the noise.
    pub control: f64,
    /// The time of a lock at the plain address, in microseconds.
    pub plain_micros: f64,
}

impl Measured {
    /// Prints the figures for this kind of address.
    pub fn print(&self, kind: &str) {
        let Measured {
            ratio,
            control,
            plain_micros,
        } = self;
        println!(
            "a lock at {kind} takes {ratio:.3} times one at a plain address (control {control:.3}; {plain_micros:.0} us)"
        );
    }
}

/// Measures three clients in turn: one of the plain address, one of the other address, and another one of the plain
/// address.
///
/// # Panics
/// Panics if a lock is not granted, or `QUORLOCK_MEASURE` is not a number.
pub async fn measure(clients: &[Locks; 3]) -> Measured {
    for client in clients {
        took(client).await;
    }
    let rounds = std::env::var("QUORLOCK_MEASURE").ok();
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let (mut ratios, mut controls, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut times = [Duration::ZERO; 3];
        for place in 0..3 {
            // Each client is first, second and third equally often.
            let which = (round + place) % 3;
            times[which] = took(&clients[which]).await;
        }
        let [plain, other, control] = times.map(|time| time.as_secs_f64());
        ratios.push(other / plain);
        controls.push(control / plain);
        spans.push(plain * 1e6);
    }
    Measured {
        ratio: median(ratios),
        control: median(controls),
        plain_micros: median(spans),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
