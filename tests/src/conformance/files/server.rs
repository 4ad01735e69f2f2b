//! A server behind the adapter: a real one, or one that speaks like it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use quorlock_core::marker::Process;
use quorlock_core::message::{Reply, Request};
use quorlock_core::time::millis_of;
use quorlock_core::transport::{Cause, Execution, Transport};
use quorlock_redis::{RedisConfig, RedisTransport};
use redis::{FromRedisValue, Msg};
use serde_json::{Map, Value, json};

use super::act::Put;
use super::bench::Bench;
use super::sequence::Sequence;
use crate::conformance::raw::Replies;
use quorlock_testbed::wait::BOUND;

/// ARGV[1]: milliseconds. Ages every key and every waiter by this time; deletes keys that would have expired.
const AGE: &str = "
for _, key in ipairs(redis.call('KEYS', '*')) do
  local ttl = redis.call('PTTL', key)
  if 0 <= ttl then redis.call('PEXPIRE', key, string.format('%.0f', ttl - ARGV[1])) end
  if redis.call('TYPE', key).ok == 'zset' then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      redis.call('ZINCRBY', key, -ARGV[1], member)
    end
  end
end";

/// Returns every key as {key, type, TTL, content}; for a sorted set, the difference of each score from now.
const LOOK: &str = "
local looks, time = {}, redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, value = redis.call('TYPE', key).ok, {}
  if kind == 'hash' then
    value = redis.call('HGETALL', key)
  elseif kind == 'list' then
    value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then
    value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 2, #value, 2 do value[i] = string.format('%.0f', value[i] - now) end
  else
    value = {redis.call('GET', key)}
  end
  looks[#looks + 1] = {key, kind, redis.call('PTTL', key), value}
end
return looks";

/// Returns the process of the server, as markers identify it.
const PROCESS: &str = "
return string.sub(string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)'), 1, 13)";

/// The key of a server's marker.
const MARKER_KEY: &str = "quorlock_marker";

/// A message on this channel shows that all earlier messages were received.
const LAST: &str = "last";

/// A server that is used through [`RedisTransport`] and has no other client.
pub struct ServerBench {
    looking: Replies,
    subscriber: Replies,
    transport: RedisTransport,
    process: String,
}

impl std::fmt::Debug for ServerBench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ServerBench").field(&self.transport).finish()
    }
}

impl ServerBench {
    /// Uses the server on this port of the loopback interface.
    ///
    /// # Panics
    /// Panics if a connection does not come up.
    #[must_use]
    pub fn at(port: u16) -> Self {
        let address = format!("redis://127.0.0.1:{port}/");
        let patient = RedisConfig::default()
            .call_timeout(BOUND)
            .only_scripts(true);
        let mut subscriber = Replies::connect(port);
        subscriber.ask(&["PSUBSCRIBE", "*"]);
        let mut bench = ServerBench {
            looking: Replies::connect(port),
            subscriber,
            transport: RedisTransport::open(&address, patient).expect("a well-formed address"),
            process: String::new(),
        };
        bench.process = bench.command(&["EVAL", PROCESS, "0"]);
        bench
    }

    fn command<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        let said = self.looking.ask(words);
        let answer = redis::parse_redis_value(&said).and_then(redis::Value::extract_error);
        let answer = answer.and_then(|value| Ok(redis::from_redis_value(value)?));
        answer.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Returns a marker with `$PROCESS` in place of its process if that is the server's, and `$OTHER` if it is not.
    fn named(&self, marker: &str) -> String {
        let (process, rest) = marker.split_once(':').unwrap_or(("", marker));
        let process = if process == self.process {
            "$PROCESS"
        } else {
            "$OTHER"
        };
        format!("{process}:{rest}")
    }
}

impl Bench for ServerBench {
    fn begin(&mut self) {
        self.command::<()>(&["FLUSHALL"]);
    }

    fn can(&self, _: &Sequence) -> bool {
        true
    }

