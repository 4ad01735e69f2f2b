//! Claims without a script: for a free name, a few commands of the server do what `acquire.lua` and `release.lua` do,
//! in less than half of the server's time.
//!
//! ```text
//! RESTORE name lease payload    makes the claim, only if there is no such key: a hash {owner: 1} with a TTL
//! EXISTS queue                  whether the fair lock of the name has waiters
//! INCR counter                  the token
//!
//! HDEL name owner               ends the claim, if it is still the owner's
//! PUBLISH channel 0             wakes waiters
//! ```
//!
//! Each command is atomic, and exclusion needs no more: `RESTORE` makes a claim only where there is none, and an owner
//! is never used twice, so `HDEL` ends no claim but this one. The commands of a request are sent together, and another
//! client's may be executed between them:
//!
//! - A grant needs all three replies. The token is drawn after the claim was made, and a client that draws a larger one
//!   while this claim lives is refused. If the claim has expired before `INCR`, the caller learns from its clock that it
//!   may not begin. (If it was removed, by force or by an eviction, the next holder may have the smaller token.)
//! - A waiter of the fair lock that queued before the claim was made is still there when `EXISTS` is executed. The claim
//!   is then ended as one of the fair lock, which wakes that waiter. If a connection breaks before that, the waiter asks
//!   again by itself.
//! - A refused request has drawn a token, too: tokens grow, but not always by one.
//!
//! The script also sees to it that tokens do not go back when a server has lost its counters: a new one is not less
//! than the client's clock. So a token that `INCR` draws counts only if it is larger than one that this connection has
//! seen, and if the script has granted the name on this connection within the last second ([`WARM`]). Otherwise a renewal
//! states a token by the clock. A server that was restarted has another connection. One whose data was replaced while
//! its connections stayed may hand out a token of the second before once more.
//!
//! Whatever else happens (the name is taken, the user may not use a command), the script is run next, and its reply
//! counts. No call makes two claims: once `RESTORE` has made one, the script is not run.
//!
//! `INCR` makes a counter that was lost, and this one has no TTL. It gets one at once, by the renewal or by `PEXPIRE`,
//! unless the connection breaks between the two: then with the next script for its name.

mod commands;
mod payload;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use quorlock_core::fencing::{Fence, Token};
use quorlock_core::message::{Access, Acquire, Claim, Mode, Release, Renew, Request, Retention};
use quorlock_core::name::Name;
use quorlock_core::owner::OwnerId;
use redis::{Cmd, ServerErrorKind, Value};

use self::commands::Commands;
use crate::link::Connection;
use crate::multiplexer::Packed;
use crate::sync::{Mutex, MutexGuard};
use crate::timer::Instant;
use crate::{error, key};

/// How long after a script the commands may be used for its name.
///
/// Tokens are no older than this beside the client's clock if a server loses its counters while its connections stay.
const WARM: Duration = Duration::from_secs(1);

/// Names that are remembered. The script is used for all others.
const MOST_NAMES: usize = 4_096;

/// Beyond 2^53 a number of Lua, as the scripts use it, is no longer exact.
const MOST_TOKEN: u64 = 1 << 53;

/// Which requests to a server need no script.
#[derive(Default)]
pub(crate) struct Natives(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The connection that the rest is about.
    link: Weak<Connection>,
    /// The server has refused one of the commands, and will refuse it again.
    is_refused: bool,
    names: HashMap<Name, Seen>,
    /// When names that are of no use may be removed again.
    sweep_after: Option<Instant>,
}

/// A name for which the script was run.
struct Seen {
    /// The commands may be used until then.
    warm_until: Instant,
    /// The name was taken lately: scripts are used until then.
    cold_until: Option<Instant>,
    /// The newest token that was seen.
    token: u64,
    /// The owner whose claim was made, and not ended since.
    holder: Option<OwnerId>,
}

/// What tells whether the token that the commands draw counts.
#[derive(Clone, Copy)]
pub(crate) struct JudgedBy {
    /// It is larger than this one.
    seen: u64,
    /// It arrives before.
    until: Instant,
}

/// What the commands of an acquire have done.
#[derive(PartialEq, Debug)]
pub(crate) enum Taken {
    /// The claim was made: the reply that the script would give.
    Granted(Value),
    /// No claim was made. The counter may have been made by `INCR`, which never expires.
    Nothing { is_counter_new: bool },
    /// The claim was made, but the fair lock has waiters: it must end.
    Behind,
    /// The claim was made, but its token does not count. A renewal can state this one.
    Unnumbered(Token),
}

