//! Faults: an explicit list of what goes wrong in a run. Nothing is left to chance.

mod detail;
mod kind;
mod node;
mod target;
mod text;
mod trigger;
mod words;

use serde::{Deserialize, Serialize};

pub use detail::{Direction, Handover, InFlight, ServerError, Suspended};
pub use kind::Kind;
pub use node::NodeFault;
pub use target::{ClientTarget, NotAClient};
use text::FaultText;
pub(crate) use trigger::MOST_TIMES;
pub use trigger::{AfterMessage, MessageKind, Repeats, Towards, Trigger};

use crate::plan::time::{ClockStep, SimTime};

/// The rates at which clocks may run, in parts per million faster than true time. The clock always moves forwards.
pub(crate) const RATES_PPM: std::ops::RangeInclusive<i32> = -999_999..=10_000_000;

/// One fault.
///
/// In files, its fields are written beside the name of its [`Kind`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "FaultText", into = "FaultText")]
pub struct Fault {
    /// When it begins.
    pub when: Trigger,
    /// How long it lasts. For a crash, this is the time until the process is started again; for a failover, until the
    /// old primary rejoins. Zero for a fault that happens once or that stays; files then leave it out.
    pub lasts: SimTime,
    /// What goes wrong, and where.
    pub what: FaultKind,
}

/// What goes wrong, and where. `clients` and `nodes` are indices from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// A fault of every link between one of the clients and one of the nodes.
    Link {
        /// Clients at one end of the links.
        clients: Vec<u16>,
        /// Nodes at the other end of the links.
        nodes: Vec<u16>,
        /// Direction of the messages that it affects. Duplicates are always requests, and a reset ends both
        /// directions.
        direction: Direction,
        /// What is wrong with the links.
        fault: LinkFault,
    },
    /// A fault of one client.
    Client {
        /// The client.
        client: ClientTarget,
        /// What is wrong with it.
        fault: ClientFault,
    },
    /// A fault of one node.
    Node {
        /// The node.
        node: u16,
        /// The replica of the node, from 0, as numbered when the run began, whatever its present role. `None` for the
        /// server that is the primary when the fault begins.
        replica: Option<u16>,
        /// What is wrong with it.
        fault: NodeFault,
    },
    /// Nodes are backed up by replication (`redis-cli --rdb`): a replica follows each node and leaves when it has
    /// everything. A node that has no other replica then draws a new `master_replid`, as after a restart, but loses
    /// nothing. A node with replicas keeps its replication backlog.
    Backup {
        /// Nodes that are backed up.
        nodes: Vec<u16>,
    },
}

/// What goes wrong with links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LinkFault {
    /// Messages sent during the fault are lost. One direction makes a one-way cut; some pairs make a partition that
    /// is not transitive.
    Cut,
    /// Some messages are lost.
    Loss {
        /// The share of messages that are affected, in parts per million.
        of_million: u32,
    },
    /// Messages take longer, by a time drawn between two bounds.
    Delay {
        /// The smallest delay.
        min: SimTime,
        /// The largest delay.
        max: SimTime,
    },
    /// Messages sent during the fault arrive when it ends.
    HoldBack,
    /// Some requests arrive a second time, somewhat later. Replies are not duplicated.
    Duplicate {
        /// The share of messages that are affected, in parts per million.
        of_million: u32,
        /// The largest delay of the second copy.
        max: SimTime,
    },
    /// Messages may overtake each other.
    Reorder {
        /// The largest time by which a message is overtaken.
        max: SimTime,
    },
    /// Connections end, once. Requests in flight are executed or not, as `in_flight` says; replies in flight are
    /// lost.
    Reset {
        /// What happens to the requests in flight.
        in_flight: InFlight,
    },
    /// Connections lose everything that is sent from now on, in both directions, as behind a load balancer that has
    /// dropped its state. Neither end is notified: a client replaces its connection when a request on it gets no
    /// answer within the call time-out.
    Swallow,
}

/// What goes wrong with a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClientFault {
    /// The process is paused; its clocks continue.
    Pause,
    /// The process is paused in the middle of its work: at the n-th use of its clocks, timers, randomness or network
    /// after the time. What it sends after that use leaves when the pause ends.
    PauseInside {
        /// The number of the use, from 1.
        nth: u32,
    },
    /// The process is stopped in the middle of a step, after the n-th use of its clocks, timers, randomness or
    /// network after the time, while everything else continues. When it resumes, what it has read is old, and it
    /// receives what was sent to it in the same step. A stop that would outlast the stop of another process waits for
    /// the end of that one.
    StopInside {
        /// The number of the use, from 1.
        nth: u32,
    },
    /// The process ends, and is started again as a new client when the fault ends.
    Crash,
    /// The machine of the process is suspended: the process and its timers are paused.
    Suspend {
        /// Whether the monotonic clock counts the time of the suspension.
        clock: Suspended,
    },
    /// The future that the client awaits is dropped, at the n-th poll after the time.
    Cancel {
        /// The number of the poll, from 1.
        nth: u32,
    },
    /// Both clocks of the client run at another rate from now on.
    Rate {
        /// How much faster than true time they run, in parts per million.
        rate_ppm: i32,
    },
    /// The wall clock of the client is set.
    Step {
        /// The size of the step.
        by: ClockStep,
    },
}

