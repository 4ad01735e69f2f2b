//! Classifies errors. An error is *definite* if the server always raises it before the first write of our scripts, or
//! if no connection was made. Every other error is *indeterminate*: if a client took it for a refusal, it could leave
//! behind a claim that no client releases.

use std::{fmt, io};

use quorlock_core::slot::{Slot, UnfitName};
use quorlock_core::transport::{Cause, Execution, TransportError};
use redis::{ServerError, Value};

use crate::resp::NoReply;

/// Classifies an error reply.
///
/// Redis 7 passes on an error that a command raises inside a script unchanged, with the place in the script appended
/// (`READONLY You can't write against a read only replica. script: <digest>, on @user_script:60.`). Earlier versions
/// reply `ERR Error running script (call to f_<digest>): @user_script:60: -READONLY You can't ...`.
pub(crate) fn server(error: &ServerError) -> TransportError {
    let detail = error.details().unwrap_or_default();
    reply(error.code(), detail)
}

fn reply(code: &str, detail: &str) -> TransportError {
    let inner = match code {
        "ERR" => raised_in_script(detail),
        // A script has caught the error and returned it.
        "@user_script:" => after_place(detail),
        _ => None,
    };
    let (cause, execution) = judge(inner.unwrap_or(code), detail);
    TransportError::new(
        execution,
        cause,
        match without_place(detail) {
            "" if code.is_empty() => "an error without words".to_owned(),
            "" => code.to_owned(),
            words => format!("{code} {words}"),
        },
    )
}

/// Removes the place in the script, which does not help a reader of the error.
fn without_place(detail: &str) -> &str {
    match detail.rsplit_once(" script: ") {
        Some((words, place)) if place.contains("@user_script") => words,
        _ => detail,
    }
}

/// Returns the code of the command that failed inside a script, as Redis 5 and 6 word it.
fn raised_in_script(detail: &str) -> Option<&str> {
    if !detail.starts_with("Error running script") {
        return None;
    }
    let (_, place) = detail.rsplit_once("@user_script:")?;
    after_place(place)
}

/// Returns the code of an error that begins with its place in a script: `60: -READONLY You can't ...`.
fn after_place(place: &str) -> Option<&str> {
    let text = place.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ' || c == ':');
    text.trim_start_matches('-').split(' ').next()
}

fn judge(code: &str, detail: &str) -> (Cause, Execution) {
    use Execution::{Definite, Indeterminate};
    match code {
        // A server that refuses writes refuses the first one of a script, so nothing was written. (Seen on 7.0.15:
        // OOM, READONLY, MISCONF and NOREPLICAS all name the line of the script's first write, and no key is
        // changed.) Once a script has written, it runs to its end whatever the memory limit is.
        "OOM" => (Cause::OutOfMemory, Definite),
        "READONLY" | "MASTERDOWN" => (Cause::ReadOnly, Definite),
        "MISCONF" => (Cause::Misconfigured, Definite),
        "NOREPLICAS" => (Cause::NoReplicas, Definite),
        // The scripts check the type of every key before their first write.
        "WRONGTYPE" => (Cause::WrongType, Definite),
        // Each of these refuses the whole call.
        "LOADING" => (Cause::Loading, Definite),
        "BUSY" => (Cause::Busy, Definite),
        "NOAUTH" | "WRONGPASS" => (Cause::NoAuth, Definite),
        "CLUSTERDOWN" | "MOVED" | "ASK" | "TRYAGAIN" | "CROSSSLOT" => (Cause::Cluster, Definite),
        "LONGESTLEASE" => (Cause::LongestLease, Definite),
        "NOSCRIPT" => (Cause::Server, Definite),
        // NOPERM is raised for the whole call (the command, or one of its keys), or for one command inside the
        // script, possibly after the script has written.
        "NOPERM" if detail.contains("script") => (Cause::NoPermission, Indeterminate),
        "NOPERM" => (Cause::NoPermission, Definite),
        // The same in the words of Redis 6. If the script has caught the error, its code is the place in the script.
        _ if detail.contains("The user executing the script can't")
            || detail.contains("ACL failure in script") =>
        {
            (Cause::NoPermission, Indeterminate)
        }
        // The script has made up the name of a key that is being moved, and may have written another key before.
        "ERR" if detail.contains("access a non local key in a cluster node") => {
            (Cause::Cluster, Indeterminate)
        }
        // Commands that the adapter sends itself, outside of scripts.
        "ERR" if detail.starts_with("unknown command") => (Cause::Unsupported, Definite),
        "ERR" if detail.starts_with("WAITAOF cannot be used") => (Cause::Unsupported, Definite),
        // From a client that is not logged in, a server with a password reads at most ten words. (Seen on 7.0.15.)
        "ERR" if detail.starts_with("Protocol error: unauthenticated") => (Cause::NoAuth, Definite),
        _ => (Cause::Server, Indeterminate),
    }
}

