//! Processes: faults that strike at random times.

use serde::Deserialize;

use super::length::Length;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::fault::{ClientTarget, Fault, FaultKind};
use quorlock_sim_plan::time::SimTime;

/// Faults that strike at random times.
#[derive(Clone, PartialEq, Debug)]
pub struct Process {
    /// The kind of the fault.
    pub(super) name: String,
    /// The fault, with any time, length and target.
    pub(super) fault: Fault,
    /// What is struck independently of its like.
    pub(super) each: Each,
    /// How many strikes a target has in a second.
    pub(super) per_second: f64,
    /// The share of the strikes of a target that hit all targets at the same instant.
    pub(super) common: f64,
    /// How long the fault lasts.
    pub(super) length: Length,
}

/// What is struck independently of its like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Each {
    /// A node.
    Node,
    /// A client.
    Client,
}

impl Each {
    /// Returns the key of a target in the file of a fault.
    pub(super) fn key(self) -> &'static str {
        match self {
            Each::Node => "node",
            Each::Client => "client",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Each::Node => Each::Client,
            Each::Client => Each::Node,
        }
    }

    /// Returns whether a fault strikes one of these.
    pub(super) fn fits(self, fault: &FaultKind) -> bool {
        match fault {
            FaultKind::Link { .. } => true,
            FaultKind::Client { .. } => self == Each::Client,
            FaultKind::Node { .. } | FaultKind::Nodes { .. } => self == Each::Node,
        }
    }
}

impl Process {
    /// Returns the number of targets.
    pub(super) fn targets(&self, plan: &Plan) -> u16 {
        match self.each {
            Each::Node => plan.nodes.count,
            Each::Client => plan.clients,
        }
    }

    /// Returns the fault of one target.
    pub(super) fn at(&self, target: u16, at: SimTime, lasts: SimTime) -> Fault {
        let mut fault = Fault {
            when: at.into(),
            lasts,
            ..self.fault.clone()
        };
        match (&mut fault.what, self.each) {
            (FaultKind::Node { node, .. }, Each::Node) => *node = target,
            (FaultKind::Nodes { nodes, .. } | FaultKind::Link { nodes, .. }, Each::Node) => {
                *nodes = vec![target];
            }
            (FaultKind::Client { client, .. }, Each::Client) => {
                *client = ClientTarget::Client(target);
            }
            (FaultKind::Link { clients, .. }, Each::Client) => *clients = vec![target],
            _ => {}
        }
        fault
    }
}

/// Returns a span in seconds.
pub(super) fn seconds(span: SimTime) -> f64 {
    span.as_nanos() as f64 / 1e9
}

/// Reads a rate, a number of strikes in a span: `1/30d`, `4/h`.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let wrong = || format!("{text:?} is not a rate: write for example 1/30d or 4/h");
    let (strikes, span) = text.split_once('/').ok_or_else(wrong)?;
    let strikes: f64 = strikes.trim().parse().map_err(|_| wrong())?;
    let span = span.trim();
    let span = match span.starts_with(|first: char| first.is_ascii_digit()) {
        true => span.to_owned(),
        false => format!("1{span}"),
    };
    let span: SimTime = span.parse().map_err(|_| wrong())?;
    if !(0.0 < strikes && strikes.is_finite() && SimTime::ZERO < span) {
        return Err(wrong());
    }
    Ok(strikes / seconds(span))
}
