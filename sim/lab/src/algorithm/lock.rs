//! The lock of an algorithm as workloads use it: it waits, and tries again.

use std::rc::Rc;
use std::time::Duration;

use quorlock::{AcquireError, Name, RetryPolicy};
use quorlock_core::backoff::Backoff;

use super::{AlgorithmGuard, AlgorithmLock, Attempt, LockAlgorithm, LockClient};
use quorlock_sim_world::world::with;

/// The number of consecutive failed attempts after which an acquisition fails.
const FAILED_ATTEMPTS: u32 = 5;

/// A lock of an algorithm.
#[derive(Clone, Debug)]
pub struct OwnLock {
    client: Rc<LockClient>,
    name: Name,
    lock: Rc<dyn AlgorithmLock>,
    /// Whether nodes do not see which writes acquire, so that they are counted here.
    counts: bool,
    /// The lease; `None` if the watchdog renews the plan's lease.
    lease: Option<Duration>,
    /// The longest wait; `None` for no limit.
    wait: Option<Duration>,
}

impl OwnLock {
    pub(crate) fn new(
        algorithm: &dyn LockAlgorithm,
        client: &Rc<LockClient>,
        names: &[String],
    ) -> Self {
        let [name] = names else {
            unreachable!("BUG: the plan was checked, so a lock has one name, not {names:?}");
        };
        let name = Name::new(name).expect("the names of a lock");
        OwnLock {
            lock: algorithm.lock(Rc::clone(client), name.clone()),
            client: Rc::clone(client),
            name,
            counts: algorithm.nodes().is_store(),
            lease: None,
            wait: None,
        }
    }

    pub(crate) fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    pub(crate) fn wait(mut self, at_most: Duration) -> Self {
        self.wait = Some(at_most);
        self
    }

    /// Makes one attempt.
    pub(crate) async fn try_acquire(&self) -> Result<Option<AlgorithmGuard>, AcquireError> {
        match self.attempt().await {
            Attempt::Won(hold) => Ok(Some(self.guard(hold))),
            Attempt::Refused(_) => Ok(None),
            Attempt::Failed => Err(self.no_quorum(Duration::ZERO)),
        }
    }

    /// Makes attempts until one is won, the wait is over, or five in a row have failed.
    pub(crate) async fn acquire(&self) -> Result<AlgorithmGuard, AcquireError> {
        let workload = &self.client.plan().workload;
        let (poll_cap, cap) = (
            workload.poll_cap.as_duration(),
            workload.backoff_cap.as_duration(),
        );
        let mut backoff = Backoff::new(RetryPolicy::default().backoff.min(cap), cap);
        let began = self.client.now();
        let mut failures = 0;
        loop {
            let asked = self.client.now();
            let pause = match self.attempt().await {
                Attempt::Won(hold) => return Ok(self.guard(hold)),
                Attempt::Refused(Some(free_after)) => {
                    failures = 0;
                    free_after.min(poll_cap)
                }
                Attempt::Refused(None) => {
                    failures = 0;
                    poll_cap
                }
                Attempt::Failed => {
                    failures += 1;
                    Duration::ZERO
                }
            };
            let now = self.client.now();
            let is_over = self.wait.is_some_and(|wait| wait <= now.since(began));
            if is_over || FAILED_ATTEMPTS <= failures {
                return Err(self.no_quorum(now.since(began)));
            }
            // A random part, so that two waiters do not try at the same instants for ever.
            let random = backoff.next(self.client.random(), now.since(asked) * 2);
            self.client.sleep_until(now + pause + random).await;
        }
    }

    async fn attempt(&self) -> Attempt {
        let outcome = self.lock.attempt(self.length()).await;
        if self.counts {
            with(|world| match &outcome {
                Attempt::Won(_) => world.counters.granted += 1,
                Attempt::Refused(_) => world.counters.refused += 1,
                Attempt::Failed => {}
            });
        }
        outcome
    }

    fn length(&self) -> Duration {
        let of_plan = self.client.plan().workload.lease;
        self.lease.unwrap_or(of_plan.as_duration())
    }

    fn guard(&self, hold: Rc<dyn super::AlgorithmHold>) -> AlgorithmGuard {
        let guard = AlgorithmGuard::new(&self.client, self.name.clone(), hold);
        if self.lease.is_none() {
            guard.watch(self.length() / 3);
        }
        guard
    }

    fn no_quorum(&self, tried: Duration) -> AcquireError {
        AcquireError::NoQuorum {
            names: self.name.text().into_owned(),
            tried,
            of: usize::from(self.client.node_count()),
            nodes: Vec::new(),
        }
    }
}
