//! What a lock has in one client process: nodes, clocks, randomness and tasks.

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quorlock::OwnerId;
use quorlock::runtime::{Runtime, Time};
use quorlock::transport::{Request, Transport};
use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;
use quorlock_core::message::Access;
use quorlock_core::message::Acquire;
use quorlock_core::owner::ClientId;
use quorlock_store::Store;

use super::member::{Member, RETENTION};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::variant::Flaw;
use quorlock_sim_world::engine::clients::{self, executor};
use quorlock_sim_world::seam::records;
use quorlock_sim_world::seam::runtime::SimRuntime;
use quorlock_sim_world::world::id::{Id, ProcessId, Seat};
use quorlock_sim_world::world::task::TaskKind;
use quorlock_sim_world::world::with;

/// One client process, as the locks of a variant and [your own](crate::algorithm) see it: the nodes, the clock, the randomness and the
/// background tasks of the process.
pub struct LockClient {
    pub(super) who: ProcessId,
    pub(super) plan: Rc<Plan>,
    /// The transport to each node of the plan.
    transports: Rc<[Arc<dyn Transport>]>,
    id: ClientId,
    rounds: Cell<u64>,
    holds: Cell<u64>,
}

impl LockClient {
    /// Creates a client, or returns `None` if the plan runs the product.
    pub(crate) fn new(
        who: ProcessId,
        plan: &Rc<Plan>,
        transports: &Rc<[Arc<dyn Transport>]>,
    ) -> Option<Rc<Self>> {
        if plan.variant.has_product_clients() {
            return None;
        }
        let runtime = SimRuntime::new(who);
        let bits = u128::from(runtime.random()) << 64 | u128::from(runtime.random());
        Some(Rc::new(LockClient {
            who,
            plan: Rc::clone(plan),
            transports: Rc::clone(transports),
            id: ClientId::from_random(bits),
            rounds: Cell::new(0),
            holds: Cell::new(0),
        }))
    }

    pub(super) fn transport(&self, seat: Seat) -> Arc<dyn Transport> {
        let transport = self.transports.get(seat.index());
        transport.expect("BUG: no such node").clone()
    }

    pub(super) fn has(&self, flaw: Flaw) -> bool {
        self.plan.variant.has(flaw)
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn node_count(&self) -> u16 {
        self.plan.nodes.count
    }

    /// Returns the way to a node, which takes the requests of the product.
    ///
    /// # Panics
    /// Panics if there is no such node: they are counted from 0.
    #[must_use]
    pub fn node(&self, node: u16) -> Arc<dyn Transport> {
        self.transport(Seat::new(node))
    }

    /// Returns the records of a node that is a store: a database or a consensus store.
    ///
    /// # Panics
    /// Panics if the node is a server.
    #[must_use]
    pub fn store(&self, node: u16) -> Arc<dyn Store> {
        let kind = self.plan.nodes.kind(node);
        assert!(
            kind.is_store(),
            "node {node} is a server, which has no records"
        );
        records::store(self.who, Seat::new(node))
    }

    /// Returns a random number of the process, which follows from the seed of the run.
    #[must_use]
    pub fn random(&self) -> u64 {
        self.runtime().random()
    }

    pub(super) fn runtime(&self) -> SimRuntime {
        SimRuntime::new(self.who)
    }

    /// Returns the reading of the monotonic clock, which timers use. It may drift, and is a different one after a restart.
    #[must_use]
    pub fn now(&self) -> Time {
        self.runtime().now()
    }

    /// Returns the reading of the clock that deadlines are compared with.
    pub(super) fn clock(&self) -> Time {
        // Without the flaw, this is the monotonic clock. With the wall clock, A would believe after a backward
        // step that it holds its lock beyond the TTL of its claims, while B wins them.
        if self.has(Flaw::WallClock) {
            Time::from_millis(self.runtime().wall_clock().0)
        } else {
            self.now()
        }
    }

    /// Sleeps until the monotonic clock has reached a reading.
    pub async fn sleep_until(&self, at: Time) {
        let mut timer = self.runtime().timer();
        poll_fn(|cx| timer.poll_until(cx, at)).await;
    }

    /// Resolves when a future does, or to nothing after a span of the monotonic clock. The future is dropped then: a request that it has sent
    /// may still be executed.
    pub async fn within<T>(&self, span: Duration, future: impl Future<Output = T>) -> Option<T> {
        let (mut future, mut timer) = (pin!(future), self.runtime().timer());
        let until = self.now() + span;
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => timer.poll_until(cx, until).map(|()| None),
        })
        .await
    }

    /// Runs work while a lock is held. Returns `None` if it was lost before the work ended. `left` is how much longer the client may rely
    /// on it by the clock that it compares deadlines with.
    pub(crate) async fn run_while<F: Future>(
        &self,
        is_held: impl Fn() -> bool,
        left: impl Fn() -> Duration,
        work: F,
    ) -> Option<F::Output> {
        let mut work = pin!(work);
        let mut timer = self.runtime().timer();
        poll_fn(|cx| {
            if !is_held() {
                return Poll::Ready(None);
            }
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                // The poll may have taken longer than the lease. Then the output was produced without the lock.
                return Poll::Ready(is_held().then_some(output));
            }
            let left = left();
            if !left.is_zero() {
                // This is the current deadline. After a renewal, the timer fires once too early, which is harmless.
                let _ = timer.poll_until(cx, self.now() + left);
            }
            Poll::Pending
        })
        .await
    }

    /// Returns the plan of the run.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs a task in the background, unless the process has ended.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let task = Box::pin(task);
        let refused = with(|world| match clients::seam(world, self.who) {
            Some(_) => {
                executor::spawn(world, self.who, TaskKind::Background, task);
                None
            }
            None => Some(task),
        });
        drop(refused);
    }

    /// Returns the owner of the claims of the next round: no other round of any client has the same one.
    pub fn fresh_owner_id(&self) -> OwnerId {
        if self.has(Flaw::SharedOwner) {
            return OwnerId {
                client: ClientId::from_random(0),
                number: 0,
            };
        }
        // Each round has a fresh number. Otherwise a late release of A's first round would remove the claim of its
        // second round, which A holds.
        if !self.has(Flaw::OneNumber) {
            self.rounds.set(self.rounds.get() + 1);
        }
        OwnerId {
            client: self.id,
            number: self.rounds.get(),
        }
    }

    /// Returns the identity of the next hold in the history, whatever its owner on the nodes is.
    pub(crate) fn next_hold(&self) -> OwnerId {
        self.holds.set(self.holds.get() + 1);
        OwnerId {
            client: self.id,
            number: self.holds.get(),
        }
    }

    /// Returns how long a member may take to answer, as in the product: a twentieth of the lease, but at least 25 ms
    /// or a third of the lease, whichever is shorter.
    pub(super) fn member_timeout(&self, lease: Lease) -> Duration {
        if self.has(Flaw::MembersHaveTime) {
            return self.plan.network.call_timeout.as_duration();
        }
        let min = Duration::from_millis(25).min(lease.length() / 3);
        (lease.length() / 20).max(min)
    }

    pub(crate) fn acquire(
        &self,
        member: &Member,
        owner: OwnerId,
        count: u32,
        lease: Lease,
        fence: Fence,
    ) -> Request {
        Request::Acquire(Acquire {
            name: member.name.clone(),
            access: Access::Plain,
            owner,
            count,
            lease,
            fence,
            retention: RETENTION,
            keep: None,
            after: None,
            replaces: None,
            continues: None,
            check: None,
        })
    }
}

impl fmt::Debug for LockClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("who", &self.who).finish()
    }
}
