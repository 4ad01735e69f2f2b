//! Descriptions of faults for people.

use std::fmt;

use super::{
    ClientFault, ClientTarget, Direction, Fault, FaultKind, Handover, InFlight, LinkFault,
    NodeFault, ServerError, Suspended,
};
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
                fault.words(f, self.lasts)?;
                write!(f, " {}", Between(clients, nodes, *direction))
            }
            FaultKind::Client { client, fault } => fault.words(f, ClientWords(*client), self.lasts),
            FaultKind::Node {
                node,
                replica,
                fault,
            } => fault.words(f, &ServerWords(*node, *replica), self.lasts),
            FaultKind::Backup { nodes } => write!(f, "backup of {}", NumberList("node", nodes)),
        }
    }
}

impl LinkFault {
    fn words(self, f: &mut fmt::Formatter<'_>, lasts: SimTime) -> fmt::Result {
        let percent = |of_million: u32| f64::from(of_million) / 10_000.0;
        match self {
            LinkFault::Cut => write!(f, "no message gets through for {lasts}"),
            LinkFault::Loss { of_million } => {
                let share = percent(of_million);
                write!(f, "{share} % of messages are lost for {lasts}")
            }
            LinkFault::Delay { min, max } if min == max => {
                write!(f, "messages take {max} longer for {lasts}")
            }
            LinkFault::Delay { min, max } => {
                write!(f, "messages take {min} to {max} longer for {lasts}")
            }
            LinkFault::HoldBack => write!(f, "messages are held back for {lasts}"),
            LinkFault::Duplicate { of_million, max } => {
                let share = percent(of_million);
                write!(
                    f,
                    "{share} % of requests arrive twice, up to {max} later, for {lasts}"
                )
            }
            LinkFault::Reorder { max } => {
                write!(
                    f,
                    "messages overtake each other, by up to {max}, for {lasts}"
                )
            }
            LinkFault::Reset { in_flight } => f.write_str(match in_flight {
                InFlight::Lost => "connections are reset, requests in flight are lost,",
                InFlight::Executed => "connections are reset, requests in flight still arrive,",
            }),
            LinkFault::Swallow => f.write_str("connections swallow everything from now on"),
        }
    }
}

impl ClientFault {
    fn words(self, f: &mut fmt::Formatter<'_>, client: ClientWords, lasts: SimTime) -> fmt::Result {
        match self {
            ClientFault::Pause => write!(f, "{client} pauses for {lasts}"),
            ClientFault::PauseInside { nth } => write!(
                f,
                "{client} pauses for {lasts} in the middle of its work (step {nth})"
            ),
            ClientFault::StopInside { nth } => write!(
                f,
                "{client} is stopped for {lasts} in the middle of a step (behind use {nth} of its clocks, \
                 timers, randomness or network)"
            ),
            ClientFault::Crash => write!(f, "{client} crashes and is started again after {lasts}"),
            ClientFault::Suspend { clock } => {
                let counts = match clock {
                    Suspended::Counts => "its clock counts the time",
                    Suspended::Stops => "its clock stands still",
                };
                write!(
                    f,
                    "the machine of {client} is suspended for {lasts}; {counts}"
                )
            }
            ClientFault::Cancel { nth } => {
                write!(
                    f,
                    "{client} drops the future that it awaits (at poll {nth} from now)"
                )
            }
            ClientFault::Rate { rate_ppm } => {
                write!(f, "the clocks of {client} run {}", RatePercent(rate_ppm))
            }
            ClientFault::Step { by } => {
                write!(f, "the wall clock of {client} is set by {by}")
            }
        }
    }
}

