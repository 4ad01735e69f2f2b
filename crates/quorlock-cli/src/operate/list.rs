//! `quorlock list`.

use std::collections::BTreeSet;
#[cfg(feature = "tls")]
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use quorlock::{Found, Inspection, Name, Summary, Ttl};

use super::{json, print, with_locks};
use crate::failure::{Code, Failure};
use crate::settings::{Reach, TlsFiles};
use crate::voice::Voice;

/// List the names that are held, their owners, and how long each is held if it is not renewed.
///
/// The servers are read by SCAN, in many small steps, never by KEYS; their users need +scan and +pttl for it. Names
/// that are acquired or released in the meantime may be missing.
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

/// How many keys a server examines in one step.
const STEP: usize = 500;

/// How many names are inspected at once.
const AT_ONCE: usize = 32;

/// How long a server may take for one step.
const PATIENCE: Duration = Duration::from_secs(5);

impl List {
    pub(crate) fn run(&self) -> Code {
        with_locks(&self.reach, |locks, settings| async move {
            let prefix = settings.key_prefix.as_str();
            let pattern = format!("{}{}", literal(prefix), self.pattern);
            let addresses = settings.addresses_with_password()?;
            let scans = addresses
                .iter()
                .map(|node| scan(node, &settings.tls, &pattern));
            let mut names = BTreeSet::new();
            let mut failed = 0;
            for scanned in join_all(scans).await {
                match scanned {
                    Ok(found) => names.extend(found),
                    Err(failure) => {
                        failed += 1;
                        Voice::Text.failure(&failure);
                    }
                }
            }
            if failed == settings.addresses.len() {
                return Ok(Code::UNAVAILABLE);
            }
            let names = names.iter().filter_map(|key| key.strip_prefix(prefix));
            // A key that cannot be a name stores other data of a lock or of a server.
            let names: Vec<&str> = names.filter(|name| Name::new(name).is_ok()).collect();
            if !self.json {
                print(&row(
                    ["NAME", "STATE", "OWNER", "LEFT", "TOKEN", "WAITING"].map(String::from)
                ))?;
            }
            for names in names.chunks(AT_ONCE) {
                let inspections = names.iter().map(|name| locks.inspect(name));
                for inspection in join_all(inspections).await {
                    let inspection = inspection?;
                    match inspection.summary() {
                        Summary::Free | Summary::Obstructed => {}
                        _ if self.json => print(&json::inspection(&inspection).to_string())?,
                        summary => print(&line(&inspection, &summary))?,
                    }
                }
            }
            Ok(Code::SUCCESS)
        })
    }
}

/// Returns the keys of one server that may be claims: those that expire.
async fn scan(address: &str, tls: &TlsFiles, pattern: &str) -> Result<Vec<String>, Failure> {
    let failed = |error: redis::RedisError| {
        let detail = error
            .detail()
            .map_or_else(|| error.to_string(), String::from);
        Failure::new(
            Code::UNAVAILABLE,
            format!("SCAN of one of the servers: {detail}"),
        )
    };
    let client = client(address, tls)?.map_err(failed)?;
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let connected = client.get_multiplexed_async_connection_with_config(&config);
    let mut connection = connected.await.map_err(failed)?;
    let mut keys = Vec::new();
    let mut cursor = 0_u64;
    loop {
        let mut step = redis::cmd("SCAN");
        step.arg(cursor)
            .arg("MATCH")
            .arg(pattern)
            .arg("COUNT")
            .arg(STEP);
        let step: (u64, Vec<Vec<u8>>) = step.query_async(&mut connection).await.map_err(failed)?;
        let (next, found) = step;
        let found = found
            .into_iter()
            .filter_map(|key| String::from_utf8(key).ok());
        let found: Vec<String> = found.collect();
        if !found.is_empty() {
            let mut looks = redis::pipe();
            for key in &found {
                looks.cmd("PTTL").arg(key);
            }
            let left: Vec<i64> = looks.query_async(&mut connection).await.map_err(failed)?;
            let found = found.into_iter().zip(left);
            keys.extend(found.filter(|(_, left)| 0 < *left).map(|(key, _)| key));
        }
        cursor = next;
        if cursor == 0 {
            return Ok(keys);
        }
    }
}

/// Returns a client of one server, with these certificates if its address uses TLS.
#[cfg(feature = "tls")]
fn client(address: &str, files: &TlsFiles) -> Result<redis::RedisResult<redis::Client>, Failure> {
    let is_tls = address.starts_with("rediss:") || address.starts_with("valkeys:");
    if !is_tls {
        return Ok(redis::Client::open(address));
    }
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|error| {
            Failure::config(format!("{}: cannot be read: {error}", path.display()))
        })
    };
    let client_tls = match (&files.tls_cert, &files.tls_key) {
        (Some(certificate), Some(key)) => Some(redis::ClientTlsConfig {
            client_cert: read(certificate)?,
            client_key: read(key)?,
        }),
        _ => None,
    };
    let root_cert = files.tls_ca.as_ref().map(read).transpose()?;
    let certificates = redis::TlsCertificates {
        client_tls,
        root_cert,
    };
    Ok(redis::Client::build_with_tls(address, certificates))
}

/// Returns a client of one server.
#[cfg(not(feature = "tls"))]
fn client(address: &str, _: &TlsFiles) -> Result<redis::RedisResult<redis::Client>, Failure> {
    Ok(redis::Client::open(address))
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
    ])
}

fn row([name, state, owner, left, token, waiting]: [String; 6]) -> String {
    format!("{name:<32} {state:<10} {owner:<40} {left:>8} {token:>16} {waiting:>7}")
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
