//! The lines about all nodes together.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock::operate::{ExaminedNode, NodeFacts};

use super::facts::{Facts, Node, Trial};
use super::line::{Level, Line};
use super::show::{count, span};

pub(super) fn lines(facts: &Facts) -> Vec<Line> {
    let same = same_server(&facts.nodes);
    let clocks = clocks(facts);
    [
        Some(lock(facts)),
        same,
        clocks,
        fresh(facts),
        Some(votes(facts)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn lock(facts: &Facts) -> Line {
    const LOCK: &str = "lock";
    let name = &facts.name;
    match &facts.trial {
        Trial::Locked {
            took,
            unreleased: None,
        } => Line::ok(
            LOCK,
            format!("{name} was acquired and released in {}", span(*took)),
        ),
        Trial::Locked {
            unreleased: Some(why),
            ..
        } => Line::doubtful(
            LOCK,
            format!("{name} was acquired, but its release is not confirmed: {why}"),
        ),
        Trial::Busy => Line::ok(
            LOCK,
            format!("{name} is held by others: it was not acquired"),
        ),
        Trial::Skipped => Line::ok(LOCK, "not tried: too few nodes vote"),
        Trial::Failed(failure) => {
            let level = match failure.code {
                crate::failure::Code::UNAVAILABLE => Level::Absent,
                _ => Level::Misconfigured,
            };
            Line::new(LOCK, level, failure.text.clone())
        }
    }
}

/// How many nodes vote now, and how many of these may fail.
fn votes(facts: &Facts) -> Line {
    const VOTES: &str = "votes";
    let of = facts.nodes.len();
    let needed = facts.limits.needed;
    let voting = facts.nodes.iter().filter(|node| node.votes()).count();
    let quarantined = facts
        .nodes
        .iter()
        .filter(|node| node.examined.problem.is_none() && node.quarantine.is_some());
    let quarantined = match quarantined.count() {
        0 => String::new(),
        some => format!(
            ", {some} in quarantine for {} from the next client on",
            span(facts.limits.longest_lease)
        ),
    };
    let text = format!("{voting} of {of} count{quarantined}; a lock needs {needed}");
    let Some(spare) = voting.checked_sub(needed) else {
        return Line::new(
            VOTES,
            Level::Absent,
            format!("{text}: no lock is granted now"),
        );
    };
    let text = match spare {
        0 => format!("{text}: none may fail"),
        _ => format!("{text}: {spare} may fail"),
    };
    if voting < of {
        return Line::doubtful(VOTES, text);
    }
    match of {
        1 => Line::ok(VOTES, text),
        _ if of.is_multiple_of(2) => Line::doubtful(
            VOTES,
            format!("{text}, no more than with {}", count(of as u64 - 1, "node")),
        )
        .cure("take an odd number of nodes"),
        _ => Line::ok(VOTES, text),
    }
}

/// A setting for the first start of a deployment.
fn fresh(facts: &Facts) -> Option<Line> {
    let is_on = facts.trusts_fresh_nodes && facts.limits.is_watched;
    let text = "trust_fresh_nodes is on: a node that has forgotten everything votes at once, and may give a lock to two holders";
    is_on.then(|| {
        Line::doubtful("trust", text).cure("leave it out after the first start of the deployment")
    })
}

/// Two addresses that lead to one process.
fn same_server(nodes: &[Node]) -> Option<Line> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for node in nodes {
        let NodeFacts::Redis {
            servers,
            is_of_cluster: false,
            ..
        } = &node.examined.facts
        else {
            continue;
        };
        let runs = servers
            .iter()
            .filter_map(|server| server.facts.as_ref().ok()?.info.get("run_id"));
        for run in runs.filter(|run| !run.is_empty()) {
            let address = node.examined.address.as_str();
            if let Some(other) = seen.insert(run, address) {
                let text = format!("{other} and {address} lead to one process, which has one vote");
                return Some(
                    Line::new("servers", Level::Misconfigured, text)
                        .cure("give one of the two, and another server"),
                );
            }
        }
    }
    None
}

/// How far apart the clocks of the nodes are. Tokens stay in order after counters were lost while it is less than half of the longest
/// lease.
fn clocks(facts: &Facts) -> Option<Line> {
    const CLOCKS: &str = "clocks";
    let offsets: Vec<(i64, i64)> = facts
        .nodes
        .iter()
        .filter_map(|node| offset(&node.examined))
        .collect();
    if offsets.len() < 2 {
        return None;
    }
    let first = offsets.iter().min()?;
    let last = offsets.iter().max()?;
    let (apart, within) = (last.0 - first.0, last.1 + first.1);
    let shown = |micros: i64| span(Duration::from_micros(micros.unsigned_abs()));
    let text = format!(
        "those of the nodes are at most {} apart, within {}",
        shown(apart),
        shown(within)
    );
    let half = facts.limits.longest_lease / 2;
    if i64::try_from(half.as_micros()).unwrap_or(i64::MAX) < apart - within {
        return Some(
            Line::doubtful(
                CLOCKS,
                format!(
                    "{text}: more than half of the longest lease, {}",
                    span(half)
                ),
            )
            .cure(
                "let a time service slew them: fencing tokens rely on them when counters are lost",
            ),
        );
    }
    Some(Line::ok(CLOCKS, text))
}

/// How far the clock of a node is ahead of this machine's, and the bound of that, in microseconds.
fn offset(node: &ExaminedNode) -> Option<(i64, i64)> {
    match &node.facts {
        NodeFacts::Redis { servers, .. } => {
            let clock = servers.first()?.facts.as_ref().ok()?.clock?;
            Some((clock.ahead_micros, clock.within_micros))
        }
        NodeFacts::Store(store) => Some((store.ahead_millis? * 1_000, store.within_millis * 1_000)),
    }
}