/// The connection ended while a request was in flight: the server may have executed it.
pub(crate) fn closed(why: impl fmt::Display) -> TransportError {
    TransportError::indeterminate(Cause::Closed, format!("the connection ended: {why}"))
}

/// The stream failed. The text of a TLS stream's error is kept.
pub(crate) fn broken(why: &io::Error) -> TransportError {
    let refusal = why.get_ref().and_then(|why| why.downcast_ref());
    match refusal {
        Some(TlsRefusal(words)) => TransportError::indeterminate(Cause::Tls, words.clone()),
        None => closed(why),
    }
}

/// The reason for which the server ended an encrypted connection before its first answer.
#[derive(Debug)]
struct TlsRefusal(String);

impl fmt::Display for TlsRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsRefusal {}

/// Makes the I/O error of a stream that the server ended before its first answer, because of TLS.
#[cfg(feature = "tls")]
pub(crate) fn of_tls(words: String) -> io::Error {
    io::Error::other(TlsRefusal(words))
}

/// The connection could not be encrypted.
#[cfg(feature = "tls")]
pub(crate) fn not_secured(why: &str) -> TransportError {
    TransportError::definite(Cause::Tls, why)
}

/// The server accepted the connection and did not answer the TLS handshake.
#[cfg(feature = "tls")]
pub(crate) fn no_tls_handshake() -> TransportError {
    TransportError::definite(
        Cause::TimedOut,
        "it accepted the connection and did not answer TLS within the connect time-out (a port without TLS does the same: give the TLS port, or write redis://)",
    )
}

/// The connection had ended before the request was sent.
pub(crate) fn closed_before(detail: &str) -> TransportError {
    TransportError::definite(Cause::Closed, format!("{detail}: nothing was sent"))
}

/// The bytes from the server cannot be a reply.
pub(crate) fn no_reply(what: &str) -> TransportError {
    TransportError::indeterminate(Cause::Protocol, format!("not understood: {what}"))
}

/// The decoder refused the bytes from the server.
pub(crate) fn refused_reply(why: NoReply) -> TransportError {
    no_reply(match why {
        NoReply::Malformed => "it is no Redis server",
        NoReply::Encrypted => "it is TLS: write rediss://, or give the port without TLS",
        NoReply::TooLong => "a reply of more than 16 MiB of memory",
        NoReply::TooDeep => "a reply with arrays nested in more than eight others",
    })
}

/// The server refused the password. Its error text may repeat the password, so it is not passed on.
pub(crate) fn not_logged_in(refusal: &ServerError) -> TransportError {
    let (cause, _) = judge(refusal.code(), refusal.details().unwrap_or_default());
    match cause {
        Cause::Loading | Cause::Busy => server(refusal).with_execution(Execution::Definite),
        _ => TransportError::definite(Cause::NoAuth, "the server refused the login"),
    }
}

/// The source of the credentials returned none.
pub(crate) fn no_credentials(why: &io::Error) -> TransportError {
    TransportError::definite(Cause::NoCredentials, why.to_string())
}

/// The server refused a `SELECT`.
pub(crate) fn no_such_database(refusal: &ServerError) -> TransportError {
    let error = server(refusal);
    let cause = match error.cause {
        Cause::Server => Cause::NoDatabase,
        other => other,
    };
    TransportError::definite(cause, error.detail)
}

/// No connection was made.
pub(crate) fn unreachable(detail: impl Into<String>) -> TransportError {
    TransportError::definite(Cause::Unreachable, detail.into())
}

/// The server ended an unencrypted connection before it could be used.
pub(crate) fn closed_at_once(detail: &str) -> TransportError {
    unreachable(format!(
        "{detail} (a port that speaks TLS ends a connection without it: if this is one, write rediss://)"
    ))
}

