//! Locks of a variant, and their acquisition.

use std::cell::RefCell;
use std::fmt;
use std::rc::{Rc, Weak};
use std::time::Duration;

use quorlock::runtime::{Runtime, Time};
use quorlock::{AcquireError, RetryPolicy, Token};
use quorlock_core::backoff::Backoff;
use quorlock_core::lease::Lease;

use super::client::LockClient;
use super::guard::ModelGuard;
use super::hold::ModelHold;
use super::layout::Layout;
use super::round::{Round, RoundOutcome, TryLock};
use super::waiting::{ModelWaiter, WakeUpKind};
use super::{entry, watchdog};
use quorlock_sim_plan::variant::Flaw;

/// The number of consecutive failed rounds after which an acquisition fails.
const FAILED_ROUNDS: u32 = 5;

/// The longest lease that the variant with compounding leases reaches.
const LONGEST: Duration = Duration::from_secs(3600);

/// A lock of a variant.
#[derive(Clone)]
pub struct ModelLock {
    client: Rc<LockClient>,
    layout: Rc<Layout>,
    /// The lease, or `None` if the watchdog renews the plan's lease.
    lease: Option<Duration>,
    /// The hold to re-enter, if the lock belongs to an owner.
    own: Option<Rc<RefCell<Weak<ModelHold>>>>,
}

/// Whether an acquisition waits after a refusal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ModelPatience {
    Try,
    Wait,
}

impl ModelLock {
    pub(crate) fn new(client: &Rc<LockClient>, names: &[String]) -> Self {
        ModelLock {
            client: Rc::clone(client),
            layout: Rc::new(Layout::new(client, names)),
            lease: None,
            own: None,
        }
    }

    /// Turns the lock into the lock of an owner, which re-enters its hold.
    pub(crate) fn owned(mut self) -> Self {
        self.own = Some(Rc::default());
        self
    }

    pub(crate) fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    pub(crate) async fn acquire(&self) -> Result<ModelGuard, AcquireError> {
        let won = self.win(ModelPatience::Wait).await?;
        won.ok_or_else(|| self.no_quorum())
    }

    pub(crate) async fn try_acquire(&self) -> Result<Option<ModelGuard>, AcquireError> {
        self.win(ModelPatience::Try).await
    }

    fn no_quorum(&self) -> AcquireError {
        AcquireError::NoQuorum {
            names: self.layout.text(),
            tried: Duration::ZERO,
            of: usize::from(self.client.plan.nodes.count),
            nodes: Vec::new(),
        }
    }

    async fn win(&self, patience: ModelPatience) -> Result<Option<ModelGuard>, AcquireError> {
        let known = self.own.as_ref().and_then(|own| own.borrow().upgrade());
        if let Some(hold) = known.filter(|hold| hold.is_held()) {
            match entry::enter(&hold).await {
                Ok(()) => return Ok(Some(ModelGuard::new(&hold))),
                Err(_) if hold.is_held() => return Err(self.no_quorum()),
                Err(_) => {}
            }
        }
        let workload = &self.client.plan.workload;
        let policy = RetryPolicy::default();
        let cap = workload.backoff_cap.as_duration();
        let mut backoff = Backoff::new(policy.backoff.min(cap), cap);
        let mut lease = self.lease.unwrap_or(workload.lease.as_duration());
        let mut failures = 0;
        let mut waiting: Option<ModelWaiter> = None;
        loop {
            let leased = Lease::new(lease).expect("the plan was checked");
            if let Some(waiting) = &waiting {
                waiting.clear();
            }
            let began = self.client.now();
            match self.round(leased, patience).await {
                RoundOutcome::Won(hold) => return Ok(Some(self.hold(&hold))),
                RoundOutcome::Refused(_) if patience == ModelPatience::Try => return Ok(None),
                RoundOutcome::Failed if patience == ModelPatience::Try => {
                    return Err(self.no_quorum());
                }
                RoundOutcome::Refused(Some(free_after)) => {
                    failures = 0;
                    backoff.reset();
                    let heard = self.wait(&mut waiting, free_after).await;
                    if heard == WakeUpKind::Free && self.client.has(Flaw::WakeIsGrant) {
                        return Ok(Some(self.hold(&self.imagined(leased))));
                    }
                }
                outcome => {
                    failures = match outcome {
                        RoundOutcome::Failed => failures + 1,
                        _ => 0,
                    };
                    if FAILED_ROUNDS <= failures {
                        return Err(self.no_quorum());
                    }
                    let took = self.client.now().since(began);
                    let pause = match self.client.has(Flaw::PausesAreEven) {
                        true => policy.backoff.min(cap),
                        false => backoff.next(self.client.runtime().random(), took * 2),
                    };
                    self.pause(&mut waiting, pause).await;
                }
            }
            if self.client.has(Flaw::LeaseCompounds) {
                lease = (lease * 1000).min(LONGEST);
            }
        }
    }

