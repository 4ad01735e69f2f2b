//! Faults: an explicit list of everything that goes wrong in a run. Nothing else goes wrong.

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

use crate::time::{ClockStep, SimTime};

/// The rates at which clocks may run, in parts per million faster than true time. Even at the lowest rate, a clock
/// moves forwards.
pub const RATES_PPM: std::ops::RangeInclusive<i32> = -999_999..=10_000_000;

/// A fault of a run, with its beginning and its length.
///
/// In files, these fields are written next to the name of the fault's [`Kind`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "FaultText", into = "FaultText")]
pub struct Fault {
    /// When the fault begins.
    pub when: Trigger,
    /// How long the fault lasts. For a crash, this is the time until the process is restarted; for a failover, the
    /// time until the old primary rejoins. Zero for a fault that happens once or is permanent. Files then omit it.
    pub lasts: SimTime,
    /// The kind of the fault, with its target and parameters.
    pub what: FaultKind,
}

/// The kind of a fault, with its target and parameters. `clients` and `nodes` are indices from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// A fault of every link between one of the clients and one of the nodes.
    Link {
        /// The clients at one end of the links.
        clients: Vec<u16>,
        /// The nodes at the other end of the links.
        nodes: Vec<u16>,
        /// The direction of the affected messages. Duplicates are always requests, and a reset ends both directions.
        direction: Direction,
        /// The kind of link fault, with its parameters.
        fault: LinkFault,
    },
    /// A fault of one client.
    Client {
        /// The client.
        client: ClientTarget,
        /// The kind of client fault, with its parameters.
        fault: ClientFault,
    },
    /// A fault of one node.
    Node {
        /// The node.
        node: u16,
        /// The index of the affected replica, from 0. Replicas keep the numbers that they have at the beginning of the
        /// run, whatever their roles are now. If `None`, the fault affects the server that is the primary when the
        /// fault begins.
        replica: Option<u16>,
        /// The kind of node fault, with its parameters.
        fault: NodeFault,
    },
    /// Nodes are backed up by replication (`redis-cli --rdb`): a replica connects to each node and leaves when it has
    /// all data. A node without other replicas then draws a new `master_replid`, as after a restart, but loses
    /// nothing. A node with replicas keeps its replication backlog.
    Backup {
        /// The nodes that are backed up.
        nodes: Vec<u16>,
    },
}

/// A fault of links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkFault {
    /// Messages sent during the fault are lost. If only one direction is affected, this is a one-way cut. If only some
    /// pairs of clients and nodes are affected, it is a partition that is not transitive.
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
    /// Messages sent during the fault arrive when the fault ends.
    HoldBack,
    /// Some requests arrive a second time, slightly later. Replies are not duplicated.
    Duplicate {
        /// The share of messages that are affected, in parts per million.
        of_million: u32,
        /// The largest delay of the second copy.
        max: SimTime,
    },
    /// Messages may overtake each other.
    Reorder {
        /// The largest additional latency of a message.
        max: SimTime,
    },
    /// The connections are closed once. Requests in flight are executed or lost, according to `in_flight`. Replies in
    /// flight are lost.
    Reset {
        /// What happens to the requests in flight.
        in_flight: InFlight,
    },
    /// Existing connections lose everything that is sent from now on, in both directions, as if a load balancer had
    /// dropped its state. Neither end is notified. A client replaces its connection when a request on it gets no
    /// answer within the call time-out.
    Swallow,
}

/// A fault of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientFault {
    /// The process is paused. Its clocks continue.
    Pause,
    /// The process is paused in the middle of its work, at the n-th use of its clocks, timers, randomness or network
    /// after the fault begins. What it sends after that use leaves when the pause ends.
    PauseInside {
        /// The number of the use, from 1.
        nth: u32,
    },
    /// The process is stopped in the middle of a step, after the n-th use of its clocks, timers, randomness or network
    /// since the fault began, while everything else continues. When it resumes, its readings are out of date, and it
    /// receives in the same step what was sent to it. A stop that would outlast the stop of another process waits
    /// until that other stop ends.
    StopInside {
        /// The number of the use, from 1.
        nth: u32,
    },
    /// The process crashes. It is restarted as a new client when the fault ends.
    Crash,
    /// The machine of the process is suspended: the process and its timers are paused.
    Suspend {
        /// Whether the monotonic clock counts the time of the suspension.
        clock: Suspended,
    },
    /// The future that the client awaits is dropped at the n-th poll after the fault begins.
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
    /// Creates a fault of one node that happens once or is permanent. [`Fault::lasting`] adds a length.
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

    /// Creates a fault of one client that happens once or is permanent. [`Fault::lasting`] adds a length.
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

    /// Returns the earliest time at which the fault may begin.
    #[must_use]
    pub fn begins(&self) -> SimTime {
        self.when.begins()
    }

    /// Returns whether the beginning and the target of the fault are known before the run.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        !matches!(self.when, Trigger::After(_)) && self.awaits().is_none()
    }

    /// Returns the role of the target if the target is not known before the run.
    fn awaits(&self) -> Option<ClientTarget> {
        match self.what {
            FaultKind::Client { client, .. } => Some(client).filter(|c| c.number().is_none()),
            _ => None,
        }
    }

    /// Returns when the fault ends for the last time, or `None` if this is not known before the run. Such a fault
    /// begins only if it can end before the run does.
    #[must_use]
    pub fn ends(&self) -> Option<SimTime> {
        let last = self.when.times().last();
        last.filter(|_| self.is_fixed())
            .map(|last| last.plus(self.lasts))
    }

    /// Replaces each empty list by all clients or nodes: the two lists of a link fault, and the nodes of a backup.
    pub fn strike_all(&mut self, clients: u16, nodes: u16) {
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

    /// Returns the single faults: the fault itself, or one fault for each repetition.
    pub fn spelled_out(&self) -> Vec<Fault> {
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

    /// Returns the clients that the fault names: those of its links, its one client, those that a failover leaves
    /// behind, those that are cut off with a primary, and those that are misrouted.
    pub fn clients(&self) -> &[u16] {
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

    /// Returns the sentinels that the fault names.
    pub fn sentinels(&self) -> &[u16] {
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

    /// Returns the nodes that the fault names.
    pub fn nodes(&self) -> &[u16] {
        match &self.what {
            FaultKind::Link { nodes, .. } | FaultKind::Backup { nodes } => nodes,
            FaultKind::Node { node, .. } => std::slice::from_ref(node),
            FaultKind::Client { .. } => &[],
        }
    }
}
