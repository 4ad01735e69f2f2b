//! The facts and the lines as JSON: one object for each node, and one for all of them.

use std::time::Duration;

use quorlock::operate::{NodeFacts, RightsFacts, ServerFacts, StoreFacts};
use serde_json::{Value, json};

use super::facts::{Facts, Node, Trial};
use super::findings::{NodeReport, Report};
use super::line::{Line, worst};

pub(crate) fn lines(facts: &Facts, report: &Report) -> Vec<Value> {
    let nodes = facts.nodes.iter().zip(&report.nodes);
    let mut lines: Vec<Value> = nodes.map(|(node, report)| of_node(node, report)).collect();
    lines.push(whole(facts, report));
    lines
}

fn of_node(node: &Node, report: &NodeReport) -> Value {
    let quarantine = node.quarantine.as_ref();
    let mut value = json!({
        "node": node.examined.address,
        "state": report.level().word(),
        "votes": node.votes(),
        "problem": node.examined.problem.as_ref().map(ToString::to_string),
        "quarantine": quarantine.map(|quarantine| quarantine.why.to_string()),
        "lines": report.all().map(of_line).collect::<Vec<_>>(),
    });
    let (name, facts) = match &node.examined.facts {
        NodeFacts::Redis {
            servers, sentinels, ..
        } => {
            let sentinels = sentinels.iter().map(|sentinel| {
                json!({
                    "address": sentinel.address,
                    "primary": sentinel.primary.as_ref().ok(),
                    "error": sentinel.primary.as_ref().err(),
                    "quorum": sentinel.quorum,
                })
            });
            put(&mut value, "sentinels", sentinels.collect());
            let servers = servers.iter().map(|server| match &server.facts {
                Ok(facts) => of_server(&server.address, facts),
                Err(error) => json!({"address": server.address, "error": error.to_string()}),
            });
            ("servers", servers.collect())
        }
        NodeFacts::Store(store) => ("store", of_store(store)),
    };
    put(&mut value, name, facts);
    value
}

fn put(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(object) = object {
        object.insert(name.to_owned(), value);
    }
}

fn of_line(line: &Line) -> Value {
    json!({
        "subject": line.subject,
        "state": line.level.word(),
        "text": line.text,
        "do": line.cures,
    })
}

/// The fields of `INFO` that lines are about.
const INFO: [&str; 21] = [
    "redis_version",
    "valkey_version",
    "role",
    "master_host",
    "master_port",
    "connected_slaves",
    "master_repl_offset",
    "repl_backlog_active",
    "aof_enabled",
    "aof_last_write_status",
    "rdb_last_bgsave_status",
    "used_memory",
    "maxmemory",
    "maxmemory_policy",
    "evicted_keys",
    "number_of_cached_scripts",
    "connected_clients",
    "maxclients",
    "rejected_connections",
    "uptime_in_seconds",
    "run_id",
];

fn of_server(address: &str, facts: &ServerFacts) -> Value {
    let info = INFO
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), facts.info.get(*name)?.as_str().into())));
    let unread = facts
        .unread
        .iter()
        .map(|(name, why)| ((*name).to_owned(), Value::from(why.as_str())));
    json!({
        "address": address,
        "user": facts.user,
        "connected_us": micros(facts.connected_in),
        "info": Value::Object(info.collect()),
        "config": facts.settings,
        "unread": Value::Object(unread.collect()),
        "clock": facts.clock.map(|clock| json!({
            "ahead_us": clock.ahead_micros,
            "within_us": clock.within_micros,
            "faster_ppm": clock.faster_ppm,
            "within_ppm": clock.within_ppm,
        })),
        "round_trips": round_trips(&facts.round_trips),
        "slowest": facts.slowest.as_ref().map(|slow| json!({"command": slow.verb, "us": micros(slow.took)})),
        "rights": rights(&facts.rights),
    })
}

fn rights(rights: &RightsFacts) -> Value {
    match rights {
        RightsFacts::Told(told) => json!({
            "lacks_to_lock": told.to_lock,
            "lacks_to_wake": told.to_wake,
            "lacks_beyond": told.beyond.iter().map(|(use_, lack)| json!({"for": use_, "lacks": lack})).collect::<Vec<_>>(),
        }),
        RightsFacts::NotTold => Value::Null,
        RightsFacts::Refused(why) => json!({"refused": why}),
    }
}

fn of_store(store: &StoreFacts) -> Value {
    json!({
        "version": store.version,
        "connected_us": micros(store.connected_in),
        "clock": store.ahead_millis.map(|ahead| json!({"ahead_us": ahead * 1_000, "within_us": store.within_millis * 1_000})),
        "round_trips": round_trips(&store.round_trips),
    })
}

fn round_trips(sorted: &[Duration]) -> Value {
    json!({
        "count": sorted.len(),
        "median_us": sorted.get(sorted.len() / 2).map(|span| micros(*span)),
        "longest_us": sorted.last().map(|span| micros(*span)),
    })
}

fn whole(facts: &Facts, report: &Report) -> Value {
    let limits = &facts.limits;
    let voting = facts.nodes.iter().filter(|node| node.votes()).count();
    let took = match &facts.trial {
        Trial::Locked { took, .. } => Some(micros(*took)),
        _ => None,
    };
    let all = report
        .nodes
        .iter()
        .flat_map(NodeReport::all)
        .chain(&report.whole);
    json!({
        "deployment": {
            "nodes": facts.nodes.len(),
            "needed": limits.needed,
            "voting": voting,
            "may_fail": voting.saturating_sub(limits.needed),
            "watched": limits.is_watched,
            "lease_ms": millis(limits.lease),
            "longest_lease_ms": millis(limits.longest_lease),
            "clock_margin_ms": millis(limits.clock_margin),
            "member_timeout_ms": millis(limits.member_timeout),
        },
        "lock": {"name": facts.name, "locked_us": took},
        "state": worst(all).word(),
        "code": report.code().0,
        "lines": report.whole.iter().map(of_line).collect::<Vec<_>>(),
    })
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
