//! One client of a variant.

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quorlock::OwnerId;
use quorlock::runtime::{Runtime, Time};
use quorlock::transport::{Request, Transport};
use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;
use quorlock_core::message::Access;
use quorlock_core::message::Acquire;
use quorlock_core::owner::ClientId;

use super::member::{Member, RETENTION};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::variant::Flaw;
use quorlock_sim_world::engine::clients::{self, executor};
use quorlock_sim_world::seam::runtime::SimRuntime;
use quorlock_sim_world::world::id::{Id, ProcessId, Seat};
use quorlock_sim_world::world::task::TaskKind;
use quorlock_sim_world::world::with;

/// The state that the locks of one process share.
pub(crate) struct ModelClient {
    pub(super) who: ProcessId,
    pub(super) plan: Rc<Plan>,
    /// The transport to each node of the plan.
    transports: Rc<[Arc<dyn Transport>]>,
    id: ClientId,
    rounds: Cell<u64>,
    holds: Cell<u64>,
}

impl ModelClient {
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
        Some(Rc::new(ModelClient {
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

    pub(super) fn runtime(&self) -> SimRuntime {
        SimRuntime::new(self.who)
    }

    /// Returns the reading of the monotonic clock, which timers use.
    pub(super) fn now(&self) -> Time {
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

    pub(super) async fn sleep_until(&self, at: Time) {
        let mut timer = self.runtime().timer();
        poll_fn(|cx| timer.poll_until(cx, at)).await;
    }

    /// Runs a task in the background, unless the process has ended.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
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

    /// Returns the owner of the claims of the next round.
    pub(super) fn fresh_owner_id(&self) -> OwnerId {
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
    pub(super) fn next_hold(&self) -> OwnerId {
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

    pub(super) fn acquire(
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
            replaces: None,
            continues: None,
            check: None,
        })
    }
}

impl fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("who", &self.who).finish()
    }
}
