//! The slow log, connections, and the coverage of a cluster.

use quorlock::operate::{Limits, ServerFacts};
use quorlock::redis::Doubt;

use super::{Fields, Setting};
use crate::doctor::line::Line;
use crate::doctor::show::{count, span};

/// A command that takes longer than half of what a server has to answer leaves too little for a request behind it.
pub(super) fn slow_log(facts: &ServerFacts, limits: &Limits) -> Option<Line> {
    const SLOW_LOG: &str = "slow log";
    let Some(slowest) = &facts.slowest else {
        let is_read = facts.unread.iter().all(|(name, _)| *name != "SLOWLOG GET");
        return is_read.then(|| Line::ok(SLOW_LOG, "empty"));
    };
    let (verb, took) = (&slowest.verb, span(slowest.took));
    if limits.member_timeout / 2 < slowest.took {
        let bound = span(limits.member_timeout);
        return Some(
            Line::doubtful(
                SLOW_LOG,
                format!("{verb} took {took}, in which the server answered nothing; it has {bound} to answer"),
            )
            .cure("SLOWLOG GET names it: give its program a server of its own, or set a longer lease"),
        );
    }
    Some(Line::ok(SLOW_LOG, format!("the longest is {verb}, {took}")))
}

/// A share of the connections, in per cent, from which on they are short.
const SHORT_PERCENT: u64 = 80;

pub(super) fn connections(fields: Fields<'_>) -> Option<Line> {
    const CONNECTIONS: &str = "connections";
    let (used, most) = (
        fields.number("connected_clients")?,
        fields.number("maxclients")?,
    );
    let rejected = fields.number("rejected_connections").unwrap_or(0);
    let text = format!("{used} of {most}");
    let cure = "raise maxclients, or end those that are not needed: CLIENT LIST shows them";
    Some(if most.saturating_mul(SHORT_PERCENT) / 100 <= used {
        Line::doubtful(
            CONNECTIONS,
            format!("{text}: at the limit clients are turned away"),
        )
        .cure(cure)
    } else if 0 < rejected {
        let turned = count(rejected, "client");
        Line::doubtful(
            CONNECTIONS,
            format!("{text}; {turned} turned away since the start"),
        )
        .cure(cure)
    } else {
        Line::ok(CONNECTIONS, text)
    })
}

pub(super) fn coverage(facts: &ServerFacts, setting: &Setting<'_>) -> Line {
    const COVERAGE: &str = "coverage";
    match facts
        .settings
        .get("cluster-require-full-coverage")
        .map(String::as_str)
    {
        Some("yes") if setting.is_single() => Line::ok(
            COVERAGE,
            "cluster-require-full-coverage yes: holds on all shards wait while one has no primary",
        ),
        Some("yes") => Line::doubtful(COVERAGE, Doubt::NeedsFullCoverage.to_string())
            .cure("CONFIG SET cluster-require-full-coverage no"),
        Some(value) => Line::ok(COVERAGE, format!("cluster-require-full-coverage {value}")),
        None => Line::ok(COVERAGE, "cluster-require-full-coverage cannot be read"),
    }
}
