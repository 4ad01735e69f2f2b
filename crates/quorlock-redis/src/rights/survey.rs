//! Everything that a user lacks, found out before a request is refused.

use quorlock_core::name::Name;
use quorlock_core::transport::Cause;
use redis::Value;

use super::needs::{Needs, Wish};
use super::{Rights, numbers};
use crate::error;
use crate::script::Home;

/// What a server has answered about the rights of its user.
#[doc(hidden)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RightsFacts {
    /// The server told which rights are missing.
    Told(RightsTold),
    /// The server does not tell: it is older than Redis 7.
    NotTold,
    /// The question was refused, for this reason, with the rule that allows it.
    Refused(String),
}

/// The rights that are missing, each with the rule that grants them.
#[doc(hidden)]
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RightsTold {
    /// Missing for plain locks.
    pub to_lock: Option<String>,
    /// Missing to wake waiters, and to be woken.
    pub to_wake: Option<String>,
    /// Missing for other uses, which are named.
    pub beyond: Vec<(&'static str, String)>,
}

/// Other uses than a plain lock, and their names.
const BEYOND: [(&str, Wish); 3] = [
    ("fair locks", Wish::Fair),
    ("read-write locks", Wish::ReadWrite),
    ("inspect and force-release", Wish::Operate),
];

/// The names and the user that are asked about.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a Name,
    pub(crate) is_watched: bool,
    pub(crate) user: &'a str,
    pub(crate) home: &'a Home,
    pub(crate) prefix: &'a [u8],
}

impl Subject<'_> {
    fn rights(&self, wish: Wish) -> Rights {
        Rights {
            needs: Needs::to(wish, self.name, self.home, self.prefix),
            user: self.user.to_owned(),
            prefix: self.prefix.to_vec(),
        }
    }
}

/// Finds out what a user lacks. `ask` sends a command, and returns the answer if there is one.
pub(crate) async fn survey<F>(subject: Subject<'_>, ask: impl Fn(redis::Cmd) -> F) -> RightsFacts
where
    F: Future<Output = Option<Value>>,
{
    let plain = if subject.is_watched {
        Wish::Watched
    } else {
        Wish::Plain
    };
    let mut to_lock = subject.rights(plain);
    to_lock.needs.no_wake_ups();
    let mut to_wake = subject.rights(plain);
    to_wake.needs.only_wake_ups();
    let mut told = RightsTold::default();
    match ask(to_lock.question()).await {
        None => return RightsFacts::NotTold,
        Some(Value::ServerError(refusal)) => {
            let error = error::server(&refusal);
            let why = match error.cause {
                Cause::NoPermission => to_lock.guessed(&error),
                _ => error.to_string(),
            };
            return RightsFacts::Refused(why);
        }
        Some(answer @ Value::Array(_)) => told.to_lock = why(&to_lock, &answer),
        Some(_) => return RightsFacts::NotTold,
    }
    if let Some(answer) = ask(to_wake.question()).await {
        told.to_wake = why(&to_wake, &answer);
    }
    for (name, wish) in BEYOND {
        let rights = subject.rights(wish);
        if let Some(answer) = ask(rights.question()).await
            && let Some(lack) = why(&rights, &answer)
        {
            told.beyond.push((name, lack));
        }
    }
    RightsFacts::Told(told)
}

/// Returns all that may be missing, so that one rule grants it.
fn why(rights: &Rights, answer: &Value) -> Option<String> {
    let (cause, lack) = rights.lack(answer)?;
    let (Cause::NoPermission, Value::Array(replies)) = (cause, answer) else {
        return Some(lack);
    };
    match rights.needs.perhaps_missing(&numbers(replies)) {
        (_, true) => Some(lack),
        (missing, false) => Some(
            rights
                .told(&missing)
                .replacen(" lacks ", " lacks some of ", 1),
        ),
    }
}
