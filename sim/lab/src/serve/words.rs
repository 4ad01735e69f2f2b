//! Faults on the command line: `KIND[=VALUE]@FROM[..TO][/NODE]`.

use std::str::FromStr;

use quorlock_sim_plan::fault::{
    Direction, Fault, FaultKind, InFlight, Kind, LinkFault, NodeFault, NodesFault, RATES_PPM,
    ServerError, Trigger,
};
use quorlock_sim_plan::time::{ClockStep, SimTime};

/// A fault as written on the command line, of one node or of all nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultWords {
    fault: Fault,
    node: Option<u16>,
}

/// An example of each kind of fault, for error messages.
const KNOWN: &str = "pause-node@5s..8s, crash-node@10s..12s, reset@3s, flush@3s, forget-scripts@3s, \
     backup@3s, server-error=loading@2s..4s (or read-only, out-of-memory, busy), delay=20ms@1s..5s, node-step=30s@6s (or -30s), \
     node-rate=5000@6s (in ppm)";

impl FaultWords {
    /// Returns the fault, once for each node that it applies to.
    ///
    /// # Errors
    /// Returns a description of the error if the node does not exist.
    pub fn of(&self, nodes: u16) -> Result<Vec<Fault>, String> {
        match self.node {
            Some(node) if nodes <= node => Err(format!(
                "there is no node {node}: nodes are numbered from 0 to {}",
                nodes - 1
            )),
            Some(node) => Ok(vec![with_node(&self.fault, node)]),
            None => Ok((0..nodes)
                .map(|node| with_node(&self.fault, node))
                .collect()),
        }
    }
}

impl FromStr for FaultWords {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{text:?}: {what}; write for example {KNOWN}");
        let (what, when) = text
            .split_once('@')
            .ok_or_else(|| wrong("the time after @ is missing"))?;
        let (when, node) = match when.split_once('/') {
            Some((when, node)) => {
                let node = node
                    .parse()
                    .map_err(|_| wrong("the node after / is not a number"))?;
                (when, Some(node))
            }
            None => (when, None),
        };
        let (from, to) = match when.split_once("..") {
            Some((from, to)) => (from, Some(to)),
            None => (when, None),
        };
        let span = |text: &str| {
            text.parse::<SimTime>()
                .map_err(|error| wrong(&error.to_string()))
        };
        let at = span(from)?;
        let to = to.map(span).transpose()?;
        if to.is_some_and(|to| to < at) {
            return Err(wrong("it ends before it begins"));
        }
        let (name, value) = match what.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (what, None),
        };
        let words = Words { at, to, value };
        let fault = words.fault(name).map_err(|what| wrong(&what))?;
        Ok(FaultWords { fault, node })
    }
}

/// The parts of a fault's text except the kind.
struct Words<'a> {
    at: SimTime,
    to: Option<SimTime>,
    value: Option<&'a str>,
}

