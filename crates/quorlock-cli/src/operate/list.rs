//! `quorlock list`.

use std::collections::BTreeSet;

use clap::Args;
use futures_util::future::join_all;
use quorlock::Name;
use quorlock::operate::{Found, Inspection, Summary, Ttl};

use super::{json, pattern, print, with_locks};
use crate::failure::{Code, Failure};
use crate::messages::Voice;
use crate::settings::Reach;

/// List the names that are held, their owners, and how long each stays held without a renewal.
///
/// Redis servers are read with SCAN, in many small steps, and never with KEYS; the user needs +scan and +pttl. Reads
/// the primary of a Sentinel group, every primary of a Redis Cluster, and the table of a database. Names that are acquired or released in the
/// meantime may be missing. Exits with 69 if names may be missing because servers did not answer, and with 78 if names
/// may be missing because a login or a right is missing.
#[derive(Clone, Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    reach: Reach,
    /// Print one line of JSON for each name.
    #[arg(long)]
    json: bool,
    /// Names to list, as a Redis pattern: * matches any text, ? one character, [ab] one of these characters.
    #[arg(default_value = "*")]
    pattern: String,
}

/// How many names are inspected at once.
const AT_ONCE: usize = 32;

impl List {
    pub(crate) fn run(&self) -> Code {
        with_locks(&self.reach, |locks, settings| async move {
            let pattern = literal(&settings.key_prefix) + &self.pattern;
            let scans = settings.builder.scan(&settings.addresses, &pattern).await?;
            let members = scans.len();
            let mut keys = BTreeSet::new();
            let mut failures = Vec::new();
            for scan in scans {
                let servers = match scan {
                    Ok(servers) => servers,
                    Err(problem) => {
                        failures.push(Failure::new(code(!problem.is_final()), problem.to_string()));
                        continue;
                    }
                };
                let mut failure = None;
                for server in servers {
                    match server.names {
                        Ok(names) => keys.extend(names),
                        Err(error) => {
                            let text = format!("{}: no list of names: {error}", server.address);
                            failure = Some(Failure::new(code(error.cause.may_pass()), text));
                        }
                    }
                }
                failures.extend(failure);
            }
            // A store has returned names of any kind.
            let pattern = literal(&settings.namespace) + &pattern;
            let prefix = settings.namespace + &settings.key_prefix;
            keys.retain(|key| pattern::matches(pattern.as_bytes(), key.as_bytes()));
            let names = keys.iter().map(Name::as_bytes);
            let names: Vec<_> = names
                .filter_map(|key| key.strip_prefix(prefix.as_bytes()))
                .collect();
            if !self.json {
                print(&row([
                    "NAME", "STATE", "OWNER", "LEFT", "TOKEN", "WAITING", "CLIENT",
                ]
                .map(String::from)))?;
            }
            for names in names.chunks(AT_ONCE) {
                let inspections = names.iter().map(|name| locks.inspect(name));
                // A name that these servers cannot have is a key of another program.
                let inspections = join_all(inspections).await.into_iter();
                for inspection in inspections.filter_map(Result::ok) {
                    match inspection.summary() {
                        Summary::Free | Summary::Obstructed => {}
                        _ if self.json => print(&json::inspection(&inspection).to_string())?,
                        summary => print(&line(&inspection, &summary))?,
                    }
                }
            }
            Ok(told(&failures, members))
        })
    }
}

/// Returns the code of a failure that may pass, or of one that does not.
fn code(may_pass: bool) -> Code {
    match may_pass {
        true => Code::UNAVAILABLE,
        false => Code::CONFIG,
    }
}

/// Reports the failures of members. Returns the exit code: a failure of a minority hides no name, since a majority
/// stores it.
fn told(failures: &[Failure], members: usize) -> Code {
    for failure in failures {
        Voice::Text.failure(failure);
    }
    let needed = members / 2 + 1;
    match failures.first() {
        Some(first) if needed <= failures.len() => {
            let text = "names may be missing from this list: try again when the servers answer";
            Voice::Text.failure(&Failure::new(first.code, text));
            first.code
        }
        _ => Code::SUCCESS,
    }
}

/// Returns a pattern that matches only this text.
fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for character in text.chars() {
        if "*?[]\\^-".contains(character) {
            literal.push('\\');
        }
        literal.push(character);
    }
    literal
}

fn line(inspection: &Inspection, summary: &Summary) -> String {
    let replies = inspection.nodes.iter();
    let replies: Vec<_> = replies
        .filter_map(|node| node.found.as_ref().ok())
        .collect();
    let left = replies.iter().filter_map(|reply| match reply.found {
        Found::Plain { ttl, .. } | Found::ReadWrite { ttl, .. } => Some(ttl),
        _ => None,
    });
    let left = left.map(|ttl| match ttl {
        Ttl::Millis(millis) => millis,
        Ttl::Unbounded => u64::MAX,
    });
    let left = match left.max() {
        None => "-".to_owned(),
        Some(u64::MAX) => "for ever".to_owned(),
        Some(millis) => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
    };
    let token = replies.iter().filter_map(|reply| reply.token).max();
    let readers = replies.iter().map(|reply| match reply.found {
        Found::ReadWrite { readers, .. } => readers,
        _ => 0,
    });
    let owner = match summary {
        Summary::Held { owner, .. } => owner.clone(),
        Summary::Read { .. } => format!("{} readers", readers.max().unwrap_or(0)),
        _ => "-".to_owned(),
    };
    let waiting = replies.iter().map(|reply| reply.waiting).max();
    row([
        inspection.name.to_string(),
        json::word(summary).to_owned(),
        owner,
        left,
        token.map_or_else(|| "-".to_owned(), |token| token.0.to_string()),
        waiting.unwrap_or(0).to_string(),
        inspection.client().unwrap_or_default().to_owned(),
    ])
}

fn row([name, state, owner, left, token, waiting, client]: [String; 7]) -> String {
    let row =
        format!("{name:<32} {state:<10} {owner:<40} {left:>8} {token:>16} {waiting:>7} {client}");
    row.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_taken_to_the_letter() {
        assert_eq!(literal("app:"), "app:");
        assert_eq!(literal("a*[b]?\\"), "a\\*\\[b\\]\\?\\\\");
    }
}
