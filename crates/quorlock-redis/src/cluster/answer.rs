//! Parses what the nodes of a cluster answer about slots.

use quorlock_core::slot::Slot;
use quorlock_core::transport::{Cause, TransportError};
use redis::{ServerError, Value};

use crate::connect::Endpoint;
use crate::error;
use crate::failure;
use crate::keyslot::SLOTS;

/// The maximum number of replicas that are recorded from an answer.
const MOST_NODES: usize = 1_024;

/// A range of slots that one node owns.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) owner: Endpoint,
}

/// The slot map and the replicas, as one node reports them.
#[derive(PartialEq, Eq, Debug, Default)]
pub(crate) struct ClusterView {
    pub(crate) shares: Vec<Share>,
    /// Replicas of the owners.
    pub(crate) replicas: Vec<Endpoint>,
}

/// Parses the answer of the node `asked` to `CLUSTER SLOTS`.
///
/// # Errors
/// An error that states why the answer does not parse, or that it names no owner.
pub(crate) fn slots(answer: &Value, asked: &Endpoint) -> Result<ClusterView, TransportError> {
    let entries = match answer {
        Value::Array(entries) => entries,
        Value::ServerError(refusal) => return Err(refused(refusal)),
        _ => return Err(no_answer()),
    };
    let mut told = ClusterView::default();
    for entry in entries {
        let Value::Array(parts) = entry else {
            return Err(no_answer());
        };
        let [Value::Int(first), Value::Int(last), owner, replicas @ ..] = parts.as_slice() else {
            return Err(no_answer());
        };
        let number = |number: &i64| u16::try_from(*number).ok().filter(|slot| *slot < SLOTS);
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(no_answer());
        };
        // Another node may know the address of an owner that this node does not know.
        if let Some(owner) = node(owner, asked) {
            told.shares.push(Share { first, last, owner });
        }
        let replicas = replicas.iter().filter_map(|replica| node(replica, asked));
        for replica in replicas {
            if told.replicas.len() < MOST_NODES && !told.replicas.contains(&replica) {
                told.replicas.push(replica);
            }
        }
    }
    if told.shares.is_empty() {
        return Err(failure::definite(
            Cause::Cluster,
            "it knows no owner of any slot: was the cluster created (redis-cli --cluster create)?",
        ));
    }
    Ok(told)
}

fn no_answer() -> TransportError {
    failure::definite(
        Cause::Protocol,
        "its answer to CLUSTER SLOTS is not a list of slots",
    )
}

fn refused(refusal: &ServerError) -> TransportError {
    let error = error::server(refusal);
    let detail = refusal.details().unwrap_or_default();
    let is_in_none =
        detail.contains("cluster support disabled") || detail.starts_with("unknown command");
    match error.cause {
        Cause::NoPermission => failure::definite(
            Cause::NoPermission,
            "the user may not use CLUSTER SLOTS: grant +cluster|slots",
        ),
        _ if is_in_none => failure::definite(
            Cause::Unsupported,
            "it is not a cluster node: write redis:// for a single server, redis+sentinel:// for a Sentinel group",
        ),
        cause => failure::definite(cause, error.detail),
    }
}

/// Parses host, port, id, and since Redis 7 a list of names and values. An empty or missing host means the queried node.
fn node(answer: &Value, asked: &Endpoint) -> Option<Endpoint> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let [host, Value::Int(port), rest @ ..] = parts.as_slice() else {
        return None;
    };
    let port = u16::try_from(*port).ok().filter(|port| *port != 0)?;
    let host = match host {
        Value::Nil => "",
        host => text(host)?,
    };
    let host = match host {
        "" => host_of(asked)?,
        // The node is configured to announce a host name, but has none.
        "?" => match rest.iter().find_map(address)? {
            "" => host_of(asked)?,
            ip => bare(ip),
        },
        host => bare(host),
    };
    Some(Endpoint::Tcp {
        host: host.to_owned(),
        port,
    })
}