/// The server did not finish the handshake in time.
pub(crate) fn no_handshake() -> TransportError {
    TransportError::definite(Cause::TimedOut, "no connection within the connect time-out")
}

/// The time for the call was over before a connection was made.
pub(crate) fn not_sent() -> TransportError {
    TransportError::definite(
        Cause::TimedOut,
        "no connection within the call time-out: nothing was sent",
    )
}

/// The time for the call was over while earlier calls were in flight.
pub(crate) fn not_sent_in_time() -> TransportError {
    TransportError::definite(
        Cause::TimedOut,
        "the calls before it took as long as the call time-out: nothing was sent",
    )
}

/// No reply came in time: the server may have executed the request.
pub(crate) fn unanswered() -> TransportError {
    TransportError::indeterminate(Cause::TimedOut, "no reply within the call time-out")
}

/// No node of the cluster owns the slot.
pub(crate) fn no_owner(slot: Slot) -> TransportError {
    TransportError::definite(
        Cause::Cluster,
        format!("no node owns slot {slot}, in which the name lies: see CLUSTER INFO"),
    )
}

/// A name that a cluster cannot have.
pub(crate) fn unfit(name: &UnfitName) -> TransportError {
    TransportError::definite(Cause::Cluster, name.to_string())
}

/// The nodes of a cluster have redirected a request too many times.
pub(crate) fn redirected(times: u32, last: &ServerError) -> TransportError {
    let last = server(last);
    let detail = format!("refused {times} times, last with {:?}", last.detail);
    TransportError::new(last.execution, last.cause, detail)
}

/// A reply that the script never returns.
pub(crate) fn nonsense(answer: &Value) -> TransportError {
    let mut detail = format!("unexpected reply {answer:?}");
    if let Some((end, _)) = detail.char_indices().nth(200) {
        detail.truncate(end);
    }
    TransportError::indeterminate(Cause::Protocol, detail)
}

