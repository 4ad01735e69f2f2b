//! The expiry of keys, which is always an absolute time of the node's wall clock.

use crate::call::{Answer, Call};
use crate::refusal::Refusal;
use crate::reply::Reply;

/// How a command states a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Writing {
    name: &'static str,
    /// Unit in milliseconds.
    unit: i64,
    is_from_now: bool,
}

pub(crate) const RELATIVE_SECONDS: Writing = Writing {
    name: "expire",
    unit: 1_000,
    is_from_now: true,
};
pub(crate) const SECONDS: Writing = Writing {
    name: "expireat",
    unit: 1_000,
    is_from_now: false,
};
pub(crate) const RELATIVE_MILLIS: Writing = Writing {
    name: "pexpire",
    unit: 1,
    is_from_now: true,
};
pub(crate) const MILLIS: Writing = Writing {
    name: "pexpireat",
    unit: 1,
    is_from_now: false,
};

pub(crate) fn invalid(name: &str) -> Refusal {
    Refusal(format!("ERR invalid expire time in '{name}' command").into())
}

/// Executes `EXPIRE` and its variants.
pub(crate) fn set(call: &mut Call<'_>, writing: Writing) -> Answer {
    let conditions = Conditions::of(call)?;
    let since = if writing.is_from_now {
        call.now_millis()
    } else {
        0
    };
    let written = call.int(2)?;
    let expires = written
        .checked_mul(writing.unit)
        .and_then(|at| at.checked_add(since));
    let expires = expires.ok_or_else(|| invalid(writing.name))?;
    let key = call.word(1);
    let Some(entry) = call.data.entry(*call.db, key) else {
        return Ok(Reply::Int(0));
    };
    if !conditions.allow(entry.expires, expires) {
        return Ok(Reply::Int(0));
    }
    if expires <= call.now_millis() {
        call.data.remove(*call.db, key);
    } else {
        call.data.set_expiry(*call.db, key, Some(expires));
    }
    Ok(Reply::Int(1))
}

/// Conditions on the present expiry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Conditions {
    none: bool,
    some: bool,
    earlier: bool,
    later: bool,
}

impl Conditions {
    fn of(call: &Call<'_>) -> Result<Self, Refusal> {
        let mut conditions = Conditions::default();
        for (at, word) in call.words.iter().enumerate().skip(3) {
            match call.word(at).to_ascii_lowercase().as_slice() {
                b"nx" => conditions.none = true,
                b"xx" => conditions.some = true,
                b"gt" => conditions.earlier = true,
                b"lt" => conditions.later = true,
                _ => {
                    let word = String::from_utf8_lossy(word);
                    return Err(Refusal(format!("ERR Unsupported option {word}").into()));
                }
            }
        }
        if conditions.none
            && conditions
                != (Conditions {
                    none: true,
                    ..Conditions::default()
                })
        {
            return Err(Refusal::of(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if conditions.earlier && conditions.later {
            return Err(Refusal::of(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(conditions)
    }

    /// Returns whether the expiry may change. A key without expiry counts as one that expires last.
    fn allow(self, old: Option<i64>, new: i64) -> bool {
        !(self.none && old.is_some()
            || self.some && old.is_none()
            || self.earlier && old.is_none_or(|old| new <= old)
            || self.later && old.is_some_and(|old| old <= new))
    }
}

/// Executes `PERSIST`.
pub(crate) fn drop(call: &mut Call<'_>) -> Answer {
    let key = call.word(1);
    let entry = call.data.entry(*call.db, key);
    if entry.and_then(|entry| entry.expires).is_none() {
        return Ok(Reply::Int(0));
    }
    call.data.set_expiry(*call.db, key, None);
    Ok(Reply::Int(1))
}

/// Returns the expiry, or the reply -2 without a key and -1 without an expiry.
fn expires(call: &Call<'_>) -> Result<i64, Reply> {
    let entry = call
        .data
        .entry(*call.db, call.word(1))
        .ok_or(Reply::Int(-2))?;
    entry.expires.ok_or(Reply::Int(-1))
}

/// Executes `TTL` and `PTTL`. Seconds are rounded to the nearest.
pub(crate) fn left(call: &Call<'_>, unit: i64) -> Reply {
    expires(call).map_or_else(
        |none| none,
        |expires| Reply::Int(((expires - call.now_millis()).max(0) + unit / 2) / unit),
    )
}

/// Executes `EXPIRETIME` and `PEXPIRETIME`.
pub(crate) fn at(call: &Call<'_>, unit: i64) -> Reply {
    expires(call).map_or_else(
        |none| none,
        |expires| Reply::Int((expires + unit / 2) / unit),
    )
}
