//! Parses the answers of sentinels and servers to discovery.

use quorlock_core::transport::{Cause, TransportError};
use redis::{ServerError, Value};

use crate::connect::Endpoint;
use crate::error;
use crate::failure;

/// A group, as one sentinel reports it.
#[derive(Debug)]
pub(crate) struct GroupView {
    pub(crate) primary: Endpoint,
    /// The configuration epoch, which grows with each failover; 0 if the sentinel does not report it.
    pub(crate) epoch: u64,
    /// How many sentinels must agree that the primary is down, if the sentinel reports it.
    pub(crate) quorum: Option<u32>,
    /// The other sentinels that it knows.
    pub(crate) others: Vec<Endpoint>,
}

/// Parses the primary: host and port, or nil for a name that the sentinel does not know.
///
/// # Errors
/// An error that states why there is no primary in the answer.
pub(crate) fn endpoint(answer: &Value) -> Result<Endpoint, TransportError> {
    match answer {
        Value::Nil => Err(failure::definite(
            Cause::UnknownGroup,
            "it knows no primary of this name",
        )),
        Value::ServerError(refusal) => Err(refused(refusal)),
        Value::Array(parts) => match parts.as_slice() {
            [host, port] => endpoint_of(text(host), text(port)),
            _ => None,
        }
        .ok_or_else(no_answer),
        _ => Err(no_answer()),
    }
}

fn no_answer() -> TransportError {
    failure::definite(
        Cause::Protocol,
        "its answer is not the address of a primary: is it a sentinel?",
    )
}

fn refused(refusal: &ServerError) -> TransportError {
    let error = error::server(refusal);
    let is_unknown = refusal.code() == "ERR"
        && refusal
            .details()
            .is_some_and(|detail| detail.starts_with("unknown command"));
    match error.cause {
        Cause::NoAuth => failure::definite(
            Cause::NoAuth,
            "it requires a login (?sentinel_user=..&sentinel_password=.. in the address, or \
             RedisConfig::sentinel_login)",
        ),
        _ if is_unknown => failure::definite(
            Cause::Unsupported,
            "it is a server, not a sentinel (sentinels listen on port 26379 by default; a server is redis://..)",
        ),
        cause => failure::definite(cause, error.detail),
    }
}

/// Parses the group's configuration epoch from `SENTINEL MASTER`. Returns 0 if the user may not send that command.
pub(crate) fn epoch(answer: &Value) -> u64 {
    let epoch = field(answer, "config-epoch");
    epoch.and_then(|epoch| epoch.parse().ok()).unwrap_or(0)
}

/// Parses the group's quorum from `SENTINEL MASTER`.
pub(crate) fn quorum(answer: &Value) -> Option<u32> {
    field(answer, "quorum")?.parse().ok()
}

/// Parses the other sentinels from `SENTINEL SENTINELS`.
pub(crate) fn sentinels(answer: &Value) -> Vec<Endpoint> {
    let Value::Array(sentinels) = answer else {
        return Vec::new();
    };
    let endpoint = |sentinel| endpoint_of(field(sentinel, "ip"), field(sentinel, "port"));
    sentinels.iter().filter_map(endpoint).collect()
}

/// Parses a host name, an IPv4 address or an IPv6 address without brackets, as sentinels announce them.
fn endpoint_of(host: Option<&str>, port: Option<&str>) -> Option<Endpoint> {
    let host = host.filter(|host| !host.is_empty())?;
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let port = port?.parse().ok().filter(|port| *port != 0)?;
    Some(Endpoint::Tcp { host, port })
}

