//! A real server behind the adapter, as an arm.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::message::{Mode, Reply, Request, Ttl, Wake};
use quorlock_core::name::Name;
use quorlock_core::node::Held;
use quorlock_core::time::millis_of;
use quorlock_core::transport::{Cause, Execution, Transport};
use quorlock_redis::{RedisConfig, RedisTransport};
use redis::Msg;
use tokio::runtime::Handle;

use super::arm::{Arm, Looks};
use super::step::Plant;
use crate::server::Server;
use crate::wire;

/// ARGV[1]: milliseconds. Every key gets that much older; one that would not have lived that long is deleted.
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
end";

/// Answers every key as {key, type, TTL, its fields and values or its text}.
const LOOK: &str = "
local looks = {}
for _, key in ipairs(redis.call('keys', '*')) do
  local kind = redis.call('type', key).ok
  local value = kind == 'hash' and redis.call('hgetall', key) or {redis.call('get', key)}
  table.insert(looks, {key, kind, redis.call('pttl', key), value})
end
return looks";

/// What other programs write into a key that is no lock.
const TEXT: &str = "not a lock";

/// Who holds a planted lock of another mode: an owner of the sequences, who must not take it for its plain lock.
const READER: &str = "00000000-0000-4000-8000-000000000001:1";

/// After each request a message on this channel says that there are no more of before.
const MARKER: &str = "marker";

/// A server of its own, asked through [`RedisTransport`].
pub struct RedisArm {
    server: Server,
    runtime: Handle,
    transport: RedisTransport,
    subscriber: redis::Connection,
    names: BTreeMap<String, Name>,
}

impl std::fmt::Debug for RedisArm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RedisArm").field(&self.server).finish()
    }
}

impl RedisArm {
    /// Starts a server for these names. Calls are made from the current runtime.
    ///
    /// # Panics
    /// When the server or a connection does not come up.
    #[must_use]
    pub fn start(names: &[Name]) -> Self {
        let server = Server::start();
        let transport = RedisTransport::open(&server.address(), RedisConfig::default())
            .expect("a well-formed address");
        let mut subscriber = server.connect().expect("a connection");
        let subscribe = redis::cmd("PSUBSCRIBE").arg("*").get_packed_command();
        subscriber
            .send_packed_command(&subscribe)
            .expect("a subscription");
        subscriber.recv_response().expect("a subscription");
        RedisArm {
            server,
            runtime: Handle::current(),
            transport,
            subscriber,
            names: names
                .iter()
                .map(|n| (wire::channel(n), n.clone()))
                .collect(),
        }
    }

    fn write(&self, words: &[&str], key: &str, ttl: Option<Duration>) {
        self.server.command::<()>(words);
        if let Some(ttl) = ttl {
            let millis = millis_of(ttl).to_string();
            self.server.command::<()>(&["PEXPIRE", key, &millis]);
        }
    }

    fn plant_key(&self, name: &Name, held: Held, ttl: Option<Duration>) {
        let key = wire::claim_key(name);
        self.server.command::<()>(&["DEL", &key]);
        let (reader, writer) = (READER, format!("{READER}:write"));
        match held {
            Held::Plain { owner, count } => {
                let (owner, count) = (owner.to_string(), count.to_string());
                self.write(&["HSET", &key, &owner, &count], &key, ttl);
            }
            Held::Mode(Mode::Read) => {
                self.write(&["HSET", &key, "mode", "read", reader, "1"], &key, ttl);
            }
            Held::Mode(Mode::Write) => {
                self.write(&["HSET", &key, "mode", "write", &writer, "1"], &key, ttl);
            }
            Held::Mode(Mode::Plain) => unreachable!("a plain lock shows no mode"),
            Held::NotALock => self.write(&["SET", &key, TEXT], &key, ttl),
        }
    }
}

impl Arm for RedisArm {
    fn begin(&mut self) {
        self.server.command::<()>(&["FLUSHALL"]);
    }

    fn apply(&mut self, request: &Request) -> Result<Reply, Cause> {
        let call = self.transport.call(request.clone());
        let answer = tokio::task::block_in_place(|| self.runtime.block_on(call));
        answer.map_err(|error| {
            assert_eq!(error.execution, Execution::Definite, "{error:?}");
            error.cause
        })
    }

    fn published(&mut self) -> Vec<(Name, Wake)> {
        self.server.command::<()>(&["PUBLISH", MARKER, ""]);
        let mut published = Vec::new();
        loop {
            let pushed = self.subscriber.recv_response().expect("a message");
            let message = Msg::from_value(&pushed).expect("a message");
            let payload: String = message.get_payload().expect("text");
            match (message.get_channel_name(), payload.as_str()) {
                (MARKER, _) => return published,
                (channel, "0") => published.push((self.name_of(channel), Wake::Unlocked)),
                (channel, "1") => published.push((self.name_of(channel), Wake::ReadersMayEnter)),
                (channel, other) => panic!("{other:?} was published on {channel:?}"),
            }
        }
    }

    fn pass(&mut self, span: Duration) {
        let millis = millis_of(span).to_string();
        self.server.command::<()>(&["EVAL", AGE, "0", &millis]);
    }

    fn plant(&mut self, plant: &Plant) {
        match plant {
            Plant::Key { name, held, ttl } => self.plant_key(name, *held, *ttl),
            Plant::Token { name, token, ttl } => {
                let key = wire::token_key(name);
                self.write(&["SET", &key, &token.to_string()], &key, *ttl);
            }
        }
    }

    fn look(&mut self, names: &[Name]) -> Looks {
        type Key = (String, String, i64, Vec<String>);
        let mut looks = Looks::default();
        let keys: Vec<Key> = self.server.command(&["EVAL", LOOK, "0"]);
        for (key, kind, ttl, value) in keys {
            let ttl = u64::try_from(ttl).map_or(Ttl::Unbounded, Ttl::Millis);
            if let Some(name) = names.iter().find(|n| wire::claim_key(n) == key) {
                let held = held(&kind, &value);
                looks.claims.insert(name.clone(), (held, ttl));
            } else if let Some(name) = names.iter().find(|n| wire::token_key(n) == key) {
                let token = value[0].parse().expect("a token is digits");
                looks.tokens.insert(name.clone(), (Token(token), ttl));
            } else {
                panic!("there is a key that should not be there: {key:?}");
            }
        }
        looks
    }
}

impl RedisArm {
    fn name_of(&self, channel: &str) -> Name {
        let name = self.names.get(channel);
        name.unwrap_or_else(|| panic!("nobody listens on {channel:?}"))
            .clone()
    }
}

/// Reads a key; a plain claim is one field, its owner's, with the count, and nothing else.
fn held(kind: &str, value: &[String]) -> Held {
    match (kind, value) {
        ("hash", [owner, count]) => Held::Plain {
            owner: owner.parse().expect("an owner"),
            count: count.parse().expect("a count"),
        },
        ("hash", [field, mode, _, _]) if field == "mode" && mode == "read" => {
            Held::Mode(Mode::Read)
        }
        ("hash", [field, mode, _, _]) if field == "mode" && mode == "write" => {
            Held::Mode(Mode::Write)
        }
        ("string", [text]) if text == TEXT => Held::NotALock,
        _ => panic!("a {kind} that no lock is: {value:?}"),
    }
}
