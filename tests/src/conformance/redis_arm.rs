//! A server behind the adapter as an arm: a real one, or one that speaks like it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use quorlock_core::claim_version::ClaimVersion;
use quorlock_core::fencing::Token;
use quorlock_core::marker::{MarkerState, Nonce, Process};
use quorlock_core::message::{Channel, Reply, Request, Ttl, Wake};
use quorlock_core::name::Name;
use quorlock_core::node::{Held, KeyKind, ReadWrite};
use quorlock_core::owner::OwnerId;
use quorlock_core::time::millis_of;
use quorlock_core::transport::{Cause, Execution, Transport};
use quorlock_redis::{RedisConfig, RedisTransport};
use redis::{FromRedisValue, Msg};
use tokio::runtime::Handle;

use super::arm::{Arm, Looks, MarkerLooks};
use super::names::channels;
use super::raw::Replies;
use super::step::Plant;
use crate::wire;
use quorlock_testbed::server::Server;
use quorlock_testbed::wait::BOUND;

/// ARGV[1]: milliseconds. Ages every key by this time, and deletes keys that would have expired.
const AGE: &str = "
for _, key in ipairs(redis.call('keys', '*')) do
  local ttl = redis.call('pttl', key)
  if 0 <= ttl then
    if ttl <= tonumber(ARGV[1]) then
      redis.call('del', key)
    else
      redis.call('pexpire', key, string.format('%.0f', ttl - tonumber(ARGV[1])))
    end
  end
  if redis.call('type', key).ok == 'zset' then
    for _, member in ipairs(redis.call('zrange', key, 0, -1)) do
      redis.call('zincrby', key, -ARGV[1], member)
    end
  end
end";

/// ARGV[1]: a prefix. Deletes the keys with this prefix.
const DELETE: &str = "
for _, key in ipairs(redis.call('keys', '*')) do
  if string.sub(key, 1, #ARGV[1]) == ARGV[1] then redis.call('del', key) end
end";

/// Returns every key as {key, type, TTL, its fields and values, its members or its text}. For a sorted set, these
/// include the time that each member has left.
const LOOK: &str = concat!(
    sorted!(),
    "
local looks, keys = {}, redis.call('keys', '*')
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
table.sort(keys)
for _, key in ipairs(keys) do
  local kind = redis.call('type', key).ok
  local value
  if kind == 'hash' then
    value = sorted(redis.call('hgetall', key))
  elseif kind == 'list' then
    value = redis.call('lrange', key, 0, -1)
  elseif kind == 'zset' then
    value = redis.call('zrange', key, 0, -1, 'withscores')
    for i = 2, #value, 2 do value[i] = string.format('%.0f', math.max(value[i] - now, 0)) end
  else
    value = {redis.call('get', key)}
  end
  table.insert(looks, {key, kind, redis.call('pttl', key), value})
end
return looks"
);

/// The key of a server's marker.
const MARKER_KEY: &str = "quorlock_marker";

/// Returns the process of the server, as markers identify it.
const PROCESS: &str = "
return string.sub(string.match(redis.call('info', 'replication'), 'master_replid:(%x+)'), 1, 13)";

/// KEYS[1]: a marker. Makes it the marker of another process.
const RESTART: &str = "
local marker = redis.call('get', KEYS[1])
if marker then
  local left = redis.call('pttl', KEYS[1])
  redis.call('set', KEYS[1], (string.gsub(marker, '^%x+:', string.rep('0', 13) .. ':')))
  if left > 0 then redis.call('pexpire', KEYS[1], left) end
end";

/// What other programs write into a key that is no lock.
const TEXT: &str = "not a lock";

/// A message on this channel after each request shows that all earlier messages were received.
const MARKER: &str = "marker";

/// A server that is used through [`RedisTransport`], or through another transport.
pub struct RedisArm {
    /// A server that the arm has started, if there is one. It ends with the arm.
    _server: Option<Server>,
    looking: RefCell<Replies>,
    runtime: Handle,
    transport: Arc<dyn Transport>,
    subscriber: Replies,
    channels: BTreeMap<String, Channel>,
    /// The server's process, as markers identify it.
    process: String,
    /// Whether keys were evicted in the present sequence.
    has_evicted: bool,
}

impl std::fmt::Debug for RedisArm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RedisArm").field(&self.transport).finish()
    }
}

