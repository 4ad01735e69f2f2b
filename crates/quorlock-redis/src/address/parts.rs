//! The parts that addresses of all kinds have: `authority[/path][?parameters]`.
//!
//! An error states where the mistake is. It quotes a name only where that cannot be a piece of a password.

use super::hosts::decoded;
use super::{AddressProblem, Kind};

/// What is wrong with an address whose scheme is known.
#[derive(Debug)]
pub(super) enum Fault {
    /// A part is missing or does not parse.
    Malformed(String),
    /// A part has no meaning.
    Unknown(String),
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Fault::Malformed(reason)
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Fault::Malformed(reason.to_owned())
    }
}

impl Fault {
    /// Returns the problem of the address of which `rest` follows the scheme. A `/`, `?` or `#` in a password that is
    /// not percent-encoded cuts it off there, and the parts that follow are then wrong in ways of no interest.
    pub(super) fn of(self, kind: Kind, rest: &str) -> AddressProblem {
        let form = kind.form();
        let cut = rest.find(['/', '?', '#']).map(|at| rest.split_at(at).1);
        match self {
            _ if kind != Kind::Socket && cut.is_some_and(|behind| behind.contains('@')) => {
                let reason = "it has /, ? or # before an @: in a user or a password, percent-encode special characters, \
                              %23 for #, %25 for %, %2F for /, %3F for ?, %40 for @";
                AddressProblem::Malformed {
                    reason: reason.to_owned(),
                    form,
                }
            }
            Fault::Malformed(reason) => AddressProblem::Malformed { reason, form },
            Fault::Unknown(part) => AddressProblem::UnknownPart { part, form },
        }
    }
}

/// The parts of an address behind its scheme.
pub(super) struct Parts<'a> {
    /// Login and hosts; empty in the address of a socket.
    pub(super) authority: &'a str,
    /// The path without its first and last slash, split at the others; empty if there is none.
    pub(super) path: Vec<&'a str>,
    query: &'a str,
}

impl<'a> Parts<'a> {
    /// Splits what follows the scheme.
    pub(super) fn split(rest: &'a str) -> Result<Self, Fault> {
        if rest.contains('#') {
            let part = "a fragment (in a password, write %23 for #)";
            return Err(Fault::Unknown(part.to_owned()));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let path = path.strip_suffix('/').unwrap_or(path);
        let path = match path {
            "" => Vec::new(),
            path => path.split('/').collect(),
        };
        Ok(Parts {
            authority,
            path,
            query,
        })
    }

    /// Returns the values of the parameters with these names.
    pub(super) fn parameters<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[Option<String>; N], Fault> {
        let mut values = [const { None }; N];
        // An & in a password begins another parameter, whose name is then a piece of the password.
        let mut is_after_password = false;
        for part in self.query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let mut known = names.iter().zip(&mut values);
            let Some((name, slot)) = known.find(|(known, _)| **known == name) else {
                let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
                let is_shown =
                    !is_after_password && part.contains('=') && name.chars().all(is_plain);
                let named = if is_shown {
                    format!(" {name}")
                } else {
                    String::new()
                };
                return Err(Fault::Unknown(format!("a parameter{named} after the ?")));
            };
            is_after_password |= name.contains("pass");
            // Forms write a space as +, addresses do not. A password must not depend on which of the two is meant.
            if value.contains('+') {
                return Err(format!("{name} has a +: write %2B for +, %20 for a space").into());
            }
            let value = decoded(value, name)?;
            if slot.as_ref().is_some_and(|other| *other != value) {
                return Err(format!("it has {name} twice, with different values").into());
            }
            *slot = Some(value);
        }
        Ok(values)
    }
}

/// Returns the database that an address names, in its path or as the parameter `db`. Two that differ are refused: a
/// client that follows the one and a client that follows the other lock in different databases.
pub(super) fn database(path: Option<&str>, parameter: Option<&str>) -> Result<i64, Fault> {
    let number = |text: &str| match text.parse() {
        Ok(number) if text.chars().all(|c| c.is_ascii_digit()) => Ok(number),
        _ => Err(Fault::from("its database is no number")),
    };
    match (
        path.map(number).transpose()?,
        parameter.map(number).transpose()?,
    ) {
        (Some(one), Some(other)) if one != other => {
            Err(format!("it names two databases, {one} and {other}").into())
        }
        (one, other) => Ok(one.or(other).unwrap_or(0)),
    }
}