/// Returns the value of `ip` in a list of names and values.
fn address(list: &Value) -> Option<&str> {
    let Value::Array(parts) = list else {
        return None;
    };
    let mut pairs = parts.chunks_exact(2);
    pairs.find_map(|pair| match pair {
        [key, value] if text(key) == Some("ip") => text(value),
        _ => None,
    })
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

fn host_of(endpoint: &Endpoint) -> Option<&str> {
    match endpoint {
        Endpoint::Tcp { host, .. } => Some(host),
        Endpoint::Unix { .. } => None,
    }
}

/// Removes the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Parses the target of a `MOVED` or `ASK`: `3999 127.0.0.1:6381`. `None` if the node does not know it.
pub(crate) fn redirect(words: &str, by: &Endpoint) -> Option<(Slot, Endpoint)> {
    let (slot, place) = words.split_once(' ')?;
    let slot = slot.parse().ok().filter(|slot| *slot < SLOTS)?;
    let (host, port) = place.trim_end().rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let host = match host {
        "" => host_of(by)?,
        "?" => return None,
        host => bare(host),
    };
    let host = host.to_owned();
    Some((Slot(slot), Endpoint::Tcp { host, port }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Endpoint {
        endpoint("h1", 7000)
    }

    fn endpoint(host: &str, port: u16) -> Endpoint {
        let host = host.to_owned();
        Endpoint::Tcp { host, port }
    }

    fn parsed(wire: &str) -> Value {
        redis::parse_redis_value(wire.as_bytes()).unwrap()
    }

    fn word(word: &str) -> Value {
        Value::BulkString(word.as_bytes().into())
    }

    fn server(host: Value, port: i64, rest: &[&str]) -> Value {
        let rest = Value::Array(rest.iter().map(|w| word(w)).collect());
        Value::Array(vec![host, Value::Int(port), word("id"), rest])
    }

    fn share(first: i64, last: i64, servers: Vec<Value>) -> Value {
        let mut parts = vec![Value::Int(first), Value::Int(last)];
        parts.extend(servers);
        Value::Array(parts)
    }

    #[test]
    fn owners_are_named_in_every_way_that_servers_have() {
        for (host, rest, named) in [
            (word("10.0.0.7"), vec![], Some("10.0.0.7")),
            (word("db-1.example.org"), vec![], Some("db-1.example.org")),
            (word("fd00::7"), vec![], Some("fd00::7")),
            (word("[fd00::7]"), vec![], Some("fd00::7")),
            (word(""), vec![], Some("h1")),
            (Value::Nil, vec![], Some("h1")),
            (
                word("?"),
                vec!["hostname", "", "ip", "10.0.0.8"],
                Some("10.0.0.8"),
            ),
            (word("?"), vec!["ip", ""], Some("h1")),
            (word("?"), vec![], None),
            (Value::Int(1), vec![], None),
        ] {
            let known = server(word("h9"), 7009, &[]);
            let answer = Value::Array(vec![
                share(0, 5, vec![server(host.clone(), 7001, &rest)]),
                share(6, 16_383, vec![known.clone(), server(host, 7002, &rest)]),
            ]);
            let told = slots(&answer, &asked()).unwrap();
            let owner = |share: &Share| (share.first, share.last, share.owner.clone());
            let mut owners: Vec<_> = told.shares.iter().map(owner).collect();
            assert_eq!(owners.pop(), Some((6, 16_383, endpoint("h9", 7009))));
            let first = named.map(|host| (0, 5, endpoint(host, 7001)));
            assert_eq!(owners.pop(), first);
            let replicas: Vec<_> = named.map(|host| endpoint(host, 7002)).into_iter().collect();
            assert_eq!(told.replicas, replicas);
        }
    }

    #[test]
    fn a_node_that_does_not_say_tells_why() {
        for (wire, cause, says) in [
            ("*0\r\n", Cause::Cluster, "--cluster create"),
            (
                "-ERR This instance has cluster support disabled\r\n",
                Cause::Unsupported,
                "not a cluster node",
            ),
            (
                "-ERR unknown command `CLUSTER`, with args\r\n",
                Cause::Unsupported,
                "not a cluster node",
            ),
            (
                "-NOPERM this user has no permissions to run the 'cluster|slots' command\r\n",
                Cause::NoPermission,
                "+cluster|slots",
            ),
            ("-LOADING Redis is loading\r\n", Cause::Loading, "LOADING"),
            ("+OK\r\n", Cause::Protocol, "not a list of slots"),
            ("*1\r\n:1\r\n", Cause::Protocol, "not a list of slots"),
            (
                "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n",
                Cause::Protocol,
                "not a list of slots",
            ),
            (
                "*1\r\n*3\r\n:-1\r\n:7\r\n*2\r\n$1\r\nh\r\n:1\r\n",
                Cause::Protocol,
                "not a list of slots",
            ),
        ] {
            let error = slots(&parsed(wire), &asked()).unwrap_err();
            assert_eq!(error.cause, cause, "{wire}");
            assert!(error.detail.contains(says), "{error}");
        }
    }

    #[test]
    fn a_redirect_names_a_slot_and_a_place() {
        for (words, place) in [
            ("3999 127.0.0.1:6381", Some((3999, "127.0.0.1", 6381))),
            ("3999 :6381", Some((3999, "h1", 6381))),
            ("0 fd00::7:6381", Some((0, "fd00::7", 6381))),
            ("0 [fd00::7]:6381", Some((0, "fd00::7", 6381))),
            ("16383 host.example:1", Some((16_383, "host.example", 1))),
            ("16384 h:1", None),
            ("1 ?:6381", None),
            ("1 h:0", None),
            ("1 h:x", None),
            ("1 h", None),
            ("h:1", None),
            ("", None),
        ] {
            let place = place.map(|(slot, host, port)| (Slot(slot), endpoint(host, port)));
            assert_eq!(redirect(words, &asked()), place, "{words}");
        }
    }
}
