//! A node that is served on a port.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::time;
use crate::redis::{RedisServer, micros};
use quorlock_sim_plan::Persistence;
use quorlock_sim_plan::fault::{
    Fault, FaultKind, Kind, LinkFault, NodeFault, NodesFault, ServerError,
};
use quorlock_sim_world::world::clock::Clock;
use quorlock_sim_world::world::server::Server as _;
use quorlock_sim_world::world::session::WallMicros;
use redis_sim::{Server, SessionId};

/// A server with its clock and its connections.
#[derive(Debug)]
pub(super) struct ServedNode {
    pub(super) redis: RedisServer,
    persistence: Persistence,
    clock: Clock,
    start: Instant,
    /// The number of pauses that are active.
    pauses: watch::Sender<u32>,
    /// The delays that are active, in the order in which they began.
    delays: Vec<Duration>,
    troubles: Vec<ServerError>,
    /// The number of crashes that have not ended.
    crashes: u32,
    listener: Option<AbortHandle>,
    connections: BTreeMap<SessionId, Connection>,
}

/// Whether a fault begins or ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Begins,
    Ends,
}

/// The node's side of a connection.
#[derive(Debug)]
struct Connection {
    /// Notified when there is output to send.
    output: Rc<Notify>,
    task: AbortHandle,
}

impl ServedNode {
    pub(super) fn new(seed: u64, password: Option<&str>, persistence: Persistence) -> Self {
        let mut server = Server::new(seed);
        if let Some(password) = password {
            server = server.with_password(password);
        }
        ServedNode {
            redis: RedisServer::new(server),
            persistence,
            clock: Clock::new(time::wall_nanos()),
            start: time::now(),
            pauses: watch::Sender::new(0),
            delays: Vec::new(),
            troubles: Vec::new(),
            crashes: 0,
            listener: None,
            connections: BTreeMap::new(),
        }
    }