impl RedisArm {
    /// Starts a real server for these names. Calls are made from the current runtime.
    ///
    /// # Panics
    /// Panics if the server or a connection does not come up.
    #[must_use]
    pub fn start(names: &[Name]) -> Self {
        let server = Server::start();
        let arm = RedisArm::at(server.port(), names);
        RedisArm {
            _server: Some(server),
            ..arm
        }
    }

    /// Uses the server on this port of the loopback interface, which has no other client.
    ///
    /// # Panics
    /// Panics if a connection does not come up.
    #[must_use]
    pub fn at(port: u16, names: &[Name]) -> Self {
        let address = format!("redis://127.0.0.1:{port}/");
        let patient = RedisConfig::default()
            .call_timeout(BOUND)
            .only_scripts(true);
        let transport = RedisTransport::open(&address, patient).expect("a well-formed address");
        let mut subscriber = Replies::connect(port);
        subscriber.ask(&["PSUBSCRIBE", "*"]);
        let mut arm = RedisArm {
            _server: None,
            looking: RefCell::new(Replies::connect(port)),
            runtime: Handle::current(),
            transport: Arc::new(transport),
            subscriber,
            channels: names
                .iter()
                .flat_map(channels)
                .map(|channel| (wire::channel_of(&channel), channel))
                .collect(),
            process: String::new(),
            has_evicted: false,
        };
        arm.process = arm.command(&["EVAL", PROCESS, "0"]);
        arm
    }

    /// Sends the requests through another transport to the same server.
    #[must_use]
    pub fn through(self, transport: impl Transport) -> Self {
        RedisArm {
            transport: Arc::new(transport),
            ..self
        }
    }

    fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let said = self.looking.borrow_mut().ask(words);
        let answer = redis::parse_redis_value(&said).and_then(redis::Value::extract_error);
        let answer = answer.and_then(|value| Ok(redis::from_redis_value(value)?));
        answer.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    fn write(&self, words: &[&str], key: &str, ttl: Option<Duration>) {
        self.command::<()>(words);
        if let Some(ttl) = ttl {
            let millis = millis_of(ttl).to_string();
            self.command::<()>(&["PEXPIRE", key, &millis]);
        }
    }

    fn plant_key(&self, name: &Name, held: &Held, ttl: Option<Duration>) {
        let key = wire::claim_key(name);
        self.command::<()>(&["DEL", &key]);
        let leases = wire::leases(name);
        self.command::<()>(&["EVAL", DELETE, "0", &leases]);
        match held {
            Held::Plain { owner, count } => {
                let (owner, count) = (owner.to_string(), count.to_string());
                self.write(&["HSET", &key, &owner, &count], &key, ttl);
            }
            Held::ReadWrite(held) => {
                let mode = match held.writer {
                    Some(_) => "write",
                    None => "read",
                };
                self.write(&["HSET", &key, "mode", mode], &key, ttl);
                if let Some((owner, count)) = held.writer {
                    let (field, count) = (format!("{owner}:write"), count.to_string());
                    self.command::<()>(&["HSET", &key, &field, &count]);
                }
                for (owner, count) in &held.readers {
                    let (owner, count) = (owner.to_string(), count.to_string());
                    self.command::<()>(&["HSET", &key, &owner, &count]);
                    let lease = format!("{leases}{owner}:rwlock_timeout:1");
                    self.write(&["SET", &lease, "1"], &lease, ttl);
                }
            }
            Held::NotALock => self.write(&["SET", &key, TEXT], &key, ttl),
        }
    }
}

impl Arm for RedisArm {
    fn begin(&mut self) {
        self.has_evicted = false;
        self.command::<()>(&["FLUSHALL"]);
    }

    fn process(&self) -> Process {
        Process(u64::from_str_radix(&self.process, 16).expect("digits"))
    }

    fn apply(&mut self, request: &Request) -> Result<Reply, Cause> {
        let mut answers = self.apply_together(std::slice::from_ref(request));
        answers.pop().expect("one for each request")
    }

    fn apply_together(&mut self, requests: &[Request]) -> Vec<Result<Reply, Cause>> {
        let calls = requests.iter().map(|r| self.transport.call(r.clone()));
        let calls = join_all(calls);
        let answers = tokio::task::block_in_place(|| self.runtime.block_on(calls));
        let answers = answers.into_iter().map(|answer| {
            answer.map_err(|error| {
                assert_eq!(error.execution, Execution::Definite, "{error:?}");
                error.cause
            })
        });
        answers.collect()
    }

