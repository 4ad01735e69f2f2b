//! Redisson's keys, defined a second time, independently of the adapter.

use quorlock_core::message::Channel;
use quorlock_core::name::Name;
use redis::FromRedisValue;

use quorlock_testbed::server::Server;

/// Returns the key of a name's claim: the name itself.
#[must_use]
pub fn claim_key(name: &Name) -> String {
    name.to_string()
}

/// Returns the key of a name's token counter.
#[must_use]
pub fn token_key(name: &Name) -> String {
    prefixed("redisson_lock_token", name)
}

/// Returns the channel on which the release of a name is published.
#[must_use]
pub fn channel(name: &Name) -> String {
    prefixed("redisson_lock__channel", name)
}

/// Returns the channel on which the release of a read-write lock is published.
#[must_use]
pub fn read_write_channel(name: &Name) -> String {
    prefixed("redisson_rwlock", name)
}

/// Returns the text of a channel.
#[must_use]
pub fn channel_of(channel: &Channel) -> String {
    match channel {
        Channel::Lock(name) => self::channel(name),
        Channel::Waiter(name, owner) => format!("{}:{owner}", self::channel(name)),
        Channel::Claim(name, ..) => panic!("nothing is published about the claim of {name}"),
        Channel::ReadWrite(name) => read_write_channel(name),
    }
}

/// Returns the key of a fair lock's queue.
#[must_use]
pub fn queue_key(name: &Name) -> String {
    prefixed("redisson_lock_queue", name)
}

/// Returns the key of the times at which a JVM client drops waiters of a fair lock.
#[must_use]
pub fn timeouts_key(name: &Name) -> String {
    prefixed("redisson_lock_timeout", name)
}

/// Returns the key of the times until which our waiters of a fair lock count as alive. JVM clients do not use this
/// key.
#[must_use]
pub fn alive_key(name: &Name) -> String {
    prefixed("quorlock_lock_alive", name)
}

/// Returns the prefix of the keys of readers' leases.
#[must_use]
pub fn leases(name: &Name) -> String {
    if name.as_bytes().contains(&b'{') {
        format!("{name}:")
    } else {
        format!("{{{name}}}:")
    }
}

/// Applies Redisson's rule: the name is put into braces, unless it contains an opening brace.
fn prefixed(prefix: &str, name: &Name) -> String {
    if name.as_bytes().contains(&b'{') {
        format!("{prefix}:{name}")
    } else {
        format!("{prefix}:{{{name}}}")
    }
}

/// The acquire script of a JVM client, written from its description. It increments and expires the key if the name is
/// free or the caller's.
const THEIR_ACQUIRE: &str = "
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])";

/// The release script of a JVM client, written from its description, without the latch for its resends.
const THEIR_RELEASE: &str = "
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if 0 < redis.call('hincrby', KEYS[1], ARGV[1], -1) then
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1";

/// Acquires as a JVM client does. Returns `None` if the name was granted, otherwise the TTL in the refusal.
pub fn acquire_as_jvm(server: &Server, name: &Name, owner: &str, lease_millis: u64) -> Option<i64> {
    let (key, lease) = (claim_key(name), lease_millis.to_string());
    eval(server, &["EVAL", THEIR_ACQUIRE, "1", &key, &lease, owner])
}

/// Releases as a JVM client does. Returns `None` if the name was not the caller's, otherwise whether it is now free
/// (1) or still held (0).
pub fn release_as_jvm(server: &Server, name: &Name, owner: &str) -> Option<i64> {
    let (key, channel) = (claim_key(name), channel(name));
    eval(server, &["EVAL", THEIR_RELEASE, "2", &key, &channel, owner])
}

fn eval<T: FromRedisValue>(server: &Server, words: &[&str]) -> T {
    server.command(words)
}