/// Returns the value after a name, in a list of names and values.
fn field<'a>(answer: &'a Value, name: &str) -> Option<&'a str> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let mut pairs = parts.chunks_exact(2);
    pairs.find_map(|pair| match pair {
        [key, value] if text(key) == Some(name) => text(value),
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

/// Checks by `ROLE` that a server is a primary. If the user may not use `ROLE`, the check passes: a replica refuses
/// writes in any case.
///
/// # Errors
/// A definite error if the server is a replica, or not ready.
pub(crate) fn must_be_primary(answer: &Value) -> Result<(), TransportError> {
    let role = match answer {
        Value::Array(parts) => parts.first().and_then(text),
        Value::ServerError(refusal) => {
            let error = error::server(refusal);
            return match error.cause {
                Cause::NoPermission | Cause::Unsupported => Ok(()),
                cause => Err(failure::definite(cause, error.detail)),
            };
        }
        _ => None,
    };
    match role {
        Some("master") => Ok(()),
        role => {
            let role = role.unwrap_or("missing");
            let detail = format!("its ROLE is {role}");
            Err(failure::definite(Cause::NoPrimary, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(wire: &str) -> Value {
        redis::parse_redis_value(wire.as_bytes()).unwrap()
    }

    fn words(words: &[&str]) -> Value {
        let words = words.iter().map(|w| Value::BulkString(w.as_bytes().into()));
        Value::Array(words.collect())
    }

    #[test]
    fn a_primary_is_a_host_of_any_kind_and_a_port() {
        for (host, shown) in [
            ("10.0.0.7", "10.0.0.7:6379"),
            ("db-1.example.org", "db-1.example.org:6379"),
            ("fd00::7", "[fd00::7]:6379"),
            ("[fd00::7]", "[fd00::7]:6379"),
        ] {
            let endpoint = endpoint(&words(&[host, "6379"])).unwrap();
            assert_eq!(endpoint.to_string(), shown);
        }
        for strange in [
            words(&["h"]),
            words(&["h", "x"]),
            words(&["h", "0"]),
            words(&["", "6379"]),
            words(&["h", "1", "2"]),
            Value::Okay,
            Value::Int(3),
        ] {
            let error = endpoint(&strange).unwrap_err();
            assert_eq!(error.cause, Cause::Protocol, "{strange:?}");
        }
    }

    #[test]
    fn a_sentinel_that_does_not_say_tells_why() {
        for (wire, cause, says) in [
            (
                "*-1\r\n",
                Cause::UnknownGroup,
                "knows no primary of this name",
            ),
            (
                "$-1\r\n",
                Cause::UnknownGroup,
                "knows no primary of this name",
            ),
            (
                "-NOAUTH Authentication required.\r\n",
                Cause::NoAuth,
                "sentinel_password=",
            ),
            (
                "-ERR unknown command `SENTINEL`, with args beginning with: `x`\r\n",
                Cause::Unsupported,
                "a server, not a sentinel",
            ),
            (
                "-NOPERM this user has no permissions to run the 'sentinel|get-master-addr-by-name' command\r\n",
                Cause::NoPermission,
                "NOPERM",
            ),
        ] {
            let error = endpoint(&parsed(wire)).unwrap_err();
            assert_eq!(error.cause, cause, "{wire}");
            assert!(error.detail.contains(says), "{error}");
        }
    }

    #[test]
    fn other_sentinels_and_the_epoch_are_told_where_the_user_may_ask() {
        let state = words(&["name", "m", "config-epoch", "7", "flags", "master"]);
        assert_eq!(epoch(&state), 7);
        let denied = parsed("-NOPERM no\r\n");
        assert_eq!(epoch(&denied), 0);
        let others = Value::Array(vec![
            words(&["name", "a1", "ip", "::1", "port", "26380"]),
            words(&["name", "a2", "ip", "h", "port", "none"]),
            words(&["name", "a3", "ip", "h3", "port", "26379"]),
        ]);
        let others = sentinels(&others);
        let shown: Vec<_> = others.iter().map(Endpoint::to_string).collect();
        assert_eq!(shown, ["[::1]:26380", "h3:26379"]);
        assert!(sentinels(&denied).is_empty());
    }

    #[test]
    fn a_server_must_say_that_it_is_a_primary() {
        let primary = "*3\r\n$6\r\nmaster\r\n:7\r\n*0\r\n";
        assert_eq!(must_be_primary(&parsed(primary)), Ok(()));
        let denied = "-NOPERM this user has no permissions to run the 'role' command\r\n";
        assert_eq!(must_be_primary(&parsed(denied)), Ok(()));
        for (wire, cause) in [
            ("*1\r\n$5\r\nslave\r\n", Cause::NoPrimary),
            ("*1\r\n$8\r\nsentinel\r\n", Cause::NoPrimary),
            ("+OK\r\n", Cause::NoPrimary),
            ("-LOADING Redis is loading\r\n", Cause::Loading),
            ("-NOAUTH Authentication required.\r\n", Cause::NoAuth),
        ] {
            let error = must_be_primary(&parsed(wire)).unwrap_err();
            assert_eq!(error.cause, cause, "{wire}");
        }
    }
}