impl Words<'_> {
    fn fault(&self, name: &str) -> Result<Fault, String> {
        let (at, node) = (self.at, 0);
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        Ok(match kind {
            Some(Kind::PauseNode) => {
                Fault::of_node(at, node, NodeFault::Pause).lasting(self.lasts()?)
            }
            Some(Kind::CrashNode) => {
                // If there is no end, the node restarts at once.
                let away = self.to.map_or(SimTime::ZERO, |to| to.minus(at));
                Fault::of_node(at, node, NodeFault::Crash).lasting(away)
            }
            Some(Kind::Reset) => Fault {
                when: Trigger::At(self.once()?),
                lasts: SimTime::ZERO,
                what: FaultKind::Link {
                    clients: Vec::new(),
                    nodes: Vec::new(),
                    direction: Direction::Both,
                    fault: LinkFault::Reset {
                        in_flight: InFlight::Lost,
                    },
                },
            },
            Some(Kind::Flush) => Fault::of_node(self.once()?, node, NodeFault::Flush),
            Some(Kind::ForgetScripts) => {
                Fault::of_node(self.once()?, node, NodeFault::ForgetScripts)
            }
            Some(Kind::Backup) => Fault {
                when: Trigger::At(self.once()?),
                lasts: SimTime::ZERO,
                what: FaultKind::Nodes {
                    nodes: Vec::new(),
                    fault: NodesFault::Backup,
                },
            },
            Some(Kind::ServerError) => Fault::of_node(
                at,
                node,
                NodeFault::Error {
                    error: self.error()?,
                },
            )
            .lasting(self.lasts()?),
            Some(Kind::Delay) => Fault {
                when: Trigger::At(at),
                lasts: self.lasts()?,
                what: FaultKind::Link {
                    clients: Vec::new(),
                    nodes: Vec::new(),
                    direction: Direction::ToClient,
                    fault: LinkFault::Delay {
                        min: self.value()?,
                        max: self.value()?,
                    },
                },
            },
            Some(Kind::NodeStep) => Fault::of_node(
                self.once()?,
                node,
                NodeFault::Step {
                    by: self.value::<ClockStep>()?,
                },
            ),
            Some(Kind::NodeRate) => Fault::of_node(
                self.once()?,
                node,
                NodeFault::Rate {
                    rate_ppm: self.rate()?,
                },
            ),
            Some(_) => return Err(format!("{name} is a fault of simulations only")),
            None => return Err(format!("there is no fault {name:?}")),
        })
    }

    fn lasts(&self) -> Result<SimTime, String> {
        let to = self.to.ok_or("the end after .. is missing")?;
        Ok(to.minus(self.at))
    }

    fn once(&self) -> Result<SimTime, String> {
        match self.to {
            None => Ok(self.at),
            Some(_) => Err("this fault happens once, and has no end".into()),
        }
    }

    fn value<T: FromStr>(&self) -> Result<T, String> {
        let value = self.value.ok_or("this fault needs a value after =")?;
        let value = value.strip_prefix('+').unwrap_or(value);
        value
            .parse()
            .map_err(|_| format!("{value:?} is not a valid value"))
    }

    /// Parses a rate. Rates have the same bounds as in a plan. A clock that stops or runs backwards needs steps
    /// instead.
    fn rate(&self) -> Result<i32, String> {
        let rate = self.value()?;
        match RATES_PPM.contains(&rate) {
            true => Ok(rate),
            false => Err(format!(
                "{rate} is not between {} and {}",
                RATES_PPM.start(),
                RATES_PPM.end()
            )),
        }
    }

    fn error(&self) -> Result<ServerError, String> {
        match self.value {
            Some("read-only") => Ok(ServerError::ReadOnly),
            Some("loading") => Ok(ServerError::Loading),
            Some("out-of-memory") => Ok(ServerError::OutOfMemory),
            Some("busy") => Ok(ServerError::Busy),
            _ => Err("this fault needs the name of an error after =".into()),
        }
    }
}

fn with_node(fault: &Fault, to: u16) -> Fault {
    let mut fault = fault.clone();
    match &mut fault.what {
        FaultKind::Node { node, .. } => *node = to,
        FaultKind::Link { nodes, .. } | FaultKind::Nodes { nodes, .. } => *nodes = vec![to],
        FaultKind::Client { .. } => {}
    }
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, nodes: u16) -> Vec<String> {
        let faults = text.parse::<FaultWords>().unwrap().of(nodes).unwrap();
        let told = faults
            .iter()
            .map(|fault| format!("{}: {fault}", fault.when));
        told.collect()
    }

    #[test]
    fn words_stand_for_the_faults_of_plans() {
        assert_eq!(told("pause-node@5s..8s", 1), ["5s: node 0 pauses for 3s"]);
        assert_eq!(
            told("crash-node@10s/1", 3),
            ["10s: node 1 crashes and is started again after 0s"]
        );
        assert_eq!(
            told("node-step=-30s@1.5s", 2),
            [
                "1.5s: the clock of node 0 is set by -30s",
                "1.5s: the clock of node 1 is set by -30s"
            ]
        );
        assert_eq!(
            told("server-error=out-of-memory@1s..2s", 1),
            ["1s: node 0 answers OOM for 1s"]
        );
        assert_eq!(
            told("delay=20ms@1s..3s", 1),
            ["1s: messages take 20ms longer for 2s from node 0 to clients"]
        );
        assert_eq!(
            told("reset@3s/1", 2),
            ["3s: connections are reset, requests in flight are lost, between clients and node 1"]
        );
        assert_eq!(
            told("backup@3s", 2),
            ["3s: backup of node 0", "3s: backup of node 1"]
        );
        assert_eq!(
            told("node-rate=+5000@0s", 1),
            ["0s: the clock of node 0 runs 0.5 % fast"]
        );
    }

    #[test]
    fn what_is_no_fault_is_refused_with_examples() {
        for text in [
            "",
            "pause-node",
            "pause-node@5s",
            "pause-node@8s..5s",
            "pause-node@5",
            "flush@1s..2s",
            "flush@1s/x",
            "server-error@1s..2s",
            "server-error=EIO@1s..2s",
            "node-step=fast@1s",
            "node-rate=-1000000@1s",
            "loss@1s..2s",
            "earthquake@1s",
        ] {
            let refused = text.parse::<FaultWords>().unwrap_err();
            assert!(refused.contains("pause-node@5s..8s"), "{refused}");
        }
        assert!("flush@1s/3".parse::<FaultWords>().unwrap().of(3).is_err());
    }
}
