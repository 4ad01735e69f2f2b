//! A program that works with `rlock` as the harness requests.

#[path = "../../../locks/driver/program.rs"]
mod program;

use std::time::Duration;

use program::{Client, Failure, Held, Job};
use rlock::async_lock::{RLock, RLockGuard};
use rlock::{AcquireOptions, LeaseState};

#[derive(Clone)]
struct Library(RLock, AcquireOptions);

struct Kept(RLockGuard);

impl Client for Library {
    type Held = Kept;

    async fn connect(job: &Job) -> Result<Self, Failure> {
        let [port] = job.ports[..] else {
            return Err("it works on one server".into());
        };
        let lease = Duration::from_millis(job.lease_millis);
        let options = AcquireOptions::builder().ttl(lease).build()?;
        let rlock = RLock::new(format!("redis://127.0.0.1:{port}/")).await?;
        Ok(Library(rlock, options))
    }

    async fn acquire(&self, name: &str) -> Result<Kept, Failure> {
        let guard = self.0.acquire_mutex_with_options(name, self.1.clone());
        Ok(Kept(guard.await?))
    }
}

impl Held for Kept {
    async fn release(mut self) -> Result<(), Failure> {
        Ok(self.0.release().await?)
    }

    fn is_held(&self) -> bool {
        self.0.lease_state() == LeaseState::Active
    }
}

fn main() -> Result<(), Failure> {
    program::run::<Library>(&std::env::args().nth(1).ok_or("the job is missing")?)
}
