//! Claims without a script: for a free name, a few commands of the server do what `acquire.lua` and `release.lua` do,
//! in less than half of the server's time.
//!
//! ```text
//! MULTI, GET marker, INFO       on a node of a majority: which process the server is
//! RESTORE name lease payload    makes the claim, only if there is no such key: a hash {owner: 1} with a TTL
//! EXISTS queue                  whether the fair lock of the name has waiters
//! INCR counter                  the token
//! EXEC
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
//! than the client's clock. An acquire that states a token that the client has seen ([`Acquire::after`]) asks for the next number instead, and
//! these commands are used for such ones alone: on a process that the client trusts, or on a connection that is older than that
//! token. What `INCR` draws counts if it is larger than that token. Otherwise the counter was lost,
//! and a renewal states a token by the clock.
//!
//! The vote of a node counts for a majority only if it is the process that the client trusts. The commands are then one
//! transaction with the look at its marker, as the script is. If it is another process, the claim is ended, and the script says what
//! the client must know.
//!
//! Whatever else happens (the name is taken, the user may not use a command), the script is run next, and its reply
//! counts. No call makes two claims: once `RESTORE` has made one, the script is not run in this call before that claim was ended.
//!
//! `INCR` makes a counter that was lost, and this one has no TTL. It gets one at once, by the renewal or by `PEXPIRE`,
//! unless the connection breaks between the two: then with the next script for its name.

mod commands;
mod known;
mod payload;
mod refusals;

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use quorlock_core::fencing::{Fence, Token};
use quorlock_core::marker::Act;
use quorlock_core::message::{Access, Acquire, Claim, Mode, Release, Renew, Request, Retention};
use quorlock_core::name::Name;
use redis::{Cmd, Value};

use self::commands::Commands;
use self::known::Known;
use self::payload::Form;
use self::refusals::{is_final, is_lasting, is_unreadable};
use crate::key;
use crate::link::Connection;
use crate::multiplexer::{NameHash, Native};
use crate::script::{self, Home};
use crate::sync::{Mutex, MutexGuard};
use crate::timer::Instant;

/// Beyond 2^53 a number of Lua, as the scripts use it, is no longer exact.
const MOST_TOKEN: u64 = 1 << 53;

/// Which requests to a server need no script.
pub(crate) struct Natives {
    known: Mutex<Known>,
    /// The youngest connection that is older than all tokens that acquires have seen.
    youngest: Duration,
}

/// What the commands of an acquire relied on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tried {
    /// A token that the client has seen. The one that they draw counts if it is larger.
    after: u64,
    form: Form,
}

/// What the commands of an acquire have done that did not grant it.
#[derive(PartialEq, Debug)]
pub(crate) struct NotGranted {
    pub(crate) claim: Made,
    /// `INCR` has made the counter, which never expires.
    pub(crate) is_counter_new: bool,
}

/// The claim that such commands have made.
#[derive(PartialEq, Debug)]
pub(crate) enum Made {
    /// None.
    Nothing,
    /// One that must end, because the fair lock of the name has waiters.
    Behind,
    /// One without a token: the counter was lost. A renewal can state this one.
    Unnumbered(Token),
    /// One that must end, because the server is not the process that the client trusts.
    Untrusted,
    /// One that must end, because of this reply to another command.
    Void(Value),
}

impl Natives {
    /// Creates what is known about the connections of one server: nothing.
    pub(crate) fn new(youngest: Duration) -> Self {
        Natives {
            known: Mutex::default(),
            youngest,
        }
    }

