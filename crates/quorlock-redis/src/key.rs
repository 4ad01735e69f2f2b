//! Under which keys and channels a name is kept: Redisson's rules.

use std::fmt;

use quorlock_core::message::Channel;
use quorlock_core::owner::OwnerId;
use quorlock_core::reserved;
use redis::{RedisWrite, ToRedisArgs};

/// `prefix:{name}`, a key or channel that belongs to a name.
///
/// The braces make a cluster put it into the slot of the name. A name that holds a `{` itself (anywhere) has its own
/// say about its slot, and gets none: `prefix:name`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefixed<'a> {
    prefix: &'static str,
    name: &'a str,
}

/// The key of the token counter of a name.
pub(crate) fn token(name: &str) -> Prefixed<'_> {
    Prefixed {
        prefix: reserved::TOKEN,
        name,
    }
}

/// The channel on which a release of a name is published.
pub(crate) fn channel(name: &str) -> Prefixed<'_> {
    Prefixed {
        prefix: "redisson_lock__channel",
        name,
    }
}

/// The channel on which a release of a read-write lock is published.
pub(crate) fn read_write_channel(name: &str) -> Prefixed<'_> {
    Prefixed {
        prefix: "redisson_rwlock",
        name,
    }
}

/// The key of the marker by which clients know that a server's process was watched for long enough.
pub(crate) const MARKER: &str = reserved::MARKER;

/// The key of the marker where all names lie under one tag: in their slot, so that a script can use it.
pub(crate) fn marker_under(tag: &str) -> String {
    format!("{MARKER}:{{{tag}}}")
}

/// The key of those who wait for a fair lock.
pub(crate) fn queue(name: &str) -> Prefixed<'_> {
    Prefixed {
        prefix: reserved::QUEUE,
        name,
    }
}

/// The key of the times after which Redisson drops those who wait for a fair lock.
pub(crate) fn timeouts(name: &str) -> Prefixed<'_> {
    Prefixed {
        prefix: reserved::TIMEOUTS,
        name,
    }
}

/// The key of the times until which our waiters for a fair lock are taken to be alive.
pub(crate) fn alive(name: &str) -> Prefixed<'_> {
    Prefixed {
        prefix: reserved::ALIVE,
        name,
    }
}

/// What the keys of readers' own leases begin with: `{name}:`, and `name:` for a name that holds a `{`.
pub(crate) fn leases(name: &str) -> String {
    if name.contains('{') {
        format!("{name}:")
    } else {
        format!("{{{name}}}:")
    }
}

/// What the keys of one reader's leases begin with; the n-th hold's key ends with n.
pub(crate) fn own_leases(name: &str, reader: OwnerId) -> String {
    format!("{}{reader}:{}:", leases(name), reserved::LEASE)
}

/// The text of a channel.
pub(crate) fn channel_of(channel: &Channel) -> String {
    match channel {
        Channel::Lock(name) => self::channel(name.as_str()).to_string(),
        Channel::Waiter(name, owner) => format!("{}:{owner}", self::channel(name.as_str())),
        Channel::ReadWrite(name) => read_write_channel(name.as_str()).to_string(),
    }
}

impl Prefixed<'_> {
    /// What it is put together of.
    fn pieces(&self) -> [&str; 4] {
        if self.name.contains('{') {
            [self.prefix, ":", self.name, ""]
        } else {
            [self.prefix, ":{", self.name, "}"]
        }
    }
}

impl fmt::Display for Prefixed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces()
            .iter()
            .try_for_each(|piece| f.write_str(piece))
    }
}

impl ToRedisArgs for Prefixed<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.write_arg(self.pieces().concat().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_core::owner::ClientId;

    #[test]
    fn a_plain_name_is_put_into_braces() {
        assert_eq!(
            token("orders/42").to_string(),
            "redisson_lock_token:{orders/42}"
        );
        assert_eq!(
            channel("orders/42").to_string(),
            "redisson_lock__channel:{orders/42}"
        );
    }

    #[test]
    fn a_name_with_an_opening_brace_anywhere_is_left_as_it_is() {
        for name in ["{tag}:x", "x{", "{", "a{}b", "}{"] {
            assert_eq!(
                token(name).to_string(),
                format!("redisson_lock_token:{name}")
            );
        }
    }

    #[test]
    fn no_key_of_a_name_is_a_name_itself() {
        let owner = OwnerId {
            client: ClientId::from_random(7),
            number: 1,
        };
        for name in ["orders/42", "{tag}:x", "x{", "{", "x}", " ", "заказ/42"] {
            let lease = format!("{}1", own_leases(name, owner));
            let keys = [token(name), queue(name), timeouts(name), alive(name)];
            let keys = keys.map(|key| key.to_string());
            for key in keys
                .iter()
                .chain([&lease, &MARKER.to_owned(), &marker_under("quorlock-7")])
            {
                assert!(reserved::kept_under(key).is_some(), "{key}");
            }
        }
    }

    #[test]
    fn a_closing_brace_spaces_and_unicode_are_nothing_special() {
        for name in ["x}", " ", "a b", "заказ/42", "🔒"] {
            assert_eq!(
                channel(name).to_string(),
                format!("redisson_lock__channel:{{{name}}}")
            );
        }
    }
}
