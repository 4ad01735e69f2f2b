//! What a server says on a connection for wake-ups without having been asked.

use std::sync::Arc;

use quorlock_core::message::Wake;
use redis::Value;

use crate::subscription::registry::Registry;

/// Takes messages out of what comes, for those who hear them.
pub(super) struct Hearing {
    registry: Arc<Registry>,
    /// Messages that were taken and not told yet.
    taken: Vec<(Vec<u8>, Wake)>,
    /// The last thing that came, if it was a message to all.
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

    /// Takes what is no reply; gives back what is one.
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
                // A client of ours publishes both in one script, so that nothing comes between the two: they are one release, and
                // who waits counts releases. (One of Redisson's to all and another one's to the shard, one right after the other, are
                // taken for one as well: the waiter that is woken looks at the second, or sleeps until the TTL that it is told.)
                let is_second =
                    matches!(&before, Some(Value::Array(first)) if first.as_slice() == rest);
                if !is_second {
                    self.hear(channel, payload);
                }
                None
            }
            // The slot of the channel has gone elsewhere; or the reply to what ended the subscription.
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

    /// Wakes those that listen to the channels of what was taken. It runs code of theirs.
    pub(super) fn tell(&mut self) {
        for (channel, wake) in self.taken.drain(..) {
            self.registry.wake(&channel, wake);
        }
    }
}
