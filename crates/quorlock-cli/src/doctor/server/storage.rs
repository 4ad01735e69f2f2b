//! Role, replicas, persistence and memory.

use quorlock::operate::ServerFacts;
use quorlock::redis::Doubt;

use super::{Fields, Setting};
use crate::doctor::line::{Level, Line};
use crate::doctor::show::{bytes, count};

const ROLE: &str = "role";

pub(super) fn role(facts: &ServerFacts, fields: Fields<'_>, setting: &Setting<'_>) -> Line {
    if let Some("slave" | "replica") = fields.text("role") {
        let primary = fields.text("master_host").unwrap_or("?");
        let port = fields.text("master_port").unwrap_or("?");
        return Line::new(
            ROLE,
            Level::Misconfigured,
            format!("a replica of {primary}:{port}"),
        )
        .cure("give the address of the primary, or redis+sentinel://.. of its group");
    }
    let replicas: Vec<&str> = facts
        .info
        .iter()
        .filter(|(field, _)| is_of_replica(field))
        .map(|(_, state)| state.as_str())
        .collect();
    if replicas.is_empty() {
        return Line::ok(ROLE, "primary, without replicas");
    }
    let behind = replicas
        .iter()
        .map(|state| behind(state, fields))
        .max()
        .unwrap_or(0);
    let mut text = format!("primary, {}", count(replicas.len() as u64, "replica"));
    if replicas.iter().all(|state| state.contains("state=online")) {
        text += &format!(", at most {} behind", bytes(behind));
    } else {
        text += ", of which one is not online";
    }
    if setting.is_single() {
        let line = Line::doubtful(
            ROLE,
            text + ": a failover to one that lacks a claim gives the lock to two holders (R1)",
        );
        return line.cure(match setting.is_of_group || setting.is_of_cluster {
            true => "take a majority of groups or servers, let clients WAIT for replicas, or compare fencing tokens",
            false => "let no replica take this address, take a majority of servers, or compare fencing tokens",
        });
    }
    if setting.limits.is_watched {
        text += ": after a failover the votes do not count for one longest lease";
        return Line::ok(ROLE, text);
    }
    let doubt = facts
        .doubts
        .iter()
        .find(|doubt| matches!(doubt, Doubt::HasReplicas { .. }));
    Line::doubtful(ROLE, doubt.map_or(text, ToString::to_string))
}

/// Whether a field is one like `slave0`.
fn is_of_replica(field: &str) -> bool {
    let number = field.strip_prefix("slave");
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// How many bytes a replica is behind: `ip=..,port=..,state=online,offset=14,lag=0`.
fn behind(replica: &str, fields: Fields<'_>) -> u64 {
    let mut parts = replica.split(',');
    let offset = parts.find_map(|part| part.strip_prefix("offset="));
    let offset: u64 = offset.and_then(|offset| offset.parse().ok()).unwrap_or(0);
    fields
        .number("master_repl_offset")
        .unwrap_or(0)
        .saturating_sub(offset)
}

const PERSISTENCE: &str = "persistence";

pub(super) fn persistence(facts: &ServerFacts, fields: Fields<'_>, setting: &Setting<'_>) -> Line {
    for (field, what) in [
        (
            "aof_last_write_status",
            "the last write to the append-only file",
        ),
        ("rdb_last_bgsave_status", "the last snapshot"),
    ] {
        if fields.text(field) == Some("err") {
            return Line::doubtful(
                PERSISTENCE,
                format!("{what} failed: the server may refuse writes, and so locks"),
            )
            .cure("look at its log: the disk is full or broken");
        }
    }
    if !setting.is_single() {
        return of_majority(fields, setting);
    }
    match (
        fields.text("aof_enabled"),
        facts.settings.get("appendfsync").map(String::as_str),
    ) {
        (Some("0"), _) => Line::doubtful(PERSISTENCE, Doubt::KeepsNothing.to_string())
            .cure("CONFIG SET appendonly yes")
            .cure("CONFIG SET appendfsync always"),
        (Some(_), Some("always")) => Line::ok(
            PERSISTENCE,
            "appendonly yes, appendfsync always: a restart forgets nothing",
        ),
        (Some(_), Some(sync)) => Line::doubtful(
            PERSISTENCE,
            format!(
                "appendonly yes, appendfsync {sync}: a power cut forgets the latest claims (S6)"
            ),
        )
        .cure("CONFIG SET appendfsync always"),
        (Some(_), None) => Line::doubtful(
            PERSISTENCE,
            "appendonly yes; appendfsync cannot be read: it must be always",
        ),
        (None, _) => Line::doubtful(PERSISTENCE, "the server does not say what it keeps"),
    }
}

/// A majority whose nodes are watched needs no disk.
fn of_majority(fields: Fields<'_>, setting: &Setting<'_>) -> Line {
    let kept = match fields.text("aof_enabled") {
        Some("0") => "no append-only file",
        Some(_) => "appendonly yes",
        None => "the server does not say what it keeps",
    };
    if !setting.limits.is_watched {
        return Line::doubtful(
            PERSISTENCE,
            format!(
                "{kept}; a restart that forgets claims is not noticed, as the nodes are not watched"
            ),
        );
    }
    let backlog = match fields.text("repl_backlog_active") {
        Some("0") => "; without a replication backlog, so does redis-cli --rdb",
        _ => "",
    };
    Line::ok(
        PERSISTENCE,
        format!("{kept}: a restart costs the votes for one longest lease, and no lock{backlog}"),
    )
}

const MEMORY: &str = "memory";

/// A share of the limit, in per cent, from which on memory is short.
const SHORT_PERCENT: u64 = 90;

pub(super) fn memory(facts: &ServerFacts, fields: Fields<'_>) -> Line {
    let used = fields.number("used_memory").unwrap_or(0);
    let limit = fields.number("maxmemory").unwrap_or(0);
    let policy = fields.text("maxmemory_policy").unwrap_or("unknown");
    let mut text = match limit {
        0 => format!("{} used, no limit", bytes(used)),
        _ => format!("{} of {} used, {policy}", bytes(used), bytes(limit)),
    };
    if let Some(scripts) = fields.number("number_of_cached_scripts") {
        text += &format!(", {} cached", count(scripts, "script"));
    }
    let evicts = facts
        .doubts
        .iter()
        .find(|doubt| matches!(doubt, Doubt::Evicts { .. }));
    let evicted = fields.number("evicted_keys").unwrap_or(0);
    if let Some(doubt) = evicts {
        let keys = match evicted {
            0 => String::new(),
            _ => format!("; {} evicted since the start", count(evicted, "key")),
        };
        return Line::doubtful(MEMORY, format!("{text}: {doubt}{keys}"))
            .cure("CONFIG SET maxmemory-policy noeviction");
    }
    if 0 < limit && limit.saturating_mul(SHORT_PERCENT) / 100 <= used {
        return Line::doubtful(
            MEMORY,
            format!("{text}: at the limit no new lock is granted"),
        )
        .cure("raise maxmemory, or move other data away");
    }
    Line::ok(MEMORY, text)
}
