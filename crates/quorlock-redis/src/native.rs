//! Claims without a script: for a free name, a few commands of the server do what `acquire.lua` and `release.lua` do,
//! in a third of the server's time.
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
//!   while this claim lives is refused. If the claim has ended before `INCR`, the caller learns from its clock that it
//!   may not begin.
//! - A waiter of the fair lock that queued before the claim was made is still there when `EXISTS` is executed. The claim
//!   is then ended, and the script says what is in the way.
//! - A refused request has drawn a token, too: tokens grow, but not always by one.
//!
//! The script also sees to it that tokens do not go back when a server has lost its counters: none is less than the
//! client's clock says. So the commands are used only for a name for which the same connection has run the script within
//! the last second ([`WARM`]). A server that was restarted, or another one, has another connection.
//!
//! Whatever else happens (the name is taken, the counter is gone, the user may not use a command), the script is run
//! next, and its reply counts.

mod commands;
mod payload;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use quorlock_core::fencing::Fence;
use quorlock_core::message::{Access, Acquire, Mode, Release, Retention};
use quorlock_core::name::Name;
use redis::{ServerErrorKind, Value};

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
#[derive(Debug, Default)]
pub(crate) struct Natives(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The connection that the rest is about.
    link: Weak<Connection>,
    /// The server has refused one of the commands.
    is_refused: bool,
    /// Claims may have a claim version, which only the script removes.
    has_margins: bool,
    names: HashMap<Name, Warm>,
}

/// A name for which the script was run.
#[derive(Debug)]
struct Warm {
    until: Instant,
    /// The newest token that was seen.
    token: u64,
}

/// What the commands of an acquire have done.
#[derive(PartialEq, Debug)]
pub(crate) enum Taken {
    /// The claim was made: the reply that the script would give.
    Granted(Value),
    /// No claim was made.
    Nothing,
    /// A claim was made that must end. The fair lock of the name may have waiters.
    Orphan(Mode),
}

impl Natives {
    /// Returns the commands of an acquire, if it needs no script.
    pub(crate) fn take(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        now: Instant,
    ) -> Option<Packed> {
        {
            let mut known = self.of(link);
            known.has_margins |= ask.keep.is_some();
            let is_warm = |warm: &Warm| now < warm.until;
            if known.is_refused || !fits(ask) || !known.names.get(&ask.name).is_some_and(is_warm) {
                return None;
            }
        }
        let name = ask.name.as_bytes();
        let mut commands = Commands::with_capacity(256 + 3 * name.len());
        commands
            .begin("RESTORE", 3)
            .arg(name)
            .number(ask.lease.millis())
            .arg(&payload::of(ask.owner));
        commands.begin("EXISTS", 1).key(key::queue(name));
        commands.begin("INCR", 1).key(key::token(name));
        Some(commands.packed())
    }

    /// Judges the replies to the commands of an acquire.
    pub(crate) fn taken(&self, link: &Arc<Connection>, ask: &Acquire, answer: &Value) -> Taken {
        let mut known = self.of(link);
        let parts = match answer {
            Value::Array(parts) => parts.as_slice(),
            _ => &[],
        };
        let [made, waiters, drawn] = parts else {
            return Taken::Nothing;
        };
        known.is_refused |= parts.iter().any(is_lasting);
        if *made != Value::Okay {
            known.names.remove(&ask.name);
            return Taken::Nothing;
        }
        let token = match drawn {
            Value::Int(token) => u64::try_from(*token).unwrap_or(0),
            _ => 0,
        };
        let last = known.names.get_mut(&ask.name).map(|warm| &mut warm.token);
        match (waiters, last) {
            (Value::Int(0), Some(last)) if *last < token && token < MOST_TOKEN => {
                *last = token;
                Taken::Granted(drawn.clone())
            }
            (Value::Int(0), _) => {
                known.names.remove(&ask.name);
                Taken::Orphan(Mode::Plain)
            }
            _ => {
                known.names.remove(&ask.name);
                Taken::Orphan(Mode::Fair)
            }
        }
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
        let Some(token) = token.filter(|_| !known.is_refused) else {
            known.names.remove(&ask.name);
            return;
        };
        // The counter is kept for its time since the script, but for an eighth.
        let warm = match ask.retention {
            Retention::Millis(kept) => WARM.min(Duration::from_millis(kept / 8)),
            Retention::Forever => WARM,
        };
        let warm = Warm {
            until: sent + warm,
            token,
        };
        if let Some(before) = known.names.get_mut(&ask.name) {
            before.token = before.token.max(token);
            before.until = before.until.max(warm.until);
            return;
        }
        if MOST_NAMES <= known.names.len() {
            known.names.retain(|_, warm| sent < warm.until);
        }
        if known.names.len() < MOST_NAMES {
            known.names.insert(ask.name.clone(), warm);
        }
    }

    /// Returns the commands of a release, if it needs no script.
    pub(crate) fn end(&self, link: &Arc<Connection>, ask: &Release) -> Option<Packed> {
        {
            let known = self.of(link);
            let fits = ask.mode == Mode::Plain && ask.count == 0;
            if !fits || known.is_refused || known.has_margins {
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
            (Value::Int(1), told @ Value::ServerError(_)) => {
                Some(Value::Array(vec![Value::Int(1), told]))
            }
            (Value::Int(0), _) => Some(Value::Int(0)),
            (gone, _) => {
                self.of(link).is_refused |= is_lasting(&gone);
                None
            }
        }
    }

    /// What is known about a connection: nothing, if it is another one than before.
    fn of(&self, link: &Arc<Connection>) -> MutexGuard<'_, Known> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.link.as_ptr() != Arc::as_ptr(link) {
            // The pointer is not used again while there is a `Weak` to it.
            known.link = Arc::downgrade(link);
            known.is_refused = false;
            known.names.clear();
        }
        known
    }
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

/// Whether the server will refuse the command again: the user may not use it, or the server does not know it or what
/// it restores.
fn is_lasting(reply: &Value) -> bool {
    let Value::ServerError(error) = reply else {
        return false;
    };
    let words = error.details().unwrap_or_default();
    match error.kind() {
        Some(ServerErrorKind::NoPerm) => error::denied_command(words).is_some(),
        Some(ServerErrorKind::ResponseError) => {
            words.starts_with("unknown command") || words.starts_with("DUMP payload")
        }
        _ => false,
    }
}
