//! The commands, keys and channels of each kind of lock, as the scripts in `lua/` use them.

use quorlock_core::message::{Access, Mode, Request};
use quorlock_core::name::Name;

use crate::key::{self, Derived};
use crate::script::Home;

/// What a part of a name is used for: the commands with which the scripts use a key or a channel.
type Part = (Place, &'static [&'static str]);

/// A key or a channel of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Claim,
    Token,
    Queue,
    Timeouts,
    Alive,
    /// The lease of one hold of a reader.
    Lease,
    /// The channel of a plain lock.
    Lock,
    /// The channel of one waiter for a fair lock.
    Waiter,
    ReadWrite,
}

/// The commands of wake-ups. A user without them can lock, and polls.
const LISTENS: &[&str] = &["publish", "subscribe"];
const TOKEN: Part = (Place::Token, &["get", "set", "pttl"]);

const PLAIN: &[Part] = &[
    (
        Place::Claim,
        &["exists", "pttl", "hmget", "hset", "pexpire", "del"],
    ),
    TOKEN,
    (Place::Queue, &["exists"]),
    (Place::Lock, LISTENS),
];

/// What an acquire with a margin needs beside one without.
const MARGIN: &[Part] = &[(Place::Claim, &["hlen", "hgetall"])];

/// What passing a claim on needs beside an acquire.
const HAND_OVER: &[Part] = &[(Place::Claim, &["hdel"])];

const FAIR: &[Part] = &[
    (
        Place::Claim,
        &["exists", "pttl", "hmget", "hset", "pexpire", "del"],
    ),
    TOKEN,
    (
        Place::Queue,
        &[
            "lindex", "rpush", "lpop", "lrem", "persist", "pexpire", "pttl",
        ],
    ),
    (
        Place::Timeouts,
        &["zscore", "zadd", "zrem", "persist", "pexpire"],
    ),
    (Place::Alive, &["zscore", "zadd", "zrem", "pexpire"]),
    (Place::Waiter, LISTENS),
];

const READ_WRITE: &[Part] = &[
    (
        Place::Claim,
        &["pttl", "hmget", "hset", "pexpire", "del", "hscan", "hdel"],
    ),
    TOKEN,
    (Place::Lease, &["exists", "pttl", "set", "pexpire", "del"]),
    (Place::ReadWrite, LISTENS),
];

const INSPECT: &[Part] = &[
    (Place::Claim, &["pttl", "hlen", "hmget", "hgetall"]),
    (Place::Token, &["get"]),
    (Place::Queue, &["llen"]),
    (Place::Lease, &["exists"]),
];

const FORCE_RELEASE: &[Part] = &[
    (Place::Claim, &["hlen", "hmget", "hgetall", "del"]),
    (Place::Queue, &["lindex", "lpop", "persist"]),
    (Place::Timeouts, &["zscore", "zrem", "persist"]),
    (Place::Alive, &["zscore", "zrem"]),
    (Place::Lease, &["del"]),
    (Place::Lock, &["publish"]),
    (Place::ReadWrite, &["publish"]),
];

const MARKER: &[&str] = &["get", "set", "pttl", "pexpire"];

/// Commands without a key or channel, as complete commands.
const ALWAYS: &[&[&str]] = &[
    &["evalsha", "0", "0"],
    &["eval", "0", "0"],
    &["time"],
    &["unsubscribe", "0"],
    &["ping"],
];

/// Commands by which it is found out whether a key may be used at all.
const PROBES: &[&str] = &["exists", "del"];

/// Something that a user may lack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Thing {
    Key { name: Vec<u8>, pattern: String },
    Channel { name: Vec<u8>, pattern: String },
    Command(String),
}

/// A command on a key or channel, or on nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    verb: &'static str,
    /// Index of the key or channel in `things`.
    on: Option<usize>,
    /// Complete command, if there is no key or channel.
    whole: &'static [&'static str],
    /// Whether the lock needs it. The others only tell whether the key may be used.
    is_needed: bool,
}