    async fn round(&self, lease: Lease, patience: ModelPatience) -> RoundOutcome {
        let round = Round::new(&self.client, &self.layout, lease);
        if !self.client.has(Flaw::TakesTurns) {
            return round.run().await;
        }
        let (members, random) = (self.layout.members.len(), self.client.runtime().random());
        let lease = self.lease.map(|_| lease);
        round
            .take_turns(match patience {
                ModelPatience::Try => TryLock { wait: None, lease },
                ModelPatience::Wait => TryLock::of_lock(lease, members, random),
            })
            .await
    }

    /// Subscribes, checks again when the subscription is live, and then waits until the lock may be free.
    async fn wait(&self, waiting: &mut Option<ModelWaiter>, free_after: Duration) -> WakeUpKind {
        let now = self.client.now();
        let is_new = waiting.is_none();
        let waiting = waiting.get_or_insert_with(|| ModelWaiter::new(&self.layout));
        if self.client.has(Flaw::NoLookWithoutMessage) {
            return waiting
                .hear(&self.client, WakeUpKind::Free, Time::NEVER)
                .await;
        }
        // The first wait lasts only until the subscription is live. A release between the refusal and the subscription
        // sends no message to this waiter, which would then sleep for the rest of the TTL.
        let until = if is_new {
            let lease = Lease::new(self.client.plan.workload.lease.as_duration());
            let lease = lease.expect("the plan was checked");
            now + self.client.member_timeout(lease)
        } else {
            // A claim exists until the end of its last millisecond, so it is gone one millisecond later.
            let poll_cap = self.client.plan.workload.poll_cap.as_duration();
            now + free_after
                .saturating_add(Duration::from_millis(1))
                .min(poll_cap)
        };
        waiting.hear(&self.client, WakeUpKind::Live, until).await
    }

    /// Pauses between rounds. No message ends the pause, unless the variant has that flaw.
    async fn pause(&self, waiting: &mut Option<ModelWaiter>, pause: Duration) {
        let until = self.client.now() + pause;
        // A wake-up reaches all waiters at the same time. If it ended their pauses, they would split the votes again.
        if self.client.has(Flaw::WakeEndsBackOff) {
            let waiting = waiting.get_or_insert_with(|| ModelWaiter::new(&self.layout));
            waiting.hear(&self.client, WakeUpKind::Free, until).await;
        } else {
            self.client.sleep_until(until).await;
        }
    }

    /// Returns the guard of a hold that was won. Starts a watchdog if the lock sets no lease.
    fn hold(&self, hold: &Rc<ModelHold>) -> ModelGuard {
        let guard = ModelGuard::new(hold);
        if let Some(own) = &self.own {
            *own.borrow_mut() = Rc::downgrade(hold);
        }
        if self.lease.is_none() {
            self.client.spawn(watchdog::watch(Rc::clone(hold)));
        }
        guard
    }

    /// Creates a hold that no node has granted.
    fn imagined(&self, lease: Lease) -> Rc<ModelHold> {
        let term = lease.term(self.client.clock());
        let tokens = vec![Token(self.client.runtime().wall_clock().0); self.layout.names.len()];
        let terms = vec![Some(term); self.layout.members.len()];
        ModelHold::new(
            &self.client,
            &self.layout,
            self.client.fresh_owner_id(),
            lease,
            tokens,
            terms,
        )
    }
}

impl fmt::Debug for ModelLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = &self.layout.names;
        f.debug_struct("Lock")
            .field("names", names)
            .finish_non_exhaustive()
    }
}