    /// Returns the commands of an acquire, if it needs no script.
    pub(crate) fn take(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        home: &Home,
        now: Instant,
    ) -> Option<(Native, Tried)> {
        let mut watch = None;
        let tried = {
            let mut known = self.of(link);
            let since = *known.since.get_or_insert(now);
            let after = ask.after.filter(|_| fits(ask))?.0;
            let is_young = ask.check.is_none() && now < since + self.youngest;
            if known.is_refused || is_young || known.is_cold(&ask.name, now) {
                return None;
            }
            let tried = Tried {
                after,
                form: known.form,
            };
            if let Some(check) = ask.check {
                watch = Some(known.watch(check.trusted?, &ask.name, home));
            }
            tried
        };
        let name = &ask.name;
        let mut commands = Commands::with_capacity(384 + 3 * name.as_bytes().len());
        commands
            .begin("RESTORE", 3)
            .arg(name.as_bytes())
            .number(ask.kept_millis())
            .arg(payload::of(ask, tried.form).bytes());
        let check = commands.len();
        commands.key(key::queue(name));
        let draw = commands.len();
        commands.begin("INCR", 1).key(key::token(name));
        let bytes = commands.into_bytes();
        let native = Native::Take {
            bytes,
            check,
            draw,
            name: hash(name),
            watch,
        };
        Some((native, tried))
    }

    /// Judges the replies to the commands of an acquire. Returns the reply that the script would give to a grant.
    pub(crate) fn taken(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        Tried { after, form }: Tried,
        answer: &Value,
        now: impl FnOnce() -> Instant,
    ) -> Result<Value, NotGranted> {
        let parts: &[Value] = match answer {
            // The other two replies would say that the name was free, and that the fair lock has no waiters.
            Value::Int(_) => &[Value::Okay, Value::Int(0), answer.clone()],
            Value::Array(parts) => parts.as_slice(),
            _ => &[],
        };
        let (made, waiters, drawn, is_trusted) = match parts {
            [made, waiters, drawn] => (made, waiters, drawn, true),
            [made, waiters, drawn, _] => (made, waiters, drawn, false),
            _ => {
                return Err(NotGranted {
                    claim: Made::Nothing,
                    is_counter_new: false,
                });
            }
        };
        let is_counter_new = matches!(drawn, Value::Int(token) if token.cast_unsigned() <= after);
        let claim = match (made, waiters, drawn) {
            (Value::Okay, ..) if !is_trusted => Err(Made::Untrusted),
            (Value::Okay, Value::Int(0), Value::Int(token)) => {
                let token = token.cast_unsigned();
                if after < token && token < MOST_TOKEN {
                    Ok(token)
                } else {
                    Err(Made::Unnumbered(by_the_clock(ask.fence, after)))
                }
            }
            (Value::Okay, Value::Int(0), _) => Err(Made::Void(drawn.clone())),
            (Value::Okay, Value::Int(_), _) => Err(Made::Behind),
            (Value::Okay, ..) => Err(Made::Void(waiters.clone())),
            _ => Err(Made::Nothing),
        };
        if let Some(mut known) = self.still_of(link) {
            let is_other_form = form == Form::Compact && is_unreadable(made);
            if is_other_form {
                known.form = Form::Oldest;
            } else {
                known.is_refused |= is_final(made);
            }
            known.is_refused |= is_lasting(waiters) || is_lasting(drawn);
            if claim == Err(Made::Nothing) && !is_other_form {
                known.cool(&ask.name, now());
            }
        }
        claim.map(|_| drawn.clone()).map_err(|claim| NotGranted {
            claim,
            is_counter_new,
        })
    }

    /// Records the reply of a script to an acquire that was sent at this time.
    pub(crate) fn told(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        answer: &Value,
        sent: Instant,
    ) {
        if !is_granted(answer)
            && let Some(mut known) = self.still_of(link)
        {
            known.cool(&ask.name, sent);
        }
    }

    /// Returns the commands of a release, if it needs no script: it frees a name that was not found taken lately. (A release of a claim
    /// that was refused would wake waiters for nothing.)
    pub(crate) fn end(
        &self,
        link: &Arc<Connection>,
        ask: &Release,
        now: Instant,
    ) -> Option<Native> {
        if ask.count != 0 || ask.mode != Mode::Plain {
            return None;
        }
        {
            let known = self.of(link);
            if known.is_refused || known.is_cold(&ask.name, now) {
                return None;
            }
        }
        let name = &ask.name;
        let mut commands = Commands::with_capacity(192 + 2 * name.as_bytes().len());
        commands
            .begin("HDEL", 2)
            .arg(name.as_bytes())
            .owner(ask.owner);
        commands
            .begin("PUBLISH", 2)
            .key(key::channel(name))
            .arg(b"0");
        Some(Native::End {
            bytes: commands.into_bytes(),
            name: hash(name),
        })
    }