/// The uses of the keys and channels of one name.
#[derive(Debug)]
pub(crate) struct Needs {
    things: Vec<Thing>,
    uses: Vec<Use>,
}

/// What a user may want to do with names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// Hold plain locks, on servers that are watched.
    Watched,
    /// Hold plain locks, on servers that are not watched.
    Plain,
    Fair,
    ReadWrite,
    /// Inspect names, and release them by force.
    Operate,
}

impl Needs {
    pub(crate) fn of(request: &Request, home: &Home, prefix: &[u8]) -> Needs {
        let (name, parts): (Option<&Name>, &[Part]) = match request {
            Request::Acquire(ask) => {
                let parts = match ask.access {
                    Access::Plain => PLAIN,
                    Access::Fair(_) => FAIR,
                    Access::Read { .. } | Access::Write => READ_WRITE,
                };
                (Some(&ask.name), parts)
            }
            Request::Renew(ask) => (
                ask.claims.first().map(|claim| &claim.name),
                of_mode(ask.mode),
            ),
            Request::Release(ask) => (Some(&ask.name), of_mode(ask.mode)),
            Request::Inspect(ask) => (Some(&ask.name), INSPECT),
            Request::ForceRelease(ask) => (Some(&ask.name), FORCE_RELEASE),
            Request::Probe(_) => (None, &[]),
        };
        let has_check = match request {
            Request::Acquire(ask) => ask.check.is_some(),
            Request::Probe(_) => true,
            _ => false,
        };
        let (continues, keeps) = match request {
            Request::Acquire(ask) => (ask.continues.is_some(), ask.keep.is_some()),
            _ => (false, false),
        };
        let next = if continues { HAND_OVER } else { &[] };
        let margin = if keeps { MARGIN } else { &[] };
        Needs::made(name, &[parts, next, margin], has_check, home, prefix)
    }

    /// The needs of everything that the user may want to do with a name in this way.
    pub(crate) fn to(wish: Wish, name: &Name, home: &Home, prefix: &[u8]) -> Needs {
        let parts: &[&[Part]] = match wish {
            Wish::Watched => &[PLAIN, MARGIN],
            Wish::Plain => &[PLAIN],
            Wish::Fair => &[FAIR],
            Wish::ReadWrite => &[READ_WRITE],
            Wish::Operate => &[INSPECT, FORCE_RELEASE],
        };
        Needs::made(Some(name), parts, wish == Wish::Watched, home, prefix)
    }

