//! What a lock needs of a server, and what a user lacks of it when a request was refused.

mod needs;
mod survey;

use std::fmt::Write as _;

use quorlock_core::message::Request;
use quorlock_core::transport::{Cause, TransportError};
use redis::{Cmd, ServerError, Value};

use self::needs::{Needs, Thing};
pub use self::survey::{RightsFacts, RightsTold};
pub(crate) use self::survey::{Subject, survey};
use crate::error;
use crate::failure;
use crate::script::Home;

/// The script that asks a server what its user may do.
const SCRIPT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lua/rights.lua"));

/// The rights that a request needs, and those who ask for them: the user, and the prefix of all names.
#[derive(Debug)]
pub(crate) struct Rights {
    needs: Needs,
    user: String,
    prefix: Vec<u8>,
}

impl Rights {
    /// The rights for the kind of lock that the request is about: a user who lacks some is told all of them.
    pub(crate) fn of(request: &Request, home: &Home, user: String, prefix: &[u8]) -> Rights {
        Rights {
            needs: Needs::of(request, home, prefix),
            user,
            prefix: prefix.to_vec(),
        }
    }

    /// The right to publish that a name is free.
    pub(crate) fn only_to_publish(mut self) -> Rights {
        self.needs.only_publish();
        self
    }

    /// Returns the command that asks the server for these rights.
    pub(crate) fn question(&self) -> Cmd {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(SCRIPT).arg(0);
        for used in self.needs.uses() {
            let words = self.needs.words(used);
            cmd.arg(words.len());
            for word in words {
                cmd.arg(word);
            }
        }
        cmd
    }

    /// Explains a refusal by the server's answer to [`Rights::question`], if there is one that tells something.
    pub(crate) fn explained(
        &self,
        refusal: &ServerError,
        answer: Option<&Value>,
    ) -> TransportError {
        let error = error::plain(refusal);
        let lack = answer.and_then(|answer| self.lack(answer));
        let (cause, lack) = match lack {
            Some(lack) => lack,
            None if error.cause == Cause::NoPermission => (error.cause, self.guessed(&error)),
            None => return error::server(refusal),
        };
        let detail = format!("{}: {lack}", error.detail);
        failure::of(error.execution, cause, detail)
    }

    /// Returns what is missing according to the server's answer; `None` if nothing is.
    pub(crate) fn lack(&self, answer: &Value) -> Option<(Cause, String)> {
        let Value::Array(replies) = answer else {
            return None;
        };
        let replies = numbers(replies);
        let unknown = self.needs.unknown(&replies);
        if !unknown.is_empty() {
            let text = format!(
                "the server has no command {}: it was renamed or disabled (rename-command), or the service does not offer it",
                unknown.join(", ")
            );
            return Some((Cause::Unsupported, text));
        }
        let missing = self.needs.missing(&replies);
        (!missing.is_empty()).then(|| (Cause::NoPermission, self.told(&missing)))
    }

    /// Names what is missing as far as the words of the server tell it: the command, or the kind of thing.
    pub(crate) fn guessed(&self, error: &TransportError) -> String {
        match error::denied_command(&error.detail) {
            Some(verb) => self.told(&[Thing::Command(verb.to_owned())]),
            None => {
                let all = self.needs.of_kind(&error.detail);
                let told = self.told(&all);
                if all.len() == 1 {
                    told
                } else {
                    told.replacen(" lacks ", " lacks some of ", 1)
                }
            }
        }
    }

    /// Names what is missing, and the command that grants it.
    pub(crate) fn told(&self, missing: &[Thing]) -> String {
        let mut groups: [(&str, Vec<String>); 4] = [
            ("key", Vec::new()),
            ("key", Vec::new()),
            ("channel", Vec::new()),
            ("command", Vec::new()),
        ];
        let mut cure = format!("ACL SETUSER {}", self.user);
        for thing in missing {
            let (group, shown, rule) = match thing {
                Thing::Key { name, pattern } => {
                    let is_outside = !name.starts_with(&self.prefix);
                    (usize::from(is_outside), shown(name), format!("~{pattern}"))
                }
                Thing::Channel { name, pattern } => (2, shown(name), format!("&{pattern}")),
                Thing::Command(verb) => (3, verb.to_uppercase(), format!("+{verb}")),
            };
            if let Some((_, group)) = groups.get_mut(group) {
                group.push(shown);
            }
            let is_new = !cure.split(' ').any(|word| word == rule);
            if is_new {
                let _ = write!(cure, " {rule}");
            }
        }
        let clauses = groups
            .iter()
            .enumerate()
            .filter(|(_, (_, of))| !of.is_empty());
        let clauses = clauses.map(|(at, (noun, of))| {
            let (plural, verb) = if of.len() == 1 {
                ("", "does")
            } else {
                ("s", "do")
            };
            let list = of.join(", ");
            let prefix = shown(&self.prefix);
            match at {
                1 => format!(
                    "the {noun}{plural} {list}, which {verb} not begin with the prefix {prefix}"
                ),
                _ => format!("the {noun}{plural} {list}"),
            }
        });
        let clauses: Vec<String> = clauses.collect();
        format!(
            "the user {} lacks {}: {cure}",
            self.user,
            clauses.join("; and ")
        )
    }
}

/// The replies to the uses, in order.
fn numbers(replies: &[Value]) -> Vec<i64> {
    let numbers = replies.iter().map(|reply| match reply {
        Value::Int(reply) => *reply,
        _ => 0,
    });
    numbers.collect()
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

#[cfg(test)]
mod tests;
