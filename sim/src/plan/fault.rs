//! What goes wrong in a run: an explicit list, never dice.

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

/// At which rates clocks may run: one that stands still or runs back is no clock.
pub(crate) const RATES_PPM: std::ops::RangeInclusive<i32> = -999_999..=10_000_000;

/// One thing that goes wrong.
///
/// In files its fields stand side by side with the name of its [`Kind`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "FaultText", into = "FaultText")]
pub struct Fault {
    /// When it begins.
    pub when: Trigger,
    /// How long it lasts: for a crash until the process is started again, for a failover until the old primary rejoins.
    /// Zero for what happens once and for what stays, and then not written to files.
    pub lasts: SimTime,
    /// What goes wrong, and where.
    pub what: FaultKind,
}

/// What goes wrong, and where. `clients` and `nodes` are indices from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// Something is wrong with every link between one of the clients and one of the nodes.
    Link {
        /// Clients at one end of the links.
        clients: Vec<u16>,
        /// Nodes at the other end of the links.
        nodes: Vec<u16>,
        /// Direction of the messages that it concerns. A duplicate is always one of requests, and a reset ends both
        /// directions.
        direction: Direction,
        /// What is wrong with the links.
        fault: LinkFault,
    },
    /// Something is wrong with one client.
    Client {
        /// Which one.
        client: ClientTarget,
        /// What is wrong with it.
        fault: ClientFault,
    },
    /// Something is wrong with one node.
    Node {
        /// The node.
        node: u16,
        /// Which of its replicas, from 0: the one that had this number when the run began, whatever it is now. Without, the
        /// server that is the primary when the fault begins.
        replica: Option<u16>,
        /// What is wrong with it.
        fault: NodeFault,
    },
    /// Nodes are backed up by replication (`redis-cli --rdb`): each is followed by a replica that leaves when it has
    /// everything. A node that has no other replica draws its `master_replid` anew, as if it had been restarted, and
    /// loses nothing. A node with replicas has a backlog, and keeps it.
    Backup {
        /// Nodes that are backed up.
        nodes: Vec<u16>,
    },
}

/// What goes wrong with links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LinkFault {
    /// Messages sent meanwhile are lost. One direction makes a one-way cut, some pairs a partition that is not
    /// transitive.
    Cut,
    /// Some messages are lost.
    Loss {
        /// How many of a million.
        of_million: u32,
    },
    /// Messages take longer, by a time drawn between two bounds.
    Delay {
        /// The smallest delay.
        least: SimTime,
        /// The largest delay.
        most: SimTime,
    },
    /// Messages sent meanwhile arrive when it is over.
    HoldBack,
    /// Some requests arrive a second time, somewhat later; replies do not.
    Duplicate {
        /// How many of a million.
        of_million: u32,
        /// The largest delay of the second copy.
        most: SimTime,
    },
    /// Messages may overtake each other.
    Reorder {
        /// The largest time by which one is overtaken.
        most: SimTime,
    },
    /// Connections end, once. What is under way to the node is executed or not; replies are lost.
    Reset {
        /// What becomes of the requests under way.
        in_flight: InFlight,
    },
    /// Connections swallow everything from now on, in both directions, as behind a balancer that has forgotten them. Neither
    /// end hears of it: a client replaces its connection when a request on it has had no answer for its call time-out.
    Swallow,
}

/// What goes wrong with a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClientFault {
    /// The process stands still; its clocks run on.
    Pause,
    /// The same in the middle of what it does: at the n-th use of its clocks, timers, randomness or network after
    /// the time. What it sends after that leaves when the pause ends.
    PauseInside {
        /// At which use, from 1.
        nth: u32,
    },
    /// The process is stopped in the middle of a step, behind the n-th use of its clocks, timers, randomness or network after
    /// the time, while everything else goes on: what it has read is old when it goes on, and what was sent to it is
    /// there in the same step. A stop that would outlast the one of another process waits for the end of that.
    StopInside {
        /// Behind which use, from 1.
        nth: u32,
    },
    /// The process ends and is started again when the fault ends, as a new client.
    Crash,
    /// The machine of the process is suspended: the process stands still, and so do its timers.
    Suspend {
        /// Whether its monotonic clock counts the time.
        clock: Suspended,
    },
    /// What the client waits for is dropped, at the n-th poll after the time.
    Cancel {
        /// At which poll, from 1.
        nth: u32,
    },
    /// Both clocks of a client run at another rate from now on.
    Rate {
        /// How much faster than true time.
        rate_ppm: i32,
    },
    /// The wall clock of a client is set.
    Step {
        /// By how much.
        by: ClockStep,
    },
}

impl Fault {
    /// A fault of one node that happens once, or stays. [`Fault::lasting`] gives it a length.
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

    /// A fault of one client that happens once, or stays. [`Fault::lasting`] gives it a length.
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

    /// The same fault with this length.
    #[must_use]
    pub fn lasting(self, lasts: SimTime) -> Self {
        Fault { lasts, ..self }
    }

    /// The earliest time at which it may begin.
    #[must_use]
    pub fn begins(&self) -> SimTime {
        self.when.begins()
    }

    /// Whether it is known before the run when it begins, and whom it strikes.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        !matches!(self.when, Trigger::After(_)) && self.awaits().is_none()
    }

    /// The role whose client it strikes, if that is not known before the run.
    fn awaits(&self) -> Option<ClientTarget> {
        match self.what {
            FaultKind::Client { client, .. } => Some(client).filter(|c| c.number().is_none()),
            _ => None,
        }
    }

    /// When it has ended for the last time; `None` if that is not known before the run. Such a fault begins only if it has
    /// ended when the run does.
    #[must_use]
    pub fn ends(&self) -> Option<SimTime> {
        let last = self.when.times().last();
        last.filter(|_| self.is_fixed())
            .map(|last| last.plus(self.lasts))
    }

    /// Where it says no clients or nodes of links, or no nodes to be backed up, it is a fault of all of them.
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

    /// The fault itself, or as many as there are repetitions.
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

    /// Clients that it names: those of its links, its one client, those that a failover leaves behind, that are cut off
    /// with a primary, or that are led elsewhere.
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

    /// Sentinels that it names.
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

    /// Nodes that it names.
    pub(crate) fn nodes(&self) -> &[u16] {
        match &self.what {
            FaultKind::Link { nodes, .. } | FaultKind::Backup { nodes } => nodes,
            FaultKind::Node { node, .. } => std::slice::from_ref(node),
            FaultKind::Client { .. } => &[],
        }
    }
}
