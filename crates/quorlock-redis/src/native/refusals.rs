//! Which refusals of a command last.

use redis::{ServerErrorKind, Value};

use crate::error;

/// Whether the server will refuse `RESTORE` again: whatever it says but what is true at the moment only.
pub(super) fn is_final(reply: &Value) -> bool {
    const PASSING: [&str; 12] = [
        // Another command of the transaction was refused.
        "EXECABORT",
        "BUSYKEY",
        "OOM",
        "READONLY",
        "MISCONF",
        "NOREPLICAS",
        "LOADING",
        "BUSY",
        "MASTERDOWN",
        "NOAUTH",
        "MOVED",
        "ASK",
    ];
    match reply {
        Value::ServerError(error) => !PASSING.contains(&error.code()),
        _ => false,
    }
}

/// Whether the server does not know the form of a payload.
pub(super) fn is_unreadable(reply: &Value) -> bool {
    match reply {
        Value::ServerError(error) => error.details() == Some("Bad data format"),
        _ => false,
    }
}

/// Whether the server will refuse the command again: the user may not use it, or the server does not know it.
pub(super) fn is_lasting(reply: &Value) -> bool {
    let Value::ServerError(error) = reply else {
        return false;
    };
    let words = error.details().unwrap_or_default();
    match error.kind() {
        Some(ServerErrorKind::NoPerm) => error::denied_command(words).is_some(),
        Some(ServerErrorKind::ResponseError) => words.starts_with("unknown command"),
        _ => false,
    }
}