impl Fault {
    /// Creates a fault of one node that happens once, or stays. [`Fault::lasting`] adds a length.
    #[must_use]
    pub fn of_node(when: impl Into<Trigger>, node: u16, fault: NodeFault) -> Self {
        Fault {
            when: when.into(),
            lasts: SimTime::ZERO,
            what: FaultKind::Node {
                node,
                replica: None,
                fault,
            },
        }
    }

    /// Creates a fault of one client that happens once, or stays. [`Fault::lasting`] adds a length.
    #[must_use]
    pub fn of_client(
        when: impl Into<Trigger>,
        client: impl Into<ClientTarget>,
        fault: ClientFault,
    ) -> Self {
        Fault {
            when: when.into(),
            lasts: SimTime::ZERO,
            what: FaultKind::Client {
                client: client.into(),
                fault,
            },
        }
    }

    /// Sets the length of the fault.
    #[must_use]
    pub fn lasting(self, lasts: SimTime) -> Self {
        Fault { lasts, ..self }
    }

    /// Returns the earliest time at which it may begin.
    #[must_use]
    pub fn begins(&self) -> SimTime {
        self.when.begins()
    }

    /// Returns whether its beginning and its target are known before the run.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        !matches!(self.when, Trigger::After(_)) && self.awaits().is_none()
    }

    /// Returns the role of its target, if the client is not known before the run.
    fn awaits(&self) -> Option<ClientTarget> {
        match self.what {
            FaultKind::Client { client, .. } => Some(client).filter(|c| c.number().is_none()),
            _ => None,
        }
    }

    /// Returns when it ends for the last time; `None` if that is not known before the run. Such a fault begins only
    /// if it can end before the run does.
    #[must_use]
    pub fn ends(&self) -> Option<SimTime> {
        let last = self.when.times().last();
        last.filter(|_| self.is_fixed())
            .map(|last| last.plus(self.lasts))
    }

    /// Replaces empty lists, of the clients or nodes of links and of the nodes to back up, by all clients or nodes.
    pub(crate) fn strike_all(&mut self, clients: u16, nodes: u16) {
        let all = |list: &mut Vec<u16>, many: u16| {
            if list.is_empty() {
                list.extend(0..many);
            }
        };
        match &mut self.what {
            FaultKind::Link {
                clients: at_one_end,
                nodes: at_the_other,
                ..
            } => {
                all(at_one_end, clients);
                all(at_the_other, nodes);
            }
            FaultKind::Backup { nodes: backed_up } => all(backed_up, nodes),
            FaultKind::Client { .. } | FaultKind::Node { .. } => {}
        }
    }

    /// Returns the single faults: the fault itself, or one for each repetition.
    pub(crate) fn spelled_out(&self) -> Vec<Fault> {
        match self.when {
            Trigger::At(_) | Trigger::After(_) => vec![self.clone()],
            Trigger::Every { .. } => {
                let times = self.when.times().map(Trigger::At);
                let at = |when| Fault {
                    when,
                    ..self.clone()
                };
                times.map(at).collect()
            }
        }
    }

    /// Returns the clients that it names: those of its links, its one client, those that a failover leaves behind,
    /// that are cut off with a primary, or that are misrouted.
    pub(crate) fn clients(&self) -> &[u16] {
        match &self.what {
            FaultKind::Link { clients, .. } => clients,
            FaultKind::Client {
                client: ClientTarget::Client(client),
                ..
            } => std::slice::from_ref(client),
            FaultKind::Client { .. } => &[],
            FaultKind::Node {
                fault:
                    NodeFault::Failover {
                        left_behind: clients,
                        ..
                    }
                    | NodeFault::IsolatePrimary { clients, .. }
                    | NodeFault::Misroute { clients, .. },
                ..
            } => clients,
            FaultKind::Node { .. } | FaultKind::Backup { .. } => &[],
        }
    }

    /// Returns the sentinels that it names.
    pub(crate) fn sentinels(&self) -> &[u16] {
        match &self.what {
            FaultKind::Node { fault, .. } => match fault {
                NodeFault::IsolatePrimary { sentinels, .. } => sentinels,
                NodeFault::CrashSentinel { sentinel }
                | NodeFault::PauseSentinel { sentinel }
                | NodeFault::StaleSentinel { sentinel } => std::slice::from_ref(sentinel),
                _ => &[],
            },
            _ => &[],
        }
    }

    /// Returns the nodes that it names.
    pub(crate) fn nodes(&self) -> &[u16] {
        match &self.what {
            FaultKind::Link { nodes, .. } | FaultKind::Backup { nodes } => nodes,
            FaultKind::Node { node, .. } => std::slice::from_ref(node),
            FaultKind::Client { .. } => &[],
        }
    }
}