/// The key is a hash with an unknown `mode`: no lock, and nothing was written.
pub(crate) fn strange_mode(mode: &[u8]) -> TransportError {
    let mode: String = String::from_utf8_lossy(mode).chars().take(40).collect();
    TransportError::definite(
        Cause::WrongType,
        format!("the key is a hash with the unknown mode {mode:?}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(line: &str) -> (Cause, Execution) {
        let (code, detail) = line.split_once(' ').unwrap();
        let error = reply(code, detail);
        assert_eq!(error.detail, without_place(line));
        (error.cause, error.execution)
    }

    #[test]
    fn errors_before_the_first_write_are_definite() {
        for (line, cause) in [
            (
                "OOM command not allowed when used memory > 'maxmemory'. script: 6a1, on @user_script:1.",
                Cause::OutOfMemory,
            ),
            (
                "READONLY You can't write against a read only replica. script: 6a1, on @user_script:1.",
                Cause::ReadOnly,
            ),
            (
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
                Cause::ReadOnly,
            ),
            (
                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
                Cause::Misconfigured,
            ),
            (
                "NOREPLICAS Not enough good replicas to write.",
                Cause::NoReplicas,
            ),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value",
                Cause::WrongType,
            ),
            (
                "LOADING Redis is loading the dataset in memory",
                Cause::Loading,
            ),
            ("BUSY Redis is busy running a script.", Cause::Busy),
            ("NOAUTH Authentication required.", Cause::NoAuth),
            (
                "WRONGPASS invalid username-password pair or user is disabled.",
                Cause::NoAuth,
            ),
            (
                "NOPERM this user has no permissions to run the 'evalsha' command",
                Cause::NoPermission,
            ),
            (
                "ERR Protocol error: unauthenticated multibulk length",
                Cause::NoAuth,
            ),
            (
                "ERR unknown command 'WAITAOF', with args beginning with: '1' '0' '50'",
                Cause::Unsupported,
            ),
            (
                "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
                Cause::Unsupported,
            ),
            ("MOVED 3999 127.0.0.1:6381", Cause::Cluster),
            ("ASK 3999 127.0.0.1:6381", Cause::Cluster),
            (
                "TRYAGAIN Multiple keys request during rehashing of slot",
                Cause::Cluster,
            ),
            ("CLUSTERDOWN Hash slot not served", Cause::Cluster),
            (
                "CROSSSLOT Keys in request don't hash to the same slot",
                Cause::Cluster,
            ),
        ] {
            assert_eq!(judged(line), (cause, Execution::Definite), "{line}");
        }
    }

    #[test]
    fn errors_that_may_follow_a_write_are_indeterminate() {
        for (line, cause) in [
            ("ERR something new", Cause::Server),
            ("ODD something newer", Cause::Server),
            (
                "ERR ACL failure in script: User bob has no permissions to run the 'publish' command",
                Cause::NoPermission,
            ),
            (
                "NOPERM ACL failure in script: User bob has no permissions to run the 'publish' command",
                Cause::NoPermission,
            ),
            (
                "ERR Error running script (call to f_6a1): @user_script:9: Script killed by user with SCRIPT KILL...",
                Cause::Server,
            ),
            (
                "ERR Script attempted to access a non local key in a cluster node script: 6a1, on @user_script:9.",
                Cause::Cluster,
            ),
            (
                "ERR The user executing the script can't run this command or subcommand script: 6a1, on @user_script:22.",
                Cause::NoPermission,
            ),
            (
                "NOPERM User bob may not publish script: 6a1, on @user_script:22.",
                Cause::NoPermission,
            ),
        ] {
            assert_eq!(judged(line), (cause, Execution::Indeterminate), "{line}");
        }
    }

    #[test]
    fn the_wording_of_redis_5_and_6_is_understood() {
        for (line, cause) in [
            (
                "ERR Error running script (call to f_6a1): @user_script:9: WRONGTYPE Operation against a key",
                Cause::WrongType,
            ),
            (
                "ERR Error running script (call to f_6a1): @user_script:9: @user_script: 9: -OOM command not allowed when used memory > 'maxmemory'.",
                Cause::OutOfMemory,
            ),
            (
                "ERR Error running script (call to f_6a1): @user_script:9: @user_script: 9: -READONLY You can't write against a read only replica.",
                Cause::ReadOnly,
            ),
            (
                "@user_script: 9: -OOM command not allowed when used memory > 'maxmemory'.",
                Cause::OutOfMemory,
            ),
        ] {
            assert_eq!(judged(line), (cause, Execution::Definite), "{line}");
        }
        // The wording of 6.2.14: of a command whose error the script does not catch, and of one whose error it returns.
        for denied in [
            "ERR Error running script (call to f_6a1): @user_script:22: @user_script: 22: The user executing the script can't publish to the channel mentioned in the command",
            "@user_script: 118: The user executing the script can't run this command or subcommand",
        ] {
            assert_eq!(
                judged(denied),
                (Cause::NoPermission, Execution::Indeterminate),
                "{denied}"
            );
        }
    }

    fn refusal(line: &str) -> ServerError {
        match redis::parse_redis_value(format!("-{line}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_connection_that_breaks_during_a_call_leaves_it_open_what_was_done() {
        for (error, cause) in [
            (closed("reset"), Cause::Closed),
            (no_reply("HTTP"), Cause::Protocol),
        ] {
            assert_eq!(
                (error.cause, error.execution),
                (cause, Execution::Indeterminate)
            );
        }
    }

    #[test]
    fn a_failed_login_is_definite_and_does_not_repeat_the_password() {
        for (line, cause) in [
            ("WRONGPASS invalid username-password pair", Cause::NoAuth),
            (
                "ERR unknown command 'AUTH', with args beginning with: 'hunter2'",
                Cause::NoAuth,
            ),
            ("LOADING Redis is loading", Cause::Loading),
        ] {
            let error = not_logged_in(&refusal(line));
            assert_eq!((error.cause, error.execution), (cause, Execution::Definite));
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_database_that_is_not_there_is_told_from_one_that_is_not_ready() {
        for (line, cause) in [
            ("ERR DB index is out of range", Cause::NoDatabase),
            ("NOPERM this user has no permissions", Cause::NoPermission),
            ("LOADING Redis is loading", Cause::Loading),
        ] {
            let error = no_such_database(&refusal(line));
            assert_eq!((error.cause, error.execution), (cause, Execution::Definite));
        }
    }

    #[test]
    fn a_refusal_without_words_is_told_as_one() {
        assert_eq!(reply("", "").detail, "an error without words");
    }

    #[test]
    fn nonsense_is_quoted_in_part() {
        let error = nonsense(&Value::BulkString(vec![b'x'; 10_000]));
        assert!(error.detail.len() < 300, "{}", error.detail.len());
    }
}