impl Natives {
    /// Returns the commands of an acquire, if it needs no script.
    pub(crate) fn take(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        now: Instant,
    ) -> Option<(Packed, JudgedBy)> {
        let judged_by = {
            let known = self.of(link);
            let seen = known.names.get(&ask.name)?;
            // While this client has the name, another request for it is refused, or was sent before.
            let may = seen.holder.is_none() && now < seen.warm_until;
            if known.is_refused || !may || !fits(ask) {
                return None;
            }
            JudgedBy {
                seen: seen.token,
                until: seen.warm_until,
            }
        };
        let name = ask.name.as_bytes();
        let mut commands = Commands::with_capacity(256 + 3 * name.len());
        commands
            .begin("RESTORE", 3)
            .arg(name)
            .number(ask.lease.millis())
            .arg(&payload::of(ask.owner));
        commands.begin("EXISTS", 1).key(key::queue(name));
        commands.begin("INCR", 1).key(key::token(name));
        Some((commands.packed(), judged_by))
    }

    /// Judges the replies to the commands of an acquire, which have arrived by now.
    pub(crate) fn taken(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        judged_by: JudgedBy,
        answer: &Value,
        now: Instant,
    ) -> Taken {
        let JudgedBy { seen, until } = judged_by;
        let parts = match answer {
            Value::Array(parts) => parts.as_slice(),
            _ => &[],
        };
        let [made, waiters, drawn] = parts else {
            return Taken::Nothing {
                is_counter_new: false,
            };
        };
        let token = match drawn {
            Value::Int(token) => u64::try_from(*token).ok(),
            _ => None,
        };
        let mut known = self.of(link);
        known.is_refused |= is_final(made) || is_lasting(waiters) || is_lasting(drawn);
        if *made != Value::Okay {
            known.cool(&ask.name, now);
            return Taken::Nothing {
                is_counter_new: token.is_some_and(|token| token <= seen),
            };
        }
        if *waiters != Value::Int(0) {
            known.names.remove(&ask.name);
            return Taken::Behind;
        }
        match token {
            Some(token) if seen < token && token < MOST_TOKEN && now < until => {
                known.hold(ask, token);
                Taken::Granted(drawn.clone())
            }
            _ => {
                known.names.remove(&ask.name);
                Taken::Unnumbered(by_the_clock(ask.fence, seen))
            }
        }
    }

    /// Records that a renewal has stated the token of a claim.
    pub(crate) fn numbered(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        token: Token,
        now: Instant,
    ) {
        self.of(link).warm(ask, token.0, now);
    }

    /// Records the reply of a script to an acquire that was sent at this time.
    pub(crate) fn told(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        answer: &Value,
        sent: Instant,
    ) {
        let mut known = self.of(link);
        let token = match answer {
            Value::Int(token) if fits(ask) => u64::try_from(*token).ok(),
            _ => None,
        };
        match token {
            Some(token) => known.warm(ask, token, sent),
            None => known.cool(&ask.name, sent),
        }
    }

    /// Returns the commands of a release, if it needs no script: it ends a claim that this connection has made.
    pub(crate) fn end(&self, link: &Arc<Connection>, ask: &Release) -> Option<Packed> {
        {
            let mut known = self.of(link);
            let is_refused = known.is_refused;
            let seen = known.names.get_mut(&ask.name)?;
            if ask.count != 0 || seen.holder != Some(ask.owner) {
                return None;
            }
            seen.holder = None;
            if is_refused || ask.mode != Mode::Plain {
                return None;
            }
        }
        let name = ask.name.as_bytes();
        let mut commands = Commands::with_capacity(192 + 2 * name.len());
        commands.begin("HDEL", 2).arg(name).owner(ask.owner);
        commands
            .begin("PUBLISH", 2)
            .key(key::channel(name))
            .arg(b"0");
        Some(commands.packed())
    }

    /// Translates the replies to the commands of a release to that of the script. `None` if nothing was done.
    pub(crate) fn ended(&self, link: &Arc<Connection>, answer: Value) -> Option<Value> {
        let Value::Array(parts) = answer else {
            return None;
        };
        let [gone, told] = <[Value; 2]>::try_from(parts).ok()?;
        match (gone, told) {
            (Value::Int(1), Value::Int(0)) => Some(Value::Int(1)),
            (Value::Int(1), Value::Int(told)) => Some(Value::Int(told.saturating_add(3))),
            (Value::Int(1), told) => Some(Value::Array(vec![Value::Int(1), told])),
            (Value::Int(_), _) => Some(Value::Int(0)),
            (gone, _) => {
                self.of(link).is_refused |= is_lasting(&gone);
                None
            }
        }
    }

