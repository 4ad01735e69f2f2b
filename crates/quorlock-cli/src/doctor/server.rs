//! The lines about one Redis server, and about the sentinels of its group.

mod load;
mod storage;
mod timing;

use quorlock::operate::{Limits, RightsFacts, SentinelFacts, ServerFacts};
use quorlock::redis::Doubt;
use quorlock::transport::TransportError;

pub(super) use self::timing::{of_offset, of_round_trips};
use super::line::{Level, Line};
use super::show::{count, span};

/// What the deployment says about how much a fact of one server matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    /// The number of nodes.
    pub(super) of: usize,
    pub(super) limits: &'a Limits,
    /// Whether the node can be used.
    pub(super) is_usable: bool,
    pub(super) is_of_cluster: bool,
    pub(super) is_of_group: bool,
    /// Whether a lock was acquired and released.
    pub(super) is_tried: bool,
}

impl Setting<'_> {
    /// Whether a single node decides, which is not watched by default.
    pub(super) fn is_single(&self) -> bool {
        self.of == 1
    }
}

/// The fields of `INFO`.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a ServerFacts);

impl<'a> Fields<'a> {
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.0.info.get(name).map(String::as_str)
    }

    pub(super) fn number(self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Whether `INFO` could be read.
    pub(super) fn are_known(self) -> bool {
        !self.0.info.is_empty()
    }
}

/// Judges a server.
pub(super) fn lines(
    facts: &Result<ServerFacts, TransportError>,
    setting: &Setting<'_>,
) -> Vec<Line> {
    let facts = match facts {
        Ok(facts) => facts,
        // The line of the node says it in more words.
        Err(_) if !setting.is_usable => return Vec::new(),
        Err(error) if error.cause.may_pass() => {
            return vec![Line::new("connection", Level::Absent, error.to_string())];
        }
        Err(error) => {
            return vec![Line::new(
                "connection",
                Level::Misconfigured,
                error.to_string(),
            )];
        }
    };
    let mut lines = Vec::new();
    if setting.is_usable {
        let (took, user) = (span(facts.connected_in), &facts.user);
        let text = format!("connected in {took}, as the user {user}");
        lines.push(Line::ok("connection", text));
    }
    let fields = Fields(facts);
    lines.extend(unread(facts));
    if fields.are_known() {
        lines.push(version(fields));
        lines.push(storage::role(facts, fields, setting));
        lines.push(storage::persistence(facts, fields, setting));
        lines.push(storage::memory(facts, fields));
    }
    if setting.is_usable {
        lines.push(rights(&facts.rights, setting));
        lines.extend(wake_ups(facts));
    }
    lines.extend(timing::clock(facts, setting.limits));
    lines.extend(of_round_trips(&facts.round_trips, setting.limits));
    lines.extend(load::slow_log(facts, setting.limits));
    lines.extend(load::connections(fields));
    if setting.is_of_cluster {
        lines.push(load::coverage(facts, setting));
    }
    lines
}

/// What the user may not read: the lines about it are missing, or less certain.
fn unread(facts: &ServerFacts) -> Option<Line> {
    let names: Vec<&str> = facts.unread.iter().map(|(name, _)| *name).collect();
    if names.is_empty() {
        return None;
    }
    let text = format!(
        "{} cannot be read: what it says is not judged here",
        names.join(", ")
    );
    let mut line = match names.contains(&"INFO") {
        true => Line::doubtful("report", text),
        false => Line::ok("report", text),
    };
    line.cures = facts
        .unread
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    Some(line)
}

/// The programs that name themselves in `INFO`: the field of their version, the name, and whether the tests run on them.
const PROGRAMS: [(&str, &str, bool); 3] = [
    ("valkey_version", "Valkey", true),
    ("dragonfly_version", "Dragonfly", false),
    ("garnet_version", "Garnet", false),
];

fn version(fields: Fields<'_>) -> Line {
    const VERSION: &str = "version";
    let known = PROGRAMS.iter();
    let mut known =
        known.filter_map(|(field, name, is_run)| Some((fields.text(field)?, *name, *is_run)));
    let redis = || {
        (
            fields.text("redis_version").unwrap_or("unknown"),
            "Redis",
            true,
        )
    };
    let (number, name, is_run) = known.next().unwrap_or_else(redis);
    let text = format!("{name} {number}");
    match is_run {
        true => Line::ok(VERSION, text),
        false => Line::doubtful(
            VERSION,
            format!("{text}: the tests of Quorlock do not run on it"),
        )
        .cure("see the page \"Servers and services that speak Redis\" of the book"),
    }
}