impl NodeFault {
    fn words(&self, f: &mut fmt::Formatter<'_>, node: &ServerWords, lasts: SimTime) -> fmt::Result {
        match self {
            NodeFault::Pause => write!(f, "{node} pauses for {lasts}"),
            NodeFault::Crash => {
                write!(f, "{node} crashes and is started again after {lasts}")
            }
            NodeFault::PowerLoss { loses } => write!(
                f,
                "{node} loses power and what it wrote in the last {loses}, and is started again after {lasts}"
            ),
            NodeFault::Flush => write!(f, "{node} loses all its keys (FLUSHALL)"),
            NodeFault::Evict { name } => write!(f, "{node} evicts lock {name}"),
            NodeFault::RevokeKeys { name } => {
                write!(
                    f,
                    "{node} permits no use of the keys of lock {name} for {lasts}"
                )
            }
            NodeFault::Error { error } => {
                let error = match error {
                    ServerError::ReadOnly => "READONLY",
                    ServerError::Loading => "LOADING",
                    ServerError::OutOfMemory => "OOM",
                    ServerError::Busy => "BUSY",
                };
                write!(f, "{node} answers {error} for {lasts}")
            }
            NodeFault::ForgetScripts => write!(f, "{node} forgets its scripts"),
            NodeFault::Rate { rate_ppm } => {
                write!(f, "the clock of {node} runs {}", RatePercent(*rate_ppm))
            }
            NodeFault::Step { by } => write!(f, "the clock of {node} is set by {by}"),
            NodeFault::SlowReplication { by, .. } => {
                write!(f, "replication from {node} takes {by} longer for {lasts}")
            }
            NodeFault::Failover {
                replica,
                left_behind,
            } => {
                write!(f, "replica {replica} of {node} is promoted")?;
                if !left_behind.is_empty() {
                    let who = NumberList("client", left_behind);
                    write!(f, "; the old primary still serves {who} for {lasts}")?;
                }
                Ok(())
            }
            NodeFault::IsolatePrimary { clients, sentinels } => {
                write!(f, "the primary of {node} is cut off")?;
                match (clients.as_slice(), sentinels.as_slice()) {
                    ([], []) => {}
                    (clients, []) => write!(f, ", with {},", NumberList("client", clients))?,
                    ([], sentinels) => write!(f, ", with {},", NumberList("sentinel", sentinels))?,
                    (clients, sentinels) => {
                        let (clients, sentinels) = (
                            NumberList("client", clients),
                            NumberList("sentinel", sentinels),
                        );
                        write!(f, ", with {clients} and {sentinels},")?;
                    }
                }
                write!(f, " for {lasts}")
            }
            NodeFault::SentinelFailover => {
                write!(
                    f,
                    "a sentinel of {node} receives the command to promote a replica"
                )
            }
            NodeFault::CrashSentinel { sentinel } => write!(
                f,
                "sentinel {sentinel} of {node} crashes and is started again after {lasts}"
            ),
            NodeFault::PauseSentinel { sentinel } => {
                write!(f, "sentinel {sentinel} of {node} pauses for {lasts}")
            }
            NodeFault::StaleSentinel { sentinel } => write!(
                f,
                "sentinel {sentinel} of {node} receives nothing from servers and other sentinels for {lasts}"
            ),
            NodeFault::Stall { nth } => write!(
                f,
                "{node} stalls for {lasts} after it has executed a request (number {nth} from now)"
            ),
            NodeFault::FreeBacklog => write!(
                f,
                "{node} frees its replication backlog and draws a new master_replid"
            ),
            NodeFault::Misroute { clients, to } => {
                let who = NumberList("client", clients);
                write!(
                    f,
                    "the address of {node} leads {who} to node {to} for {lasts}"
                )
            }
            NodeFault::MigrateSlot { name, to, gap } => {
                write!(
                    f,
                    "the slot of lock {name} is moved from {node} to node {to} in {lasts}"
                )?;
                if SimTime::ZERO < *gap {
                    write!(
                        f,
                        ", at the end of which each names the other as its owner for {gap}"
                    )?;
                }
                Ok(())
            }
            NodeFault::ClusterFailover { how } => {
                let how = match how {
                    Handover::Manual => "once it has all data",
                    Handover::Takeover => "at once, whatever data it has",
                };
                write!(
                    f,
                    "a replica of {node} receives the command to replace its primary {how}"
                )
            }
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

struct NumberList<'a>(&'a str, &'a [u16]);

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

struct RatePercent(i32);

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
