//! What the facts mean: a line for each of them, with what to do where it is not ok. Nothing is read here.

use std::time::Duration;

use quorlock::Why;
use quorlock::errors::Quarantine;
use quorlock::operate::{Limits, NodeFacts, StoreFacts};

use super::facts::{Facts, Node};
use super::line::{Level, Line, worst};
use super::show::span;
use super::{server, whole};
use crate::failure::Code;

/// The lines about one node.
#[derive(Clone, Debug)]
pub(crate) struct NodeReport {
    pub(crate) address: String,
    pub(crate) lines: Vec<Line>,
    /// The lines about each of its servers, if there are several.
    pub(crate) servers: Vec<(String, Vec<Line>)>,
}

impl NodeReport {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Line> {
        let servers = self.servers.iter().flat_map(|(_, lines)| lines);
        self.lines.iter().chain(servers)
    }

    pub(crate) fn level(&self) -> Level {
        worst(self.all())
    }
}

/// All lines.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) nodes: Vec<NodeReport>,
    /// About the nodes together.
    pub(crate) whole: Vec<Line>,
}

impl Report {
    /// Returns the exit code.
    pub(crate) fn code(&self) -> Code {
        let lines = self.nodes.iter().flat_map(NodeReport::all);
        match worst(lines.chain(&self.whole)) {
            Level::Ok | Level::Doubtful => Code::SUCCESS,
            Level::Absent => Code::UNAVAILABLE,
            Level::Misconfigured => Code::CONFIG,
        }
    }
}

/// Judges a deployment.
pub(crate) fn judge(facts: &Facts) -> Report {
    let of = facts.nodes.len();
    let is_tried = facts.trial.is_locked();
    Report {
        nodes: facts
            .nodes
            .iter()
            .map(|node| judge_node(node, of, &facts.limits, is_tried))
            .collect(),
        whole: whole::lines(facts),
    }
}

fn judge_node(node: &Node, of: usize, limits: &Limits, is_tried: bool) -> NodeReport {
    let mut report = NodeReport {
        address: node.examined.address.clone(),
        lines: Vec::new(),
        servers: Vec::new(),
    };
    let problem = node.examined.problem.as_ref().map(|problem| {
        let level = match problem.is_final() {
            true => Level::Misconfigured,
            false => Level::Absent,
        };
        let text = problem.to_string();
        let begin = format!("{}: ", report.address);
        Line::new(
            "connection",
            level,
            text.strip_prefix(&begin).unwrap_or(&text),
        )
    });
    let is_usable = problem.is_none();
    report.lines.extend(problem);
    match &node.examined.facts {
        NodeFacts::Redis {
            is_of_cluster,
            servers,
            sentinels,
        } => {
            let setting = server::Setting {
                of,
                limits,
                is_usable,
                is_of_cluster: *is_of_cluster,
                is_of_group: !sentinels.is_empty(),
                is_tried,
            };
            report.lines.extend(server::of_sentinels(sentinels));
            for server in servers {
                let lines = server::lines(&server.facts, &setting);
                match servers.len() {
                    1 => report.lines.extend(lines),
                    _ => report.servers.push((server.address.clone(), lines)),
                }
            }
        }
        NodeFacts::Store(store) if is_usable => report.lines.extend(of_store(store, limits)),
        NodeFacts::Store(_) => {}
    }
    report.lines.extend(trust(node, limits));
    report
}

/// Whether the votes of a node count. A node that cannot be used has a line already.
fn trust(node: &Node, limits: &Limits) -> Option<Line> {
    const TRUST: &str = "trust";
    match &node.quarantine {
        _ if node.examined.problem.is_some() => None,
        None if limits.is_watched => Some(Line::ok(TRUST, "watched for long enough: it votes")),
        None => Some(Line::ok(
            TRUST,
            "not watched, as is the default for a single server: it votes also after a restart",
        )),
        Some(quarantine) if quarantine.why == Why::Unknown => Some(Line::doubtful(
            TRUST,
            "its marker cannot be read, so its votes do not count: see the line about the lock",
        )),
        Some(quarantine) => Some(quarantined(quarantine, limits.longest_lease)),
    }
}

fn quarantined(quarantine: &Quarantine, longest_lease: Duration) -> Line {
    let longest = span(longest_lease);
    Line::doubtful("trust", format!("quarantined: {}", quarantine.why)).cure(format!(
        "keep a client running, such as a service: {longest} after it has connected the votes count (doctor does not watch)"
    ))
}

fn of_store(facts: &StoreFacts, limits: &Limits) -> Vec<Line> {
    let mut lines = vec![Line::ok(
        "connection",
        format!(
            "connected in {}: the login is accepted, the records can be read",
            span(facts.connected_in)
        ),
    )];
    if let Some(version) = &facts.version {
        lines.push(Line::ok("version", version.clone()));
    }
    lines.push(match facts.ahead_millis {
        None => Line::ok(
            "clock",
            "none is used: a dead holder is replaced when a client has seen its claim for a lease",
        ),
        Some(ahead) => server::of_offset(ahead * 1_000, facts.within_millis * 1_000, "", limits),
    });
    lines.extend(server::of_round_trips(&facts.round_trips, limits));
    lines
}