    fn made(
        name: Option<&Name>,
        parts: &[&[Part]],
        has_check: bool,
        home: &Home,
        prefix: &[u8],
    ) -> Needs {
        let mut needs = Needs {
            things: Vec::new(),
            uses: Vec::new(),
        };
        if let Some(name) = name {
            for parts in parts {
                needs.add(parts, name, prefix);
            }
        }
        let always = ALWAYS.iter().copied();
        let info: &[&'static [&'static str]] = if has_check { &[&["info"]] } else { &[] };
        for whole in always.chain(info.iter().copied()) {
            let verb = whole.first().copied().unwrap_or_default();
            needs.uses.push(Use {
                verb,
                on: None,
                whole,
                is_needed: true,
            });
        }
        if has_check {
            needs.mark(home);
        }
        needs
    }

    fn mark(&mut self, home: &Home) {
        let name = home.marker(&home.namespace);
        let pattern = match &*home.namespace {
            b"" => pattern(&name),
            namespace => pattern(namespace) + "*",
        };
        self.push(Thing::Key { name, pattern }, MARKER);
    }

    fn add(&mut self, parts: &[Part], name: &Name, prefix: &[u8]) {
        for (place, verbs) in parts {
            self.push(thing(*place, name, prefix), verbs);
        }
    }

    fn push(&mut self, thing: Thing, verbs: &[&'static str]) {
        let on = Some(self.things.len());
        let is_key = matches!(thing, Thing::Key { .. });
        self.things.push(thing);
        let used = |verb: &&'static str, is_needed| Use {
            verb,
            on,
            whole: &[],
            is_needed,
        };
        self.uses.extend(verbs.iter().map(|verb| used(verb, true)));
        if is_key {
            self.uses
                .extend(PROBES.iter().map(|verb| used(verb, false)));
        }
    }

    /// Leaves only the uses of `PUBLISH`. Those of `SUBSCRIBE` stay to tell the channel from the command.
    pub(crate) fn only_publish(&mut self) {
        self.uses.retain(|used| LISTENS.contains(&used.verb));
        for used in &mut self.uses {
            used.is_needed = used.verb == "publish";
        }
    }

    /// Leaves only the uses of wake-ups.
    pub(crate) fn only_wake_ups(&mut self) {
        self.uses.retain(|used| LISTENS.contains(&used.verb));
    }

    /// Leaves out the uses of wake-ups.
    pub(crate) fn no_wake_ups(&mut self) {
        self.uses.retain(|used| !LISTENS.contains(&used.verb));
    }

    pub(crate) fn uses(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter()
    }

    /// Returns a complete command of this use.
    pub(crate) fn words(&self, used: &Use) -> Vec<Vec<u8>> {
        let Some(thing) = used.on.and_then(|on| self.things.get(on)) else {
            let words = used.whole.iter();
            return words.map(|word| word.as_bytes().to_vec()).collect();
        };
        let (Thing::Key { name, .. } | Thing::Channel { name, .. }) = thing else {
            return Vec::new();
        };
        let mut words = vec![used.verb.as_bytes().to_vec(), name.clone()];
        words.extend(arguments(used.verb).map(|word| word.as_bytes().to_vec()));
        words
    }

    /// Returns the commands that the server does not have.
    pub(crate) fn unknown(&self, replies: &[i64]) -> Vec<String> {
        let mut unknown: Vec<String> = Vec::new();
        for (used, reply) in self.uses.iter().zip(replies) {
            let verb = used.verb.to_uppercase();
            if *reply == 1 && used.is_needed && !unknown.contains(&verb) {
                unknown.push(verb);
            }
        }
        unknown
    }

    /// Returns what the user lacks. A refused command on a key shows only that one of the two is missing: it is the key
    /// if the command is allowed on another one, and the command if the key may be used by another command.
    pub(crate) fn missing(&self, replies: &[i64]) -> Vec<Thing> {
        let all = || self.uses.iter().zip(replies);
        let may = |verb: &str| all().any(|(used, reply)| used.verb == verb && *reply == 0);
        let may_any = |on| all().any(|(used, reply)| used.on == on && *reply == 0);
        let mut missing: Vec<Thing> = Vec::new();
        for (used, _) in all().filter(|(_, reply)| **reply == 2) {
            let thing = used.on.and_then(|on| self.things.get(on));
            let thing = match thing {
                Some(thing) if may(used.verb) || !may_any(used.on) => thing.clone(),
                _ if !used.is_needed => continue,
                _ => Thing::Command(used.verb.to_owned()),
            };
            if !missing.contains(&thing) {
                missing.push(thing);
            }
        }
        missing.sort_by_key(|thing| matches!(thing, Thing::Command(_)));
        missing
    }

    /// Returns all that the user may lack, and whether some of it may be there: of a refused command on a key it is unknown
    /// which of the two is missing if neither is allowed elsewhere.
    pub(crate) fn perhaps_missing(&self, replies: &[i64]) -> (Vec<Thing>, bool) {
        let all = || self.uses.iter().zip(replies);
        let may = |verb: &str| all().any(|(used, reply)| used.verb == verb && *reply == 0);
        let may_any = |on| all().any(|(used, reply)| used.on == on && *reply == 0);
        let mut missing = self.missing(replies);
        let mut is_certain = true;
        for (used, _) in all().filter(|(used, reply)| **reply == 2 && used.is_needed) {
            let command = Thing::Command(used.verb.to_owned());
            let is_open = used.on.is_some() && !may(used.verb) && !may_any(used.on);
            if is_open && !missing.contains(&command) {
                missing.push(command);
                is_certain = false;
            }
        }
        (missing, is_certain)
    }

    /// Returns everything of the kind that these words of a server are about.
    pub(crate) fn of_kind(&self, words: &str) -> Vec<Thing> {
        let things = self.things.iter();
        let of_kind: Vec<Thing> = if words.contains("channel") {
            things
                .filter(|thing| matches!(thing, Thing::Channel { .. }))
                .cloned()
                .collect()
        } else if words.contains("key") {
            things
                .filter(|thing| matches!(thing, Thing::Key { .. }))
                .cloned()
                .collect()
        } else {
            Vec::new()
        };
        if !of_kind.is_empty() {
            return of_kind;
        }
        let mut verbs: Vec<&'static str> = Vec::new();
        for used in self.uses.iter().filter(|used| used.is_needed) {
            if !verbs.contains(&used.verb) {
                verbs.push(used.verb);
            }
        }
        let verbs = verbs.into_iter().map(String::from);
        verbs.map(Thing::Command).collect()
    }
}