    /// The only listener is the arm's own subscriber.
    fn told(&self) -> u32 {
        1
    }

    fn published(&mut self) -> Vec<(Channel, Wake)> {
        self.command::<()>(&["PUBLISH", MARKER, ""]);
        let mut published = Vec::new();
        loop {
            let pushed = self.subscriber.next();
            let pushed = redis::parse_redis_value(&pushed).expect("a message");
            let message = Msg::from_value(&pushed).expect("a message");
            let payload: String = message.get_payload().expect("text");
            match (message.get_channel_name(), payload.as_str()) {
                (MARKER, _) => return published,
                (channel, "0") => published.push((self.channel(channel), Wake::Unlocked)),
                (channel, "1") => published.push((self.channel(channel), Wake::ReadersMayEnter)),
                (channel, other) => panic!("{other:?} was published on {channel:?}"),
            }
        }
    }

    fn pass(&mut self, span: Duration) {
        let millis = millis_of(span).to_string();
        self.command::<()>(&["EVAL", AGE, "0", &millis]);
    }

    fn plant(&mut self, plant: &Plant) {
        match plant {
            Plant::Key { name, held, ttl } => self.plant_key(name, held, *ttl),
            Plant::Evict { name, kinds } => {
                self.has_evicted = true;
                for kind in kinds {
                    self.command::<()>(&["DEL", &key_of(*kind, name)]);
                }
            }
            Plant::Restart => self.command::<()>(&["EVAL", RESTART, "1", MARKER_KEY]),
            Plant::Token { name, token, ttl } => {
                let key = wire::token_key(name);
                self.write(&["SET", &key, &token.to_string()], &key, *ttl);
            }
        }
    }

    fn look(&mut self, names: &[Name]) -> Looks {
        type Key = (String, String, i64, Vec<String>);
        let mut looks = Looks::default();
        let (mut alive, mut timeouts) = (BTreeMap::new(), BTreeMap::new());
        let keys: Vec<Key> = self.command(&["EVAL", LOOK, "0"]);
        for (key, kind, ttl, value) in keys {
            let ttl = u64::try_from(ttl).map_or(Ttl::Unbounded, Ttl::Millis);
            if let Some(name) = names.iter().find(|n| wire::claim_key(n) == key) {
                let mut value = value;
                if let Some(version) = take_version(&kind, &mut value) {
                    looks.versions.insert(name.clone(), version);
                }
                let held = held(&kind, &value);
                looks.claims.insert(name.clone(), (held, ttl));
            } else if key == MARKER_KEY {
                looks.marker = Some((self.marker(&value[0]), ttl));
            } else if let Some(kind) = kind_of(names, &key) {
                // Twins have these keys together.
                for name in names.iter().filter(|name| key_of(kind, name) == key) {
                    match kind {
                        KeyKind::Token => {
                            let token = value[0].parse().expect("a token is digits");
                            looks.tokens.insert(name.clone(), (Token(token), ttl));
                        }
                        KeyKind::Queue => {
                            let queue = value.iter().map(|o| (owner(o), ttl)).collect();
                            looks.queues.insert(name.clone(), queue);
                        }
                        KeyKind::Alive => drop(alive.insert(name.clone(), members(&value))),
                        _ => drop(timeouts.insert(name.clone(), members(&value))),
                    }
                }
            } else if let Some((name, reader)) = names.iter().find_map(|n| lease(n, &key)) {
                looks.leases.insert((name, reader), ttl);
            } else if !key.contains(":rwlock_timeout:") {
                panic!("there is a key that should not be there: {key:?}");
            }
        }
        for (name, queue) in &mut looks.queues {
            let (alive, timeouts) = (alive.remove(name), timeouts.remove(name));
            let is_whole = alive.is_some() && timeouts.is_some();
            assert!(is_whole || self.has_evicted, "{name} has a part of a queue");
            if let Some(timeouts) = timeouts {
                assert_eq!(timeouts.len(), queue.len(), "all have a time for Redisson");
            }
            let Some(mut alive) = alive else {
                // The waiters count as alive until the queue expires.
                continue;
            };
            for (owner, ttl) in queue {
                *ttl = alive.remove(owner).expect("a waiter of ours");
            }
            assert!(alive.is_empty(), "{alive:?} do not wait any more");
        }
        assert!(self.has_evicted || alive.is_empty() && timeouts.is_empty());
        looks
    }
}

