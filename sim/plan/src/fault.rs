//! Faults: an explicit list of everything that goes wrong in a run. Nothing else goes wrong.

mod detail;
mod kind;
mod table;
mod target;
mod trigger;

use serde::{Deserialize, Serialize};

pub use detail::{Direction, Handover, InFlight, ServerError, Suspended};
use table::FaultText;
pub(crate) use table::{Allowed, Drawn, Forgets};
pub use table::{ClientFault, Kind, LinkFault, NodeFault, NodesFault};
pub use table::{Field, Meaning, Needs, Value, ValueMut};
pub use target::{ClientTarget, NotAClient};
pub(crate) use trigger::MOST_TIMES;
pub use trigger::{AfterMessage, MessageKind, Repeats, Towards, Trigger};

use crate::time::SimTime;

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
    /// A fault of several nodes at once.
    Nodes {
        /// The nodes.
        nodes: Vec<u16>,
        /// The kind of the fault.
        fault: NodesFault,
    },
}

impl FaultKind {
    /// Creates a fault of links without ends.
    pub(crate) fn link(fault: LinkFault) -> Self {
        FaultKind::Link {
            clients: Vec::new(),
            nodes: Vec::new(),
            direction: fault.kind().direction().unwrap_or_default(),
            fault,
        }
    }

    /// Creates a fault of the first client.
    pub(crate) fn client(fault: ClientFault) -> Self {
        let client = ClientTarget::Client(0);
        FaultKind::Client { client, fault }
    }

    /// Creates a fault of the first node.
    pub(crate) fn node(fault: NodeFault) -> Self {
        FaultKind::Node {
            node: 0,
            replica: None,
            fault,
        }
    }

    /// Creates a fault of no nodes.
    pub(crate) fn nodes(fault: NodesFault) -> Self {
        let nodes = Vec::new();
        FaultKind::Nodes { nodes, fault }
    }
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

    /// Replaces each empty list by all clients or nodes: the two lists of a link fault, and the list of a fault of several nodes.
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
            FaultKind::Nodes { nodes: struck, .. } => all(struck, nodes),
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

    /// Returns the clients that the fault names: those of its links, its one client, or those in its fields.
    pub fn clients(&self) -> &[u16] {
        match &self.what {
            FaultKind::Link { clients, .. } => clients,
            FaultKind::Client {
                client: ClientTarget::Client(client),
                ..
            } => std::slice::from_ref(client),
            FaultKind::Client { .. } => &[],
            FaultKind::Node { .. } | FaultKind::Nodes { .. } => self.numbers(Meaning::Clients),
        }
    }

    /// Returns the sentinels that the fault names.
    pub fn sentinels(&self) -> &[u16] {
        self.numbers(Meaning::Sentinels)
    }

    /// Returns the indices in the field with this meaning, if the fault has one.
    fn numbers(&self, meaning: Meaning) -> &[u16] {
        let mut fields = self.fields().into_iter();
        match fields.find(|(field, _)| field.meaning() == meaning) {
            Some((_, Value::Numbers(numbers))) => numbers,
            _ => &[],
        }
    }

    /// Returns the nodes that the fault names.
    pub fn nodes(&self) -> &[u16] {
        match &self.what {
            FaultKind::Link { nodes, .. } | FaultKind::Nodes { nodes, .. } => nodes,
            FaultKind::Node { node, .. } => std::slice::from_ref(node),
            FaultKind::Client { .. } => &[],
        }
    }
}
