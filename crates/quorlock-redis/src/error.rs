//! Classifies errors. An error is *definite* if the server always raises it before the first write of our scripts, or
//! if no connection was made. Every other error is *indeterminate*: if a client took it for a refusal, it could leave
//! behind a claim that no client releases.

mod reply;

use std::{fmt, io};

use quorlock_core::slot::{Slot, UnfitName};
use quorlock_core::transport::{Cause, Execution, TransportError};
use redis::{ServerError, Value};

#[cfg(feature = "redis-connections")]
pub(crate) use self::reply::of_client;
pub(crate) use self::reply::{denied_command, is_in_script, plain, server};
use crate::failure;
use crate::resp::NoReply;

/// The connection ended while a request was in flight: the server may have executed it.
pub(crate) fn closed(why: impl fmt::Display) -> TransportError {
    failure::indeterminate(Cause::Closed, format!("the connection ended: {why}"))
}

/// The stream failed. The text of a TLS stream's error is kept.
pub(crate) fn broken(why: &io::Error) -> TransportError {
    let refusal = why.get_ref().and_then(|why| why.downcast_ref());
    match refusal {
        Some(TlsRefusal(words)) => failure::indeterminate(Cause::Tls, words.clone()),
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
    failure::definite(Cause::Tls, why)
}

/// The server accepted the connection and did not answer the TLS handshake.
#[cfg(feature = "tls")]
pub(crate) fn no_tls_handshake() -> TransportError {
    failure::definite(
        Cause::TimedOut,
        "it accepted the connection and did not answer TLS within the connect time-out (a port without TLS does the same: give the TLS port, or write redis://)",
    )
}

/// The connection had ended before the request was sent, for this reason.
pub(crate) fn closed_before(why: &TransportError) -> TransportError {
    if is_farewell(why) {
        return why.clone().with_execution(Execution::Definite);
    }
    failure::definite(Cause::Closed, format!("{}: nothing was sent", why.detail))
}

/// The bytes from the server cannot be a reply.
pub(crate) fn no_reply(what: &str) -> TransportError {
    failure::indeterminate(Cause::Protocol, format!("not understood: {what}"))
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

/// The server refused the password. Error text with a quoted part is not passed on, because it may repeat the password.
pub(crate) fn not_logged_in(refusal: &ServerError, password: &str) -> TransportError {
    let error = server(refusal);
    let words = error.detail.as_str();
    let is_quoting = words.contains(['\'', '`', '"']) || words.contains(password);
    let detail = match error.cause {
        Cause::Loading | Cause::Busy | Cause::TurnedAway | Cause::ProtectedMode => {
            return error.with_execution(Execution::Definite);
        }
        _ if is_quoting => "the server refused the login".to_owned(),
        _ => format!("the server refused the login: {words}"),
    };
    failure::definite(Cause::NoAuth, detail)
}

/// A server that has answered nothing but this error has ended the connection: the error is its reason.
pub(crate) fn turned_away(farewell: &ServerError) -> TransportError {
    let error = plain(farewell);
    match error.cause {
        Cause::Server => failure::definite(
            Cause::TurnedAway,
            format!("the server says: {}", error.detail),
        ),
        cause => failure::definite(cause, error.detail),
    }
}

/// The same, from a server that was asked for TLS and has answered without it.
#[cfg(feature = "tls")]
pub(crate) fn turned_away_unencrypted(farewell: &ServerError) -> TransportError {
    let error = turned_away(farewell);
    let detail = format!(
        "{} (without TLS: if it does not speak TLS, write redis://)",
        error.detail
    );
    failure::definite(error.cause, detail)
}

/// Whether the server has turned this client away, and a retry on the same connection is of no use.
pub(crate) fn is_farewell(error: &TransportError) -> bool {
    matches!(error.cause, Cause::TurnedAway | Cause::ProtectedMode)
}

/// The source of the credentials returned none.
pub(crate) fn no_credentials(why: &io::Error) -> TransportError {
    failure::definite(Cause::NoCredentials, why.to_string())
}

/// The server refused a `SELECT`.
pub(crate) fn no_such_database(refusal: &ServerError) -> TransportError {
    let error = server(refusal);
    let cause = match error.cause {
        Cause::Server => Cause::NoDatabase,
        other => other,
    };
    failure::definite(cause, error.detail)
}

/// No connection was made.
pub(crate) fn unreachable(detail: impl Into<String>) -> TransportError {
    failure::definite(Cause::Unreachable, detail.into())
}

/// The server ended an unencrypted connection before it could be used.
pub(crate) fn closed_at_once(detail: &str) -> TransportError {
    unreachable(format!(
        "{detail} (a port that speaks TLS ends a connection without it: if this is one, write rediss://)"
    ))
}

/// The server did not finish the handshake in time.
pub(crate) fn no_handshake() -> TransportError {
    failure::definite(Cause::TimedOut, "no connection within the connect time-out")
}

/// The time for the call was over before a connection was made.
pub(crate) fn not_sent() -> TransportError {
    failure::definite(
        Cause::TimedOut,
        "no connection within the call time-out: nothing was sent",
    )
}

/// The time for the call was over while earlier calls were in flight.
pub(crate) fn not_sent_in_time() -> TransportError {
    failure::definite(
        Cause::TimedOut,
        "the calls before it took as long as the call time-out: nothing was sent",
    )
}

/// The time for a call was over by tokio's clock, which is paused: hardly any time has passed for the server.
pub(crate) fn paused_clock(error: &TransportError) -> TransportError {
    failure::of(
        error.execution,
        Cause::PausedClock,
        format!("tokio's clock is paused, and jumped: {}", error.detail),
    )
}

/// No reply came in time: the server may have executed the request.
pub(crate) fn unanswered() -> TransportError {
    failure::indeterminate(Cause::TimedOut, "no reply within the call time-out")
}

/// No node of the cluster owns the slot.
pub(crate) fn no_owner(slot: Slot) -> TransportError {
    failure::definite(
        Cause::Cluster,
        format!("no node owns slot {slot}, in which the name lies: see CLUSTER INFO"),
    )
}

/// A name that a cluster cannot have.
pub(crate) fn unfit(name: &UnfitName) -> TransportError {
    failure::definite(Cause::Cluster, name.to_string())
}

/// The nodes of a cluster have redirected a request too many times.
pub(crate) fn redirected(times: u32, last: &ServerError) -> TransportError {
    let last = server(last);
    let detail = format!("refused {times} times, last with {:?}", last.detail);
    failure::of(last.execution, last.cause, detail)
}

/// A reply that the script never returns.
pub(crate) fn nonsense(answer: &Value) -> TransportError {
    let mut detail = format!("unexpected reply {answer:?}");
    if let Some((end, _)) = detail.char_indices().nth(200) {
        detail.truncate(end);
    }
    failure::indeterminate(Cause::Protocol, detail)
}

/// A claim was made, and ended because of this reply to another command. A later attempt runs the script.
pub(crate) fn void(reply: &Value) -> TransportError {
    let words = match reply {
        Value::ServerError(error) => plain(error).detail,
        reply => format!("{reply:?}"),
    };
    let detail = format!("the claim was ended, because its token could not be drawn: {words}");
    failure::indeterminate(Cause::Server, detail)
}

/// The key is a hash with an unknown `mode`: no lock, and nothing was written.
pub(crate) fn strange_mode(mode: &[u8]) -> TransportError {
    let mode: String = String::from_utf8_lossy(mode).chars().take(40).collect();
    failure::definite(
        Cause::WrongType,
        format!("the key is a hash with the unknown mode {mode:?}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("ERR hunter2 is not the password", Cause::NoAuth),
            ("LOADING Redis is loading", Cause::Loading),
            ("ERR max number of clients reached", Cause::TurnedAway),
        ] {
            let error = not_logged_in(&refusal(line), "hunter2");
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
    fn nonsense_is_quoted_in_part() {
        let error = nonsense(&Value::BulkString(vec![b'x'; 10_000]));
        assert!(error.detail.len() < 300, "{}", error.detail.len());
    }
}
