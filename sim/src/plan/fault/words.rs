//! Faults in words.

use std::fmt;

use super::{Direction, Fault, InFlight, ServerError, Suspended};

impl fmt::Display for Fault {
    /// What happens, as a sentence without its time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((clients, nodes, direction)) = self.links() {
            self.of_links(f)?;
            return write!(f, " {}", Between(clients, nodes, direction));
        }
        if let Some(client) = self.client() {
            return self.of_client(f, client);
        }
        if let Fault::Backup { nodes, .. } = self {
            return write!(f, "backup of {}", List("node", nodes));
        }
        match self.node() {
            Some(node) => self.of_node(f, *node),
            None => f.write_str(self.kind().name()),
        }
    }
}

impl Fault {
    fn of_links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |of_million: u32| f64::from(of_million) / 10_000.0;
        match self {
            Fault::Cut { lasts, .. } => write!(f, "no message gets through for {lasts}"),
            Fault::Loss {
                lasts, of_million, ..
            } => {
                let share = percent(*of_million);
                write!(f, "{share} % of messages are lost for {lasts}")
            }
            Fault::Delay {
                lasts, least, most, ..
            } if least == most => write!(f, "messages take {most} longer for {lasts}"),
            Fault::Delay {
                lasts, least, most, ..
            } => write!(f, "messages take {least} to {most} longer for {lasts}"),
            Fault::HoldBack { lasts, .. } => write!(f, "messages are held back for {lasts}"),
            Fault::Duplicate {
                lasts,
                of_million,
                most,
                ..
            } => {
                let share = percent(*of_million);
                write!(
                    f,
                    "{share} % of requests arrive twice, up to {most} later, for {lasts}"
                )
            }
            Fault::Reorder { lasts, most, .. } => {
                write!(
                    f,
                    "messages overtake each other, by up to {most}, for {lasts}"
                )
            }
            Fault::Reset { in_flight, .. } => f.write_str(match in_flight {
                InFlight::Lost => "connections are reset, requests under way are lost,",
                InFlight::Executed => "connections are reset, requests under way still arrive,",
            }),
            _ => Ok(()),
        }
    }

    fn of_client(&self, f: &mut fmt::Formatter<'_>, client: u16) -> fmt::Result {
        match self {
            Fault::PauseClient { lasts, .. } => write!(f, "client {client} pauses for {lasts}"),
            Fault::PauseInside { lasts, nth, .. } => write!(
                f,
                "client {client} pauses for {lasts} in the middle of what it does (step {nth})"
            ),
            Fault::CrashClient { restart_after, .. } => write!(
                f,
                "client {client} crashes and is started again after {restart_after}"
            ),
            Fault::SuspendClient { lasts, clock, .. } => {
                let counts = match clock {
                    Suspended::Counts => "its clock counts the time",
                    Suspended::Stops => "its clock stands still",
                };
                write!(
                    f,
                    "the machine of client {client} is suspended for {lasts}; {counts}"
                )
            }
            Fault::Cancel { nth, .. } => {
                write!(
                    f,
                    "client {client} drops what it waits for (at poll {nth} from now)"
                )
            }
            Fault::ClientRate { rate_ppm, .. } => {
                write!(f, "the clocks of client {client} run {}", Rate(*rate_ppm))
            }
            Fault::ClientStep { by, .. } => {
                write!(f, "the wall clock of client {client} is set by {by}")
            }
            _ => Ok(()),
        }
    }

    fn of_node(&self, f: &mut fmt::Formatter<'_>, node: u16) -> fmt::Result {
        match self {
            Fault::PauseNode { lasts, .. } => write!(f, "node {node} pauses for {lasts}"),
            Fault::CrashNode { restart_after, .. } => {
                write!(
                    f,
                    "node {node} crashes and is started again after {restart_after}"
                )
            }
            Fault::Flush { .. } => write!(f, "node {node} loses all its keys (FLUSHALL)"),
            Fault::Evict { name, .. } => write!(f, "node {node} evicts lock {name}"),
            Fault::ServerError { lasts, error, .. } => {
                let error = match error {
                    ServerError::ReadOnly => "READONLY",
                    ServerError::Loading => "LOADING",
                    ServerError::OutOfMemory => "OOM",
                    ServerError::Busy => "BUSY",
                };
                write!(f, "node {node} answers {error} for {lasts}")
            }
            Fault::ForgetScripts { .. } => write!(f, "node {node} forgets its scripts"),
            Fault::NodeRate { rate_ppm, .. } => {
                write!(f, "the clock of node {node} runs {}", Rate(*rate_ppm))
            }
            Fault::NodeStep { by, .. } => write!(f, "the clock of node {node} is set by {by}"),
            Fault::SlowReplication { lasts, by, .. } => {
                write!(
                    f,
                    "replication from node {node} takes {by} longer for {lasts}"
                )
            }
            Fault::Failover {
                replica,
                left_behind,
                rejoin_after,
                ..
            } => {
                write!(f, "replica {replica} of node {node} is promoted")?;
                if !left_behind.is_empty() {
                    let who = List("client", left_behind);
                    write!(f, "; {who} stays with the old primary for {rejoin_after}")?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// `between clients 0, 1 and node 2`; without a number it is whoever there is.
struct Between<'a>(&'a [u16], &'a [u16], Direction);

impl fmt::Display for Between<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (clients, nodes) = (List("client", self.0), List("node", self.1));
        match self.2 {
            Direction::Both => write!(f, "between {clients} and {nodes}"),
            Direction::ToNode => write!(f, "from {clients} to {nodes}"),
            Direction::ToClient => write!(f, "from {nodes} to {clients}"),
        }
    }
}

struct List<'a>(&'a str, &'a [u16]);

impl fmt::Display for List<'_> {
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

struct Rate(i32);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = f64::from(self.0.unsigned_abs()) / 10_000.0;
        let how = if self.0 < 0 { "slow" } else { "fast" };
        write!(f, "{percent} % {how}")
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::fault::{Direction, Fault};
    use crate::plan::time::{Span, Step};

    #[test]
    fn faults_read_as_sentences() {
        let cut = Fault::Cut {
            at: Span::ZERO,
            lasts: Span::millis(200),
            clients: vec![0, 2],
            nodes: vec![1],
            direction: Direction::ToNode,
        };
        let told = "no message gets through for 200ms from clients 0, 2 to node 1";
        assert_eq!(cut.to_string(), told);
        let step = Fault::NodeStep {
            at: Span::ZERO,
            node: 3,
            by: Step::millis(-1_500),
        };
        assert_eq!(step.to_string(), "the clock of node 3 is set by -1.5s");
        let rate = Fault::ClientRate {
            at: Span::ZERO,
            client: 0,
            rate_ppm: -25_000,
        };
        let told = "the clocks of client 0 run 2.5 % slow";
        assert_eq!(rate.to_string(), told);
    }
}
