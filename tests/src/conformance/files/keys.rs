//! The keys of a node in memory, as a server has them.

use std::collections::BTreeMap;

use quorlock_core::marker::MarkerState;
use quorlock_core::message::Ttl;
use quorlock_core::node::Held;
use serde_json::{Map, Value, json};

use super::reply::millis;
use crate::conformance::Looks;
use crate::wire;

/// Returns all keys, except those that a node in memory lacks. These are the keys that only Redisson uses, and the
/// keys of all holds of a reader except the first.
pub(super) fn of_looks(looks: &Looks) -> BTreeMap<String, Value> {
    let mut keys = BTreeMap::new();
    for (name, (held, ttl)) in &looks.claims {
        let value = match held {
            Held::NotALock => json!({"string": "not a lock"}),
            Held::Plain { owner, count } => {
                let mut fields = Map::new();
                let value = match looks.versions.get(name) {
                    Some(version) => {
                        format!("{count} {} {}", version.number, version.lease_millis)
                    }
                    None => count.to_string(),
                };
                fields.insert(owner.to_string(), json!(value));
                json!({"hash": fields})
            }
            Held::ReadWrite(held) => {
                let mut fields = Map::new();
                let mode = held.writer.map_or("read", |_| "write");
                fields.insert("mode".to_owned(), json!(mode));
                if let Some((owner, count)) = held.writer {
                    fields.insert(format!("{owner}:write"), json!(count.to_string()));
                }
                for (owner, count) in &held.readers {
                    fields.insert(owner.to_string(), json!(count.to_string()));
                }
                json!({"hash": fields})
            }
        };
        keys.insert(wire::claim_key(name), with(value, *ttl));
    }
    for ((name, reader), ttl) in &looks.leases {
        let key = format!("{}{reader}:rwlock_timeout:1", wire::leases(name));
        keys.insert(key, with(json!({"string": "1"}), *ttl));
    }
    for (name, (token, ttl)) in &looks.tokens {
        let value = json!({"string": token.to_string()});
        keys.insert(wire::token_key(name), with(value, *ttl));
    }
    for (name, queue) in &looks.queues {
        let owners: Vec<_> = queue.iter().map(|(owner, _)| owner.to_string()).collect();
        keys.insert(wire::queue_key(name), json!({"list": owners}));
        let alive: Map<_, _> = queue
            .iter()
            .map(|(owner, ttl)| (owner.to_string(), json!(millis(*ttl))))
            .collect();
        keys.insert(wire::alive_key(name), json!({"zset": alive}));
    }
    if let Some((marker, ttl)) = &looks.marker {
        let process = if marker.is_own { "$PROCESS" } else { "$OTHER" };
        let state = match marker.state {
            MarkerState::Confirmed => "ripe",
            MarkerState::Observing => "unripe",
        };
        let (nonce, figures) = (marker.nonce.get(), marker.figures);
        let text = format!("{process}:{nonce}:{figures}:{state}");
        let value = json!({"string": text});
        keys.insert("quorlock_marker".to_owned(), with(value, *ttl));
    }
    keys
}

fn with(mut value: Value, ttl: Ttl) -> Value {
    if let Ttl::Millis(millis) = ttl {
        value["ttl"] = json!(millis);
    }
    value
}

/// Returns those keys of a file that a node in memory has.
pub(super) fn without_servers_own(keys: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let is_its_own = |key: &str| {
        let hold = key.rsplit_once(":rwlock_timeout:").map(|(_, hold)| hold);
        !key.starts_with("redisson_lock_timeout") && hold.is_none_or(|hold| hold == "1")
    };
    let kept = keys.iter().filter(|(key, _)| is_its_own(key));
    kept.map(|(key, value)| {
        let mut value = value.clone();
        let is_queue =
            key.starts_with("redisson_lock_queue") || key.starts_with("quorlock_lock_alive");
        if let Some(fields) = value.as_object_mut().filter(|_| is_queue) {
            fields.remove("ttl");
        }
        (key.clone(), value)
    })
    .collect()
}
