//! The keys and channels of a name, by Redisson's rules.

use quorlock_core::message::Channel;
use quorlock_core::owner::OwnerId;
use redis::{RedisWrite, ToRedisArgs};

use crate::reserved;

/// `prefix:{name}`, a key or channel that belongs to a name.
///
/// The braces make a cluster store it in the slot of the name. A name that contains a `{` may have its own hash tag, so
/// it gets no braces: `prefix:name`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefixed<'a> {
    prefix: &'static str,
    name: &'a [u8],
}

/// Returns the key of a name's token counter.
pub(crate) fn token(name: &(impl AsRef<[u8]> + ?Sized)) -> Prefixed<'_> {
    let name = name.as_ref();
    Prefixed {
        prefix: reserved::TOKEN,
        name,
    }
}

/// Returns the channel on which a name's release is published.
pub(crate) fn channel(name: &(impl AsRef<[u8]> + ?Sized)) -> Prefixed<'_> {
    let name = name.as_ref();
    Prefixed {
        prefix: "redisson_lock__channel",
        name,
    }
}

/// Returns the channel on which the release of a read-write lock is published.
pub(crate) fn read_write_channel(name: &(impl AsRef<[u8]> + ?Sized)) -> Prefixed<'_> {
    let name = name.as_ref();
    Prefixed {
        prefix: "redisson_rwlock",
        name,
    }
}

/// The key of the marker, which shows clients that a server's process was watched long enough.
pub(crate) const MARKER: &str = reserved::MARKER;

/// Returns the key of the marker of a tag. It is in the slot of the names under the tag, so that a script can use it.
pub(crate) fn marker_under(tag: &str) -> String {
    format!("{MARKER}:{{{tag}}}")
}

/// Returns the key of a fair lock's queue.
pub(crate) fn queue(name: &(impl AsRef<[u8]> + ?Sized)) -> Prefixed<'_> {
    let name = name.as_ref();
    Prefixed {
        prefix: reserved::QUEUE,
        name,
    }
}

/// Returns the key of the times after which Redisson drops waiters of a fair lock.
pub(crate) fn timeouts(name: &(impl AsRef<[u8]> + ?Sized)) -> Prefixed<'_> {
    let name = name.as_ref();
    Prefixed {
        prefix: reserved::TIMEOUTS,
        name,
    }
}

/// Returns the key of the times until which our waiters of a fair lock count as alive.
pub(crate) fn alive(name: &(impl AsRef<[u8]> + ?Sized)) -> Prefixed<'_> {
    let name = name.as_ref();
    Prefixed {
        prefix: reserved::ALIVE,
        name,
    }
}

/// Returns the prefix of the keys of readers' leases: `{name}:`, or `name:` for a name that contains a `{`.
pub(crate) fn leases(name: &(impl AsRef<[u8]> + ?Sized)) -> Vec<u8> {
    let name = name.as_ref();
    if name.contains(&b'{') {
        [name, b":"].concat()
    } else {
        [b"{", name, b"}:"].concat()
    }
}

/// Returns the prefix of the keys of one reader's leases; the n-th hold's key ends with n.
pub(crate) fn own_leases(name: &(impl AsRef<[u8]> + ?Sized), reader: OwnerId) -> Vec<u8> {
    let mut key = leases(name);
    key.extend(format!("{reader}:{}:", reserved::LEASE).into_bytes());
    key
}

/// Returns the channel's name on the server.
pub(crate) fn channel_of(channel: &Channel) -> Vec<u8> {
    match channel {
        Channel::Lock(name) => self::channel(name.as_bytes()).to_bytes(),
        Channel::Waiter(name, owner) => {
            let mut channel = self::channel(name.as_bytes()).to_bytes();
            channel.extend(format!(":{owner}").into_bytes());
            channel
        }
        Channel::ReadWrite(name) => read_write_channel(name.as_bytes()).to_bytes(),
    }
}

impl Prefixed<'_> {
    /// The parts of the key.
    pub(crate) fn pieces(&self) -> [&[u8]; 4] {
        let prefix = self.prefix.as_bytes();
        if self.name.contains(&b'{') {
            [prefix, b":", self.name, b""]
        } else {
            [prefix, b":{", self.name, b"}"]
        }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        self.pieces().concat()
    }
}

impl ToRedisArgs for Prefixed<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.write_arg(&self.pieces().concat());
    }
}

/// For tests, whose names are text.
#[cfg(test)]
impl std::fmt::Display for Prefixed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
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
            let lease = String::from_utf8(own_leases(name, owner)).unwrap() + "1";
            let keys = [token(name), queue(name), timeouts(name), alive(name)];
            let keys = keys.map(|key| key.to_string());
            for key in keys
                .iter()
                .chain([&lease, &MARKER.to_owned(), &marker_under("quorlock-7")])
            {
                assert!(reserved::kept_under(key.as_bytes()).is_some(), "{key}");
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