    /// Returns the true time since the start, in nanoseconds.
    fn passed(&self) -> u64 {
        let passed = time::now().saturating_duration_since(self.start);
        u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> WallMicros {
        WallMicros(self.clock.read(self.passed()) / 1_000)
    }

    /// Returns a receiver for the number of active pauses, with which a task can wait until there are none.
    pub(super) fn goes_on(&self) -> watch::Receiver<u32> {
        self.pauses.subscribe()
    }

    /// Returns the additional time that replies take.
    pub(super) fn delay(&self) -> Duration {
        self.delays.iter().copied().max().unwrap_or_default()
    }

    /// Returns whether the node is down. If crashes overlap, the node restarts when the last one ends.
    pub(super) fn is_down(&self) -> bool {
        0 < self.crashes
    }

    /// Handles bytes of a connection.
    pub(super) fn receive(&mut self, session: SessionId, bytes: &[u8]) {
        let now = self.now();
        self.redis.process.receive(session, micros(now), bytes);
        for session in self.redis.process.sessions_with_output() {
            if let Some(connection) = self.connections.get(&session) {
                connection.output.notify_one();
            }
        }
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        self.redis.process.close_session(session);
        self.connections.remove(&session);
    }

    /// Stores the task that accepts connections. A crash of the node ends this task.
    pub(super) fn is_accepted_by(&mut self, listener: AbortHandle) {
        self.listener = Some(listener);
    }

    pub(super) fn connect(&mut self, session: SessionId, output: Rc<Notify>, task: AbortHandle) {
        self.connections
            .insert(session, Connection { output, task });
    }

    fn close_all(&mut self) {
        for (session, connection) in std::mem::take(&mut self.connections) {
            connection.task.abort();
            self.redis.process.close_session(session);
        }
    }

    pub(super) fn begin(&mut self, fault: &Fault) {
        self.strike(fault, Phase::Begins);
    }

    pub(super) fn end(&mut self, fault: &Fault) {
        self.strike(fault, Phase::Ends);
    }

    fn strike(&mut self, fault: &Fault, phase: Phase) {
        match &fault.what {
            FaultKind::Link { fault, .. } => self.strike_link(*fault, phase),
            FaultKind::Node { fault, .. } => self.strike_node(fault, phase),
            FaultKind::Nodes {
                fault: NodesFault::Backup,
                ..
            } if phase == Phase::Begins => self.redis.back_up(),
            FaultKind::Nodes {
                fault: NodesFault::Backup,
                ..
            } => {}
            FaultKind::Client { fault, .. } => refused(fault.kind()),
        }
    }

    fn strike_link(&mut self, fault: LinkFault, phase: Phase) {
        match (fault, phase) {
            (LinkFault::Reset { .. }, Phase::Begins) => self.close_all(),
            (LinkFault::Delay { max, .. }, Phase::Begins) => self.delays.push(max.as_duration()),
            (LinkFault::Delay { max, .. }, Phase::Ends) => {
                remove_one(&mut self.delays, &max.as_duration());
            }
            // It happens once.
            (LinkFault::Reset { .. }, Phase::Ends) => {}
            (
                LinkFault::Cut
                | LinkFault::Loss { .. }
                | LinkFault::HoldBack
                | LinkFault::Duplicate { .. }
                | LinkFault::Reorder { .. }
                | LinkFault::Swallow,
                _,
            ) => refused(fault.kind()),
        }
    }

    fn strike_node(&mut self, fault: &NodeFault, phase: Phase) {
        let (passed, now) = (self.passed(), self.now());
        match (fault, phase) {
            (NodeFault::Pause, Phase::Begins) => self.pauses.send_modify(|pauses| *pauses += 1),
            (NodeFault::Pause, Phase::Ends) => self.pauses.send_modify(|pauses| *pauses -= 1),
            (NodeFault::Crash, Phase::Begins) => self.crash(),
            (NodeFault::Crash, Phase::Ends) => self.crashes -= 1,
            (NodeFault::Error { error }, Phase::Begins) => {
                self.troubles.push(*error);
                self.tell_of_trouble();
            }
            (NodeFault::Error { error }, Phase::Ends) => {
                remove_one(&mut self.troubles, error);
                self.tell_of_trouble();
            }
            (NodeFault::Flush, Phase::Begins) => _ = self.redis.flush(now, &[]),
            (NodeFault::ForgetScripts, Phase::Begins) => self.redis.forget_scripts(),
            (NodeFault::Step { by }, Phase::Begins) => self.clock.step(passed, by.as_nanos()),
            (NodeFault::Rate { rate_ppm }, Phase::Begins) => self.clock.run_at(passed, *rate_ppm),
            // They happen once.
            (
                NodeFault::Flush
                | NodeFault::ForgetScripts
                | NodeFault::Step { .. }
                | NodeFault::Rate { .. },
                Phase::Ends,
            ) => {}
            (
                NodeFault::PowerLoss { .. }
                | NodeFault::Evict { .. }
                | NodeFault::RevokeKeys { .. }
                | NodeFault::SlowReplication { .. }
                | NodeFault::Failover { .. }
                | NodeFault::IsolatePrimary { .. }
                | NodeFault::SentinelFailover
                | NodeFault::CrashSentinel { .. }
                | NodeFault::PauseSentinel { .. }
                | NodeFault::StaleSentinel { .. }
                | NodeFault::Stall { .. }
                | NodeFault::FreeBacklog
                | NodeFault::Misroute { .. }
                | NodeFault::MigrateSlot { .. }
                | NodeFault::ClusterFailover { .. },
                _,
            ) => refused(fault.kind()),
        }
    }

    fn crash(&mut self) {
        self.close_all();
        // Time passes as in the real world, so a disk that is written every second has everything.
        self.redis.save();
        self.redis.crash(self.persistence);
        self.crashes += 1;
        if let Some(listener) = self.listener.take() {
            listener.abort();
        }
        self.tell_of_trouble();
    }

    /// Makes the server refuse requests with the active error that began last. Without one, the server stops refusing.
    fn tell_of_trouble(&mut self) {
        self.redis.refuse(self.troubles.last().copied());
    }
}

/// Called for kinds that the table says no served node has. The command refuses them.
fn refused(kind: Kind) {
    debug_assert!(kind.lacks_served().is_some(), "BUG: {kind:?} has no effect");
}

/// Removes one of several equal faults. Which one does not matter.
fn remove_one<T: PartialEq>(all: &mut Vec<T>, one: &T) {
    if let Some(at) = all.iter().position(|known| known == one) {
        all.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_sim_plan::Plan;
    use quorlock_sim_plan::draw::{Draw, Purpose};
    use quorlock_sim_plan::generator::FaultGenerator;

    #[tokio::test]
    async fn every_fault_that_the_table_says_has_an_effect() {
        let plan = Plan::default();
        for kind in Kind::ALL
            .into_iter()
            .filter(|kind| kind.lacks_served().is_none())
        {
            let mut generator = FaultGenerator {
                draw: &mut Draw::new(1, Purpose::Plan, 0),
                plan: &plan,
                inside: false,
            };
            let fault = generator.fault(kind);
            let mut node = ServedNode::new(1, None, Persistence::Memory);
            node.begin(&fault);
            node.end(&fault);
        }
    }
}