fn of_mode(mode: Mode) -> &'static [Part] {
    match mode {
        Mode::Plain => PLAIN,
        Mode::Fair => FAIR,
        Mode::Read | Mode::Write => READ_WRITE,
    }
}

/// The arguments that follow the key or channel in the shortest complete command.
fn arguments(verb: &str) -> impl Iterator<Item = &'static str> {
    let count = match verb {
        "hset" | "zadd" | "lrem" => 2,
        "hmget" | "hdel" | "hscan" | "zscore" | "zrem" | "lindex" | "rpush" | "pexpire" | "set"
        | "publish" => 1,
        _ => 0,
    };
    std::iter::repeat_n("0", count)
}

fn thing(place: Place, name: &Name, prefix: &[u8]) -> Thing {
    let of = |key: Derived<'_>| (key.to_bytes(), Some(key.beginning()));
    let (own, beginning) = match place {
        Place::Claim => (name.as_bytes().to_vec(), None),
        Place::Token => of(key::token(name)),
        Place::Queue => of(key::queue(name)),
        Place::Timeouts => of(key::timeouts(name)),
        Place::Alive => of(key::alive(name)),
        Place::Lease => (
            [&key::leases(name)[..], b"0:rwlock_timeout:1"].concat(),
            None,
        ),
        Place::Lock => of(key::channel(name)),
        Place::Waiter => (
            [&key::channel(name).to_bytes()[..], b":0"].concat(),
            Some(key::channel(name).beginning()),
        ),
        Place::ReadWrite => of(key::read_write_channel(name)),
    };
    // All of the namespace; or all names with the prefix; or else everything of this kind, or this name alone.
    let at = (!prefix.is_empty())
        .then(|| own.windows(prefix.len()).position(|part| part == prefix))
        .flatten();
    let pattern = match (at, beginning) {
        _ if !name.split().0.is_empty() => pattern(name.split().0) + "*",
        (Some(at), _) => pattern(own.get(..at + prefix.len()).unwrap_or_default()) + "*",
        (None, Some(beginning)) => pattern(&beginning) + "*",
        (None, None) if place == Place::Lease => {
            pattern(own.strip_suffix(b"0:rwlock_timeout:1").unwrap_or(&own)) + "*"
        }
        (None, None) => pattern(&own),
    };
    match place {
        Place::Lock | Place::Waiter | Place::ReadWrite => Thing::Channel { name: own, pattern },
        _ => Thing::Key { name: own, pattern },
    }
}

/// Returns a pattern that matches this text. A character that is special in a pattern or a command line becomes `?`.
fn pattern(text: &[u8]) -> String {
    let plain = |byte: &u8| match byte {
        b'*' | b'?' | b'[' | b']' | b'\\' | b'"' | b'\'' => '?',
        byte if byte.is_ascii_graphic() => char::from(*byte),
        _ => '?',
    };
    text.iter().map(plain).collect()
}