    /// Translates the replies to the commands of a release to that of the script. `None` if nothing was done.
    pub(crate) fn ended(&self, link: &Arc<Connection>, answer: Value) -> Option<Value> {
        let parts = match answer {
            Value::Int(_) => return Some(answer),
            Value::Array(parts) => parts,
            _ => return None,
        };
        let [gone, told] = <[Value; 2]>::try_from(parts).ok()?;
        match (gone, told) {
            (Value::Int(1), Value::Int(0)) => Some(Value::Int(1)),
            (Value::Int(1), Value::Int(told)) => Some(Value::Int(told.saturating_add(3))),
            (Value::Int(1), told) => Some(Value::Array(vec![Value::Int(1), told])),
            (Value::Int(_), _) => Some(Value::Int(0)),
            (gone, _) => {
                if let Some(mut known) = self.still_of(link) {
                    known.is_refused |= is_lasting(&gone);
                }
                None
            }
        }
    }

    /// What is known about the connection that a request is sent on, which is nothing if it is a new one.
    fn of(&self, link: &Arc<Connection>) -> MutexGuard<'_, Known> {
        let mut known = self.lock();
        if !known.is_of(link) {
            *known = Known::of(link);
        }
        known
    }

    /// What is known about the connection that a reply came on; `None` if requests are sent on another one by now.
    fn still_of(&self, link: &Arc<Connection>) -> Option<MutexGuard<'_, Known>> {
        Some(self.lock()).filter(|known| known.is_of(link))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says nothing about names, which may be secrets.
impl fmt::Debug for Natives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Natives")
    }
}

/// FNV-1a. Two names that have the same hash are not sent together, which costs a call and breaks nothing.
fn hash(name: &Name) -> NameHash {
    let bytes = name.as_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Whether a script has granted a name.
fn is_granted(answer: &Value) -> bool {
    match answer {
        Value::Int(_) => true,
        Value::Array(parts) => match parts.as_slice() {
            [Value::Int(2), Value::Int(_)] => true,
            // What the server shows of itself is behind the reply.
            [reply, _, _, _, _] => is_granted(reply),
            _ => false,
        },
        _ => false,
    }
}

/// Returns the place of the reply to `EXISTS` if a claim was made, and that reply is not known.
pub(crate) fn unchecked(answer: &mut Value) -> Option<&mut Value> {
    let Value::Array(parts) = answer else {
        return None;
    };
    match parts.as_mut_slice() {
        [Value::Okay, check @ Value::Nil, _] => Some(check),
        _ => None,
    }
}

/// Returns the command that gives a counter its time again, if it has one.
pub(crate) fn keep_counter(ask: &Acquire) -> Option<Cmd> {
    let Retention::Millis(kept) = ask.retention else {
        return None;
    };
    let mut cmd = redis::cmd("PEXPIRE");
    cmd.arg(key::token(&ask.name))
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
        && ask.replaces.is_none()
        && ask.continues.is_none()
        && ask.check.is_none_or(|check| {
            let grants = |marker| script::grants(marker, ask.lease.millis());
            // A node that has the trusted marker does nothing else.
            check.act != Act::Restate && check.trusted.is_some_and(grants)
        })
}

/// How far the newest token that was seen may be behind the clock, in milliseconds: the script stated one by the clock
/// when the name became warm, and each draw adds 1.
const MOST_BEHIND: u64 = 10_000;

/// Returns a token by the client's clock, as the script chooses it. The newest token that was seen stands for the server's
/// clock, from which the script allows a distance.
fn by_the_clock(fence: Fence, seen: u64) -> Token {
    let next = seen.saturating_add(1);
    Token(match fence {
        Fence::Mint {
            floor,
            slack_millis,
        } => {
            let most = next.saturating_add(slack_millis);
            floor.0.clamp(next, most.saturating_add(MOST_BEHIND))
        }
        Fence::Carry(token) => token.0.max(next),
    })
}

#[cfg(test)]
mod tests;