fn rights(rights: &RightsFacts, setting: &Setting<'_>) -> Line {
    const RIGHTS: &str = "rights";
    let told = match rights {
        RightsFacts::Told(told) => told,
        RightsFacts::NotTold if setting.is_tried => {
            return Line::ok(
                RIGHTS,
                "a lock was acquired; a server before Redis 7 does not tell more",
            );
        }
        RightsFacts::NotTold => {
            return Line::doubtful(
                RIGHTS,
                "unknown: a server before Redis 7 does not tell what a user lacks",
            );
        }
        RightsFacts::Refused(why) => return lacking(Level::Misconfigured, RIGHTS, why),
    };
    if let Some(why) = &told.to_lock {
        return lacking(Level::Misconfigured, RIGHTS, why);
    }
    let beyond: Vec<&str> = told.beyond.iter().map(|(name, _)| *name).collect();
    if beyond.is_empty() {
        return Line::ok(RIGHTS, "all that locks need");
    }
    let mut line = Line::ok(
        RIGHTS,
        format!("all that plain locks need; not for {}", beyond.join(", ")),
    );
    for (name, why) in &told.beyond {
        line = line.cure(format!("for {name}: {}", rule(why).unwrap_or(why)));
    }
    line
}

/// Whether waiters are woken.
fn wake_ups(facts: &ServerFacts) -> Option<Line> {
    const WAKE_UPS: &str = "wake-ups";
    if let RightsFacts::Told(told) = &facts.rights
        && let Some(why) = &told.to_wake
    {
        return Some(lacking(Level::Doubtful, WAKE_UPS, why));
    }
    let doubt = facts
        .doubts
        .iter()
        .find(|doubt| **doubt == Doubt::MayNotSubscribe)?;
    Some(Line::doubtful(WAKE_UPS, doubt.to_string()))
}

/// A line about missing rights, with the rule that grants them apart.
fn lacking(level: Level, subject: &'static str, why: &str) -> Line {
    match rule(why) {
        None => Line::new(subject, level, why),
        Some(rule) => {
            let text = why.strip_suffix(rule).unwrap_or(why).trim_end_matches(": ");
            Line::new(subject, level, text).cure(rule)
        }
    }
}

/// The command in a text that grants what is missing.
fn rule(why: &str) -> Option<&str> {
    why.find("ACL SETUSER").and_then(|at| why.get(at..))
}

/// Judges what the sentinels of a group say.
pub(super) fn of_sentinels(sentinels: &[SentinelFacts]) -> Option<Line> {
    const SENTINELS: &str = "sentinels";
    let answers: Vec<(&str, Option<u32>)> = sentinels
        .iter()
        .filter_map(|sentinel| Some((sentinel.primary.as_deref().ok()?, sentinel.quorum)))
        .collect();
    let of = sentinels.len();
    let (first, quorum) = match answers.first() {
        Some(first) => *first,
        None if of == 0 => return None,
        None => {
            let mut line = Line::new(SENTINELS, Level::Absent, format!("none of {of} answers"));
            line.cures = silent(sentinels);
            return Some(line);
        }
    };
    let quorum = quorum.map_or_else(String::new, |quorum| format!(", quorum {quorum}"));
    let text = format!("{} of {of} answer{quorum}, and name {first}", answers.len());
    if answers.iter().any(|(primary, _)| *primary != first) {
        let told = sentinels.iter().map(|s| {
            format!(
                "{} names {}",
                s.address,
                s.primary.as_deref().unwrap_or("none")
            )
        });
        let mut line = Line::doubtful(SENTINELS, format!("{text}, but they do not agree"));
        line.cures = told.collect();
        return Some(line);
    }
    // A failover needs the votes of most sentinels that are known.
    if answers.len() < of / 2 + 1 {
        let mut line = Line::doubtful(SENTINELS, format!("{text}: too few for a failover"));
        line.cures = silent(sentinels);
        return Some(line);
    }
    if of < 3 {
        let few = count(of as u64, "sentinel");
        return Some(
            Line::doubtful(
                SENTINELS,
                format!("{text}: with {few}, no failover happens while one is down"),
            )
            .cure("run three sentinels on machines of their own"),
        );
    }
    let mut line = Line::ok(SENTINELS, text);
    line.cures = silent(sentinels);
    Some(line)
}

/// Why sentinels do not answer.
fn silent(sentinels: &[SentinelFacts]) -> Vec<String> {
    let silent = sentinels.iter().filter_map(|sentinel| {
        let why = sentinel.primary.as_ref().err()?;
        Some(format!("{}: {why}", sentinel.address))
    });
    silent.collect()
}

#[cfg(test)]
mod tests;