impl RedisArm {
    fn marker(&self, text: &str) -> MarkerLooks {
        let words: Vec<_> = text.split(':').collect();
        let [process, nonce, figures, state] = words.as_slice() else {
            panic!("{text:?} is no marker");
        };
        MarkerLooks {
            is_own: *process == self.process,
            nonce: Nonce::new(nonce.parse().expect("a nonce")),
            figures: figures.parse().expect("figures"),
            state: match *state {
                "ripe" => MarkerState::Confirmed,
                "unripe" => MarkerState::Observing,
                _ => panic!("{text:?} is no marker"),
            },
        }
    }

    fn channel(&self, text: &str) -> Channel {
        let channel = self.channels.get(text);
        channel
            .unwrap_or_else(|| panic!("no listener on {text:?}"))
            .clone()
    }
}

/// Returns a key of a name.
fn key_of(kind: KeyKind, name: &Name) -> String {
    match kind {
        KeyKind::Claim => wire::claim_key(name),
        KeyKind::Token => wire::token_key(name),
        KeyKind::Queue => wire::queue_key(name),
        KeyKind::Alive => wire::alive_key(name),
        KeyKind::Timeouts => wire::timeouts_key(name),
    }
}

/// Returns which key of one of these names it is, if it is any besides a claim.
fn kind_of(names: &[Name], key: &str) -> Option<KeyKind> {
    use KeyKind::{Alive, Queue, Timeouts, Token};
    let is = |kind: &KeyKind| names.iter().any(|name| key_of(*kind, name) == key);
    [Token, Queue, Alive, Timeouts].into_iter().find(is)
}

fn owner(text: &str) -> OwnerId {
    text.parse().expect("an owner")
}

/// Returns the members of a sorted set, with the time that each member has left.
fn members(value: &[String]) -> BTreeMap<OwnerId, Ttl> {
    let pairs = value.chunks(2);
    let member = |pair: &[String]| (owner(&pair[0]), Ttl::Millis(pair[1].parse().expect("ms")));
    pairs.map(member).collect()
}

/// Returns the owner of a reader's lease, if the key is the key of the reader's first hold. The other holds may end
/// earlier.
fn lease(name: &Name, key: &str) -> Option<(Name, OwnerId)> {
    let reader = key.strip_prefix(&wire::leases(name))?;
    let reader = reader.strip_suffix(":rwlock_timeout:1")?;
    Some((name.clone(), owner(reader)))
}

/// Removes the claim version from a claim that has one, and returns it.
fn take_version(kind: &str, value: &mut [String]) -> Option<ClaimVersion> {
    let [owner, value] = value else { return None };
    let (count, version) = value.split_once(' ').filter(|_| kind == "hash")?;
    let (number, lease) = version.split_once(' ').expect("a number and a lease");
    let version = ClaimVersion {
        owner: owner.parse().expect("an owner"),
        number: number.parse().expect("a number"),
        lease_millis: lease.parse().expect("milliseconds"),
    };
    *value = count.to_owned();
    Some(version)
}

/// Parses a key. A plain claim is a single field: its owner, with the count.
fn held(kind: &str, value: &[String]) -> Held {
    match (kind, value) {
        ("hash", [owner, count]) => Held::Plain {
            owner: owner.parse().expect("an owner"),
            count: count.parse().expect("a count"),
        },
        ("hash", fields) => {
            let mut held = ReadWrite::default();
            let mut mode = None;
            for field in fields.chunks(2) {
                let [field, value] = field else {
                    unreachable!("fields have values")
                };
                let count = || value.parse().expect("a count");
                match field.strip_suffix(":write") {
                    _ if field == "mode" => mode = Some(value.as_str()),
                    Some(writer) => held.writer = Some((self::owner(writer), count())),
                    None => {
                        held.readers.insert(self::owner(field), count());
                    }
                }
            }
            let expected = held.writer.map_or("read", |_| "write");
            assert_eq!(mode, Some(expected), "{fields:?}");
            Held::ReadWrite(held)
        }
        ("string", [text]) if text == TEXT => Held::NotALock,
        _ => panic!("a {kind} that no lock is: {value:?}"),
    }
}
