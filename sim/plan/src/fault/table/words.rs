//! Descriptions of faults for people: what the sentences of the [table](super::table) are made of.

use std::fmt;

use crate::fault::detail::{Direction, Handover, InFlight, ServerError, Suspended};
use crate::fault::target::ClientTarget;
use crate::fault::{Fault, FaultKind};
use crate::time::SimTime;

impl fmt::Display for Fault {
    /// Writes what happens as a sentence, without the time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            FaultKind::Link {
                clients,
                nodes,
                direction,
                fault,
            } => {
                fault.words(f, &self.lasts)?;
                write!(f, " {}", Between(clients, nodes, *direction))
            }
            FaultKind::Client { client, fault } => {
                fault.words(f, &ClientWords(*client), &self.lasts)
            }
            FaultKind::Node {
                node,
                replica,
                fault,
            } => fault.words(f, &ServerWords(*node, *replica), &self.lasts),
            FaultKind::Nodes { nodes, fault } => {
                fault.words(f, &NumberList("node", nodes), &self.lasts)
            }
        }
    }
}

/// Returns a share as percent.
pub(super) fn percent(of_million: u32) -> f64 {
    f64::from(of_million) / 10_000.0
}

pub(super) fn requests(in_flight: InFlight) -> &'static str {
    match in_flight {
        InFlight::Lost => "are lost",
        InFlight::Executed => "still arrive",
    }
}

pub(super) fn clock_words(clock: Suspended) -> &'static str {
    match clock {
        Suspended::Counts => "its clock counts the time",
        Suspended::Stops => "its clock stands still",
    }
}

pub(super) fn reply(error: ServerError) -> &'static str {
    match error {
        ServerError::ReadOnly => "READONLY",
        ServerError::Loading => "LOADING",
        ServerError::OutOfMemory => "OOM",
        ServerError::Busy => "BUSY",
    }
}

pub(super) fn awaits(how: Handover) -> &'static str {
    match how {
        Handover::Manual => "once it has all data",
        Handover::Takeover => "at once, whatever data it has",
    }
}

pub(super) fn left_behind_words(clients: &[u16], lasts: &dyn fmt::Display) -> String {
    match clients {
        [] => String::new(),
        clients => {
            let who = NumberList("client", clients);
            format!("; the old primary still serves {who} for {lasts}")
        }
    }
}

pub(super) fn apart_with(clients: &[u16], sentinels: &[u16]) -> String {
    let (who, others) = (
        NumberList("client", clients),
        NumberList("sentinel", sentinels),
    );
    match (clients, sentinels) {
        ([], []) => String::new(),
        (_, []) => format!(", with {who},"),
        ([], _) => format!(", with {others},"),
        (_, _) => format!(", with {who} and {others},"),
    }
}

pub(super) fn undecided(gap: SimTime) -> String {
    match gap {
        SimTime::ZERO => String::new(),
        gap => format!(", at the end of which each names the other as its owner for {gap}"),
    }
}

/// Formats a length that is drawn between two bounds.
pub(super) struct Span(pub(super) SimTime, pub(super) SimTime);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Span(min, max) if min == max => max.fmt(f),
            Span(min, max) => write!(f, "{min} to {max}"),
        }
    }
}

/// Formats a client, as `client 0` or by its role.
struct ClientWords(ClientTarget);

impl fmt::Display for ClientWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ClientTarget::Client(client) => write!(f, "client {client}"),
            ClientTarget::Holder { name: None } => f.write_str("the holder"),
            ClientTarget::Holder { name: Some(name) } => write!(f, "the holder of lock {name}"),
        }
    }
}

/// Formats a server, as `node 1` or as one of the node's replicas.
struct ServerWords(u16, Option<u16>);

impl fmt::Display for ServerWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            None => write!(f, "node {}", self.0),
            Some(replica) => write!(f, "replica {replica} of node {}", self.0),
        }
    }
}

/// Formats the ends of links, as `between clients 0, 1 and node 2`. An empty list stands for all: `between clients
/// and nodes`.
struct Between<'a>(&'a [u16], &'a [u16], Direction);

impl fmt::Display for Between<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (clients, nodes) = (NumberList("client", self.0), NumberList("node", self.1));
        match self.2 {
            Direction::Both => write!(f, "between {clients} and {nodes}"),
            Direction::ToNode => write!(f, "from {clients} to {nodes}"),
            Direction::ToClient => write!(f, "from {nodes} to {clients}"),
        }
    }
}

/// Formats indices, as `clients 0, 2`.
pub(super) struct NumberList<'a>(pub(super) &'a str, pub(super) &'a [u16]);

impl fmt::Display for NumberList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.1.iter().map(u16::to_string).collect();
        let plural = if numbers.len() == 1 { "" } else { "s" };
        write!(f, "{}{plural}", self.0)?;
        match numbers.as_slice() {
            [] => Ok(()),
            numbers => write!(f, " {}", numbers.join(", ")),
        }
    }
}

/// Formats the rate of a clock, as `2.5 % slow`.
pub(super) struct RatePercent(pub(super) i32);

impl fmt::Display for RatePercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = f64::from(self.0.unsigned_abs()) / 10_000.0;
        let how = if self.0 < 0 { "slow" } else { "fast" };
        write!(f, "{percent} % {how}")
    }
}

#[cfg(test)]
mod tests {
    use crate::fault::{
        ClientFault, ClientTarget, Direction, Fault, FaultKind, LinkFault, NodeFault,
    };
    use crate::time::{ClockStep, SimTime};

    #[test]
    fn faults_read_as_sentences() {
        let cut = Fault {
            when: SimTime::ZERO.into(),
            lasts: SimTime::millis(200),
            what: FaultKind::Link {
                clients: vec![0, 2],
                nodes: vec![1],
                direction: Direction::ToNode,
                fault: LinkFault::Cut,
            },
        };
        let told = "no message gets through for 200ms from clients 0, 2 to node 1";
        assert_eq!(cut.to_string(), told);
        let step = Fault::of_node(
            SimTime::ZERO,
            3,
            NodeFault::Step {
                by: ClockStep::millis(-1_500),
            },
        );
        assert_eq!(step.to_string(), "the clock of node 3 is set by -1.5s");
        let rate = Fault::of_client(SimTime::ZERO, 0, ClientFault::Rate { rate_ppm: -25_000 });
        let told = "the clocks of client 0 run 2.5 % slow";
        assert_eq!(rate.to_string(), told);
        let holder = ClientTarget::Holder { name: Some(1) };
        let pause = Fault::of_client(SimTime::ZERO, holder, ClientFault::Pause);
        let told = "the holder of lock 1 pauses for 0s";
        assert_eq!(pause.to_string(), told);
    }
}