    /// What is known about a connection: nothing, if it is another one than before.
    fn of(&self, link: &Arc<Connection>) -> MutexGuard<'_, Known> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // While there is a `Weak` to it, no other connection is at this place.
        if known.link.as_ptr() != Arc::as_ptr(link) {
            *known = Known {
                link: Arc::downgrade(link),
                ..Known::default()
            };
        }
        known
    }
}

impl Known {
    /// Records that the script has granted the name.
    fn warm(&mut self, ask: &Acquire, token: u64, sent: Instant) {
        // The counter is kept for its whole time from the script on, less an eighth.
        let warm = match ask.retention {
            Retention::Millis(kept) => WARM.min(Duration::from_millis(kept / 8)),
            Retention::Forever => WARM,
        };
        if !self.has_room(&ask.name, sent) {
            return;
        }
        let seen = self.names.entry(ask.name.clone()).or_insert(Seen {
            warm_until: sent,
            cold_until: None,
            token,
            holder: None,
        });
        if seen.cold_until.is_none_or(|until| until <= sent) {
            seen.warm_until = sent + warm;
            seen.cold_until = None;
        }
        seen.token = seen.token.max(token);
        seen.holder = Some(ask.owner);
    }

    /// Records that the name was taken.
    fn cool(&mut self, name: &Name, now: Instant) {
        if let Some(seen) = self.names.get_mut(name) {
            seen.warm_until = now;
            seen.cold_until = Some(now + WARM);
        }
    }

    /// Records that the commands have made a claim.
    fn hold(&mut self, ask: &Acquire, token: u64) {
        if let Some(seen) = self.names.get_mut(&ask.name) {
            seen.token = seen.token.max(token);
            seen.holder = Some(ask.owner);
        }
    }

    /// Whether the name is remembered, or can be.
    fn has_room(&mut self, name: &Name, now: Instant) -> bool {
        if self.names.len() < MOST_NAMES || self.names.contains_key(name) {
            return true;
        }
        // Not each time: all names may be in use.
        if self.sweep_after.is_none_or(|after| after <= now) {
            self.sweep_after = Some(now + WARM);
            let is_of_use = |seen: &Seen| seen.holder.is_some() || now < seen.warm_until;
            self.names.retain(|_, seen| is_of_use(seen));
        }
        self.names.len() < MOST_NAMES
    }
}

/// Says nothing about names, which may be secrets.
impl fmt::Debug for Natives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Natives")
    }
}

/// Returns the command that gives a counter its time again, if it has one.
pub(crate) fn keep_counter(ask: &Acquire) -> Option<Cmd> {
    let Retention::Millis(kept) = ask.retention else {
        return None;
    };
    let mut cmd = redis::cmd("PEXPIRE");
    cmd.arg(key::token(ask.name.as_bytes()))
        .arg(kept.clamp(1, MOST_TOKEN));
    Some(cmd)
}

/// Returns the renewal that states the token of an acquire's claim.
pub(crate) fn renewal(ask: &Acquire, token: Token) -> Request {
    Request::Renew(Renew {
        mode: Mode::Plain,
        claims: vec![Claim {
            name: ask.name.clone(),
            owner: ask.owner,
            count: ask.count,
            lease: ask.lease,
            token,
            keep: None,
        }],
        retention: ask.retention,
    })
}

/// Whether an acquire is of the form that the commands have.
fn fits(ask: &Acquire) -> bool {
    ask.access == Access::Plain
        && ask.count == 1
        && 0 < ask.lease.millis()
        && matches!(ask.fence, Fence::Mint { .. })
        && ask.keep.is_none()
        && ask.replaces.is_none()
        && ask.check.is_none()
}

/// Returns a token by the client's clock, as the script chooses it. The newest token that was seen stands for the server's
/// clock, from which the script allows a distance.
fn by_the_clock(fence: Fence, seen: u64) -> Token {
    let next = seen.saturating_add(1);
    Token(match fence {
        Fence::Mint {
            floor,
            slack_millis,
        } => floor.0.clamp(next, next.saturating_add(slack_millis)),
        Fence::Carry(token) => token.0.max(next),
    })
}

/// Whether the server will refuse `RESTORE` again: whatever it says but what is true at the moment only.
fn is_final(reply: &Value) -> bool {
    const PASSING: [&str; 11] = [
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

/// Whether the server will refuse the command again: the user may not use it, or the server does not know it.
fn is_lasting(reply: &Value) -> bool {
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

#[cfg(test)]
mod tests;
