//! What an error says about the execution of a request.
//!
//! *Definite* is an error that the server surely raises before the first write of our scripts, or that says that no
//! connection was made. Everything else is *indeterminate*.

use quorlock_core::transport::{Cause, Execution, TransportError};
use redis::{ErrorKind, RedisError, ServerError, Value};

/// An error reply.
///
/// Redis 7 passes an error that a command raises inside a script on as it is, with the place in the script appended
/// (`READONLY You can't write against a read only replica. script: <digest>, on @user_script:60.`); before, it came
/// as `ERR Error running script (call to f_<digest>): @user_script:60: -READONLY You can't ...`.
pub(crate) fn server(error: &ServerError) -> TransportError {
    let detail = error.details().unwrap_or_default();
    reply(error.code(), detail)
}

fn reply(code: &str, detail: &str) -> TransportError {
    let inner = match code {
        "ERR" => raised_in_script(detail),
        _ => None,
    };
    let (cause, execution) = judge(inner.unwrap_or(code), detail);
    TransportError {
        execution,
        cause,
        detail: if detail.is_empty() {
            code.to_owned()
        } else {
            format!("{code} {detail}")
        },
    }
}

/// The code of the command that failed inside a script, in the wording of Redis 5 and 6.
fn raised_in_script(detail: &str) -> Option<&str> {
    if !detail.starts_with("Error running script") {
        return None;
    }
    let (_, place) = detail.rsplit_once("@user_script:")?;
    let text = place.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ' || c == ':');
    text.trim_start_matches('-').split(' ').next()
}

fn judge(code: &str, detail: &str) -> (Cause, Execution) {
    use Execution::{Definite, Indeterminate};
    match code {
        // A server that refuses writes refuses the first one of a script. (Seen on 7.0.15: OOM, READONLY, MISCONF
        // and NOREPLICAS all name the line of the script's first write, and no key is changed.) A script that has
        // written is let through to its end, whatever the memory limit.
        "OOM" => (Cause::OutOfMemory, Definite),
        "READONLY" | "MASTERDOWN" => (Cause::ReadOnly, Definite),
        "MISCONF" => (Cause::Misconfigured, Definite),
        "NOREPLICAS" => (Cause::NoReplicas, Definite),
        // The scripts look at the type of every key before their first write.
        "WRONGTYPE" => (Cause::WrongType, Definite),
        // These refuse the whole call.
        "LOADING" => (Cause::Loading, Definite),
        "BUSY" => (Cause::Busy, Definite),
        "NOAUTH" | "WRONGPASS" => (Cause::NoAuth, Definite),
        "CLUSTERDOWN" | "MOVED" | "ASK" | "TRYAGAIN" | "CROSSSLOT" => (Cause::Cluster, Definite),
        "NOSCRIPT" => (Cause::Server, Definite),
        // The whole call (the command, one of its keys), or one command inside the script, perhaps after another
        // has written.
        "NOPERM" if !detail.contains("script") => (Cause::NoPermission, Definite),
        "NOPERM" => (Cause::NoPermission, Indeterminate),
        "ERR" if detail.contains("ACL failure in script") => (Cause::NoPermission, Indeterminate),
        _ => (Cause::Server, Indeterminate),
    }
}

/// The crate's error during a call: the request was handed to a connection that then broke.
pub(crate) fn broken(error: &RedisError) -> TransportError {
    let cause = match error.kind() {
        ErrorKind::Io => Cause::Closed,
        _ => Cause::Protocol,
    };
    TransportError {
        execution: Execution::Indeterminate,
        cause,
        detail: error.to_string(),
    }
}

/// The crate's error while a connection was made: nothing was sent but the login.
pub(crate) fn not_connected(error: &RedisError, password: Option<&str>) -> TransportError {
    let cause = match error.kind() {
        ErrorKind::Io => Cause::Unreachable,
        ErrorKind::AuthenticationFailed => Cause::NoAuth,
        ErrorKind::Parse => Cause::Protocol,
        _ => match error.code() {
            Some(code) => judge(code, error.detail().unwrap_or_default()).0,
            None => Cause::Protocol,
        },
    };
    TransportError {
        execution: Execution::Definite,
        cause,
        detail: redacted(error.to_string(), password),
    }
}

/// A server to which `AUTH` is unknown (a proxy, a renamed command) repeats its arguments in the error.
fn redacted(text: String, password: Option<&str>) -> String {
    match password {
        Some(password) if !password.is_empty() && text.contains(password) => {
            text.replace(password, "***")
        }
        _ => text,
    }
}

/// No connection came about.
pub(crate) fn unreachable(detail: impl Into<String>) -> TransportError {
    TransportError {
        execution: Execution::Definite,
        cause: Cause::Unreachable,
        detail: detail.into(),
    }
}

/// The server did not finish the handshake.
pub(crate) fn no_handshake() -> TransportError {
    TransportError {
        execution: Execution::Definite,
        cause: Cause::TimedOut,
        detail: "no connection within the connect time-out".into(),
    }
}

/// The time for the call was over before there was a connection.
pub(crate) fn not_sent() -> TransportError {
    TransportError {
        execution: Execution::Definite,
        cause: Cause::TimedOut,
        detail: "no connection within the call time-out: nothing was sent".into(),
    }
}

/// No reply came in time.
pub(crate) fn unanswered() -> TransportError {
    TransportError {
        execution: Execution::Indeterminate,
        cause: Cause::TimedOut,
        detail: "no reply within the call time-out".into(),
    }
}

/// An answer that the script never gives.
pub(crate) fn nonsense(answer: &Value) -> TransportError {
    let mut detail = format!("unexpected reply {answer:?}");
    if let Some((end, _)) = detail.char_indices().nth(200) {
        detail.truncate(end);
    }
    TransportError {
        execution: Execution::Indeterminate,
        cause: Cause::Protocol,
        detail,
    }
}

/// A hash whose `mode` is none that we know: no lock, and nothing was written.
pub(crate) fn strange_mode(mode: &[u8]) -> TransportError {
    let mode: String = String::from_utf8_lossy(mode).chars().take(40).collect();
    TransportError {
        execution: Execution::Definite,
        cause: Cause::WrongType,
        detail: format!("the key is a hash with the unknown mode {mode:?}"),
    }
}