    fn process(&self) -> Process {
        Process(u64::from_str_radix(&self.process, 16).expect("digits"))
    }

    fn clock_millis(&mut self) -> u64 {
        let (secs, micros): (u64, u64) = self.command(&["TIME"]);
        1_000 * secs + micros / 1_000
    }

    async fn ask(&mut self, requests: &[Request]) -> Vec<Result<Reply, Cause>> {
        let calls = requests.iter().map(|r| self.transport.call(r.clone()));
        let answers = join_all(calls).await.into_iter();
        answers
            .map(|answer| {
                answer.map_err(|error| {
                    assert_eq!(error.execution, Execution::Definite, "{error:?}");
                    error.cause
                })
            })
            .collect()
    }

    fn published(&mut self) -> Vec<(String, String)> {
        self.command::<()>(&["PUBLISH", LAST, ""]);
        let mut published = Vec::new();
        loop {
            let pushed = redis::parse_redis_value(&self.subscriber.next()).expect("a message");
            let message = Msg::from_value(&pushed).expect("a message");
            match message.get_channel_name() {
                LAST => return published,
                channel => {
                    let payload = message.get_payload().expect("text");
                    published.push((channel.to_owned(), payload));
                }
            }
        }
    }

    fn pass(&mut self, span: Duration) {
        let millis = millis_of(span).to_string();
        self.command::<()>(&["EVAL", AGE, "0", &millis]);
    }

    fn put(&mut self, put: &Put) {
        let key = put.key.as_str();
        self.command::<()>(&["DEL", key]);
        if let Some(text) = &put.string {
            self.command::<()>(&["SET", key, text]);
        }
        for (field, value) in put.hash.iter().flatten() {
            self.command::<()>(&["HSET", key, field, value]);
        }
        for element in put.list.iter().flatten() {
            self.command::<()>(&["RPUSH", key, element]);
        }
        for (member, left) in put.zset.iter().flatten() {
            let score = self.clock_millis().saturating_add_signed(*left).to_string();
            self.command::<()>(&["ZADD", key, &score, member]);
        }
        if let Some(ttl) = put.ttl {
            self.command::<()>(&["PEXPIRE", key, &ttl.to_string()]);
        }
    }

    /// Changes the marker instead of the server. The marker then belongs to a process that no server has.
    fn restart(&mut self) {
        let marker: Option<String> = self.command(&["GET", MARKER_KEY]);
        let Some((_, rest)) = marker.as_deref().and_then(|marker| marker.split_once(':')) else {
            return;
        };
        let ttl: i64 = self.command(&["PTTL", MARKER_KEY]);
        let other = format!("{}:{rest}", "0".repeat(13));
        self.command::<()>(&["SET", MARKER_KEY, &other, "PX", &ttl.to_string()]);
    }

    fn keys(&mut self) -> BTreeMap<String, Value> {
        type Key = (String, String, i64, Vec<String>);
        let keys: Vec<Key> = self.command(&["EVAL", LOOK, "0"]);
        let words = |(key, kind, ttl, value): Key| {
            let pairs = || {
                value
                    .chunks(2)
                    .filter_map(|pair| Some((pair.first()?, pair.last()?)))
            };
            let mut words = match kind.as_str() {
                "hash" => {
                    let fields: Map<_, _> = pairs().map(|(f, v)| (f.clone(), json!(v))).collect();
                    json!({"hash": fields})
                }
                "zset" => {
                    let left = |text: &str| text.parse::<i64>().expect("a number");
                    let members: Map<_, _> =
                        pairs().map(|(m, s)| (m.clone(), json!(left(s)))).collect();
                    json!({"zset": members})
                }
                "list" => json!({"list": value}),
                _ if key == MARKER_KEY => json!({"string": self.named(&value[0])}),
                _ => json!({"string": value[0]}),
            };
            if 0 <= ttl {
                words["ttl"] = json!(ttl);
            }
            (key, words)
        };
        keys.into_iter().map(words).collect()
    }

    fn expected(&self, keys: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
        keys.clone()
    }
}
