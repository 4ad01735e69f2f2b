//! Keys that belong to other names and cannot be the names of locks.
//!
//! The key of a claim is exactly its name. A node stores more data about a name under keys of other forms. A lock named
//! like one of these keys would conflict with another lock: the counter of one name would be the claim of the other.

use quorlock_core::name::Name;

/// Prefix of the key of a name's token counter.
pub(crate) const TOKEN: &str = "redisson_lock_token";

/// Prefix of the key of the queue of a name's fair lock.
pub(crate) const QUEUE: &str = "redisson_lock_queue";

/// Prefix of the key of the times after which Redisson drops waiters.
pub(crate) const TIMEOUTS: &str = "redisson_lock_timeout";

/// Prefix of the key of the times until which Quorlock's waiters are considered alive.
pub(crate) const ALIVE: &str = "quorlock_lock_alive";

/// Prefix of the keys in which Redisson records that it has unlocked a name.
const LATCH: &str = "redisson_unlock_latch";

/// Key of a node's marker, and its prefix where all names of a node are stored under one tag.
pub(crate) const MARKER: &str = "quorlock_marker";

/// The part of the key of a reader's own lease that is between the reader and the number of its hold.
pub(crate) const LEASE: &str = "rwlock_timeout";

/// Returns what is stored under the key of this name, if that key belongs to another name or to the node.
///
/// Behind the namespace, such a key is `word:{name}`, or `word:name` for a name that contains a `{` itself. A key without any
/// `{` belongs to nothing.
pub(crate) fn kept_under(name: &Name) -> Option<&'static str> {
    match name.split() {
        (b"", key) => of_key(key),
        // Clients without the namespace share the server.
        (_, key) => of_key(key).or_else(|| of_key(name.as_bytes())),
    }
}

fn of_key(key: &[u8]) -> Option<&'static str> {
    if key == MARKER.as_bytes() {
        return Some("a node's marker");
    }
    if !key.contains(&b'{') {
        return None;
    }
    let mut halves = key.splitn(2, |byte| *byte == b':');
    if let (Some(prefix), Some(name)) = (halves.next(), halves.next())
        && name.contains(&b'{')
    {
        // All known prefixes are text.
        match std::str::from_utf8(prefix).unwrap_or_default() {
            TOKEN => return Some("another name's token counter"),
            QUEUE | TIMEOUTS | ALIVE => return Some("another name's queue"),
            LATCH => return Some("Redisson's note that it has unlocked another name"),
            MARKER => return Some("a node's marker"),
            _ => {}
        }
    }
    let mut parts = key.rsplitn(3, |byte| *byte == b':');
    let (hold, word, before) = (parts.next()?, parts.next()?, parts.next()?);
    let is_hold = !hold.is_empty() && hold.iter().all(u8::is_ascii_digit);
    let is_lease = is_hold && word == LEASE.as_bytes() && before.contains(&b'{');
    is_lease.then_some("the lease of another name's reader")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_name_is_known_in_both_of_its_forms() {
        for prefix in [TOKEN, QUEUE, TIMEOUTS, ALIVE, LATCH, MARKER] {
            for name in ["{x}", "{orders/42}", "{tag}:x", "x{", "a{}b", "{", "{x}:17"] {
                let key = format!("{prefix}:{name}");
                assert!(kept_under(&Name::new(&key).unwrap()).is_some(), "{key}");
                let within = Name::within(b"shop:", &key).unwrap();
                assert!(kept_under(&within).is_some(), "{within}");
            }
        }
        for key in [
            "quorlock_marker",
            "{x}:0f-1:7:rwlock_timeout:1",
            "{x}:0f-1:7:rwlock_timeout:1000",
            "x{y:0f-1:7:rwlock_timeout:2",
        ] {
            assert!(kept_under(&Name::new(key).unwrap()).is_some(), "{key}");
        }
        // Another client may have no namespace.
        let other = Name::within(b"redisson_lock_token:", "{x}").unwrap();
        assert!(kept_under(&other).is_some());
    }

    #[test]
    fn a_name_that_only_looks_like_one_is_free() {
        for key in [
            "orders/42",
            "{tag}:x",
            "redisson_lock_token",
            "redisson_lock_token:x",
            "redisson_lock_token{x}",
            "app:redisson_lock_token:{x}",
            "redisson_lock_tokens:{x}",
            "redisson_lock__channel:{x}",
            "quorlock_marker:x",
            "quorlock_marker2",
            "{x}:rwlock_timeout",
            "{x}:7:rwlock_timeout:",
            "{x}:7:rwlock_timeout:one",
            "x:7:rwlock_timeout:1",
            "rwlock_timeout:1",
        ] {
            assert_eq!(kept_under(&Name::new(key).unwrap()), None, "{key}");
        }
    }
}
