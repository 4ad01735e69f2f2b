//! Messages that a server pushes on a wake-up connection.

use std::sync::Arc;

use quorlock_core::message::Wake;
use redis::Value;

use crate::subscription::registry::Registry;

/// Separates pushed messages from replies.
pub(super) struct Hearing {
    registry: Arc<Registry>,
    /// Messages that were received and not yet delivered.
    taken: Vec<(Vec<u8>, Wake)>,
    /// The last value received, if it was a message published to all nodes.
    to_all: Option<Value>,
}

impl Hearing {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Hearing {
            registry,
            taken: Vec::new(),
            to_all: None,
        }
    }

    /// Takes a pushed message, and returns any other value, which is a reply.
    pub(super) fn take(&mut self, value: Value) -> Option<Value> {
        let before = self.to_all.take();
        let Value::Array(parts) = &value else {
            return Some(value);
        };
        let [Value::BulkString(kind), rest @ ..] = parts.as_slice() else {
            return Some(value);
        };
        match (kind.as_slice(), rest) {
            (b"message", [channel, payload]) => {
                self.hear(channel, payload);
                self.to_all = Some(Value::Array(rest.to_vec()));
                None
            }
            (b"smessage", [channel, payload]) => {
                // Our clients publish both messages in one script, so nothing comes between the two. They announce
                // one release, and waiters count releases. (If one client of Redisson publishes to all and another
                // one to the shard directly after it, the two also count as one. The woken waiter notices the second
                // release when it asks, or sleeps until the TTL in its refusal ends.)
                let is_second =
                    matches!(&before, Some(Value::Array(first)) if first.as_slice() == rest);
                if !is_second {
                    self.hear(channel, payload);
                }
                None
            }
            (b"invalidate", [keys]) => {
                self.registry.have_changed(changed_keys(keys).as_deref());
                None
            }
            // The slot of the channel has moved to another node, or this is the reply to `SUNSUBSCRIBE`.
            (b"sunsubscribe", [Value::BulkString(channel), _]) => {
                let is_unasked = self.registry.part(channel);
                (!is_unasked).then_some(value)
            }
            _ => Some(value),
        }
    }

    fn hear(&mut self, channel: &Value, payload: &Value) {
        if let (Value::BulkString(channel), Value::BulkString(payload)) = (channel, payload) {
            let wake = match payload.as_slice() {
                b"1" => Wake::ReadersMayEnter,
                _ => Wake::Unlocked,
            };
            self.taken.push((channel.clone(), wake));
        }
    }

    /// Wakes the listeners of the received messages. Runs their code, so it is called without the mutex.
    pub(super) fn tell(&mut self) {
        for (channel, wake) in self.taken.drain(..) {
            self.registry.wake(&channel, wake);
        }
    }
}

/// The keys that have changed; `None` if all have.
fn changed_keys(keys: &Value) -> Option<Vec<Vec<u8>>> {
    let Value::Array(keys) = keys else {
        return None;
    };
    let keys = keys.iter().filter_map(|key| match key {
        Value::BulkString(key) => Some(key.clone()),
        _ => None,
    });
    Some(keys.collect())
}
