//! The keys and channels of a name, by Redisson's rules.

use quorlock_core::message::Channel;
use quorlock_core::name::Name;
use quorlock_core::owner::OwnerId;
use redis::{RedisWrite, ToRedisArgs};

use crate::reserved;

/// `word:{name}`, a key or channel that belongs to a name. In a namespace it begins with that.
///
/// The braces make a cluster store it in the slot of the name. A name that contains a `{` may have its own hash tag, so
/// it gets no braces: `word:name`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Derived<'a> {
    word: &'static str,
    name: &'a Name,
}

/// Returns the key of a name's token counter.
pub(crate) fn token(name: &Name) -> Derived<'_> {
    let word = reserved::TOKEN;
    Derived { word, name }
}

/// Returns the channel on which a name's release is published.
pub(crate) fn channel(name: &Name) -> Derived<'_> {
    let word = "redisson_lock__channel";
    Derived { word, name }
}

/// Returns the channel on which the release of a read-write lock is published.
pub(crate) fn read_write_channel(name: &Name) -> Derived<'_> {
    let word = "redisson_rwlock";
    Derived { word, name }
}

/// The key of the marker, which shows clients that a server's process was watched long enough.
pub(crate) const MARKER: &str = reserved::MARKER;

/// Returns the key of the marker of a tag. It is in the slot of the names under the tag, so that a script can use it.
pub(crate) fn marker_under(tag: &str) -> String {
    format!("{MARKER}:{{{tag}}}")
}

/// Returns the key of a fair lock's queue.
pub(crate) fn queue(name: &Name) -> Derived<'_> {
    let word = reserved::QUEUE;
    Derived { word, name }
}

/// Returns the key of the times after which Redisson drops waiters of a fair lock.
pub(crate) fn timeouts(name: &Name) -> Derived<'_> {
    let word = reserved::TIMEOUTS;
    Derived { word, name }
}

/// Returns the key of the times until which our waiters of a fair lock count as alive.
pub(crate) fn alive(name: &Name) -> Derived<'_> {
    let word = reserved::ALIVE;
    Derived { word, name }
}

/// Returns the prefix of the keys of readers' leases: `{name}:`, or `name:` for a name that contains a `{`.
pub(crate) fn leases(name: &Name) -> Vec<u8> {
    let (namespace, _) = name.split();
    let name = name.as_bytes();
    if name.contains(&b'{') {
        [namespace, name, b":"].concat()
    } else {
        [namespace, b"{", name, b"}:"].concat()
    }
}

/// Returns the prefix of the keys of one reader's leases; the n-th hold's key ends with n.
pub(crate) fn own_leases(name: &Name, reader: OwnerId) -> Vec<u8> {
    let mut key = leases(name);
    key.extend(format!("{reader}:{}:", reserved::LEASE).into_bytes());
    key
}

/// Returns the field of a writer in the hash of a read-write lock.
pub(crate) fn writer(owner: OwnerId) -> String {
    format!("{owner}:write")
}

/// Returns the name of the channel on the server on which a message about a name is published.
pub(crate) fn channel_of(channel: &Channel) -> Vec<u8> {
    match channel {
        // Nothing is published about a claim.
        Channel::Claim(name, ..) | Channel::Lock(name) => self::channel(name).to_bytes(),
        Channel::Waiter(name, owner) => {
            let mut channel = self::channel(name).to_bytes();
            channel.extend(format!(":{owner}").into_bytes());
            channel
        }
        Channel::ReadWrite(name) => read_write_channel(name).to_bytes(),
    }
}

impl Derived<'_> {
    /// The parts of the key.
    pub(crate) fn pieces(&self) -> [&[u8]; 5] {
        let ((namespace, _), word) = (self.name.split(), self.word.as_bytes());
        let name = self.name.as_bytes();
        if name.contains(&b'{') {
            [namespace, word, b":", name, b""]
        } else {
            [namespace, word, b":{", name, b"}"]
        }
    }

    /// The part before the name and its brace, which all keys of this kind in one namespace begin with.
    pub(crate) fn beginning(&self) -> Vec<u8> {
        let (namespace, _) = self.name.split();
        [namespace, self.word.as_bytes(), b":"].concat()
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        self.pieces().concat()
    }
}

impl ToRedisArgs for Derived<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.write_arg(&self.pieces().concat());
    }
}

/// For tests, whose names are text.
#[cfg(test)]
impl std::fmt::Display for Derived<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyslot;
    use quorlock_core::owner::ClientId;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn reader() -> OwnerId {
        OwnerId {
            client: ClientId::from_random(7),
            number: 1,
        }
    }

    #[test]
    fn a_plain_name_is_put_into_braces() {
        let name = name("orders/42");
        assert_eq!(token(&name).to_string(), "redisson_lock_token:{orders/42}");
        assert_eq!(
            channel(&name).to_string(),
            "redisson_lock__channel:{orders/42}"
        );
    }

    #[test]
    fn a_name_with_an_opening_brace_anywhere_is_left_as_it_is() {
        for text in ["{tag}:x", "x{", "{", "a{}b", "}{"] {
            assert_eq!(
                token(&name(text)).to_string(),
                format!("redisson_lock_token:{text}")
            );
        }
    }

    #[test]
    fn in_a_namespace_every_key_and_channel_begins_with_it_and_is_in_the_slot_of_the_claim() {
        for text in ["orders/42", "{tag}:x", "заказ/42"] {
            let name = Name::within(b"shop:", text).unwrap();
            let derived = [
                token(&name),
                queue(&name),
                timeouts(&name),
                alive(&name),
                channel(&name),
                read_write_channel(&name),
            ];
            let keys = derived.iter().map(|key| key.to_bytes());
            for key in keys.chain([own_leases(&name, reader())]) {
                assert!(key.starts_with(b"shop:"), "{}", key.escape_ascii());
                assert_eq!(keyslot::of_key(&key), keyslot::of_name(&name).unwrap());
            }
            assert!(
                token(&name)
                    .to_bytes()
                    .starts_with(&token(&name).beginning())
            );
        }
    }

    #[test]
    fn no_key_of_a_name_is_a_name_itself() {
        for text in ["orders/42", "{tag}:x", "x{", "{", "x}", " ", "заказ/42"] {
            for (namespace, marker) in [("", MARKER), ("shop:", "shop:quorlock_marker")] {
                let name = Name::within(namespace.as_bytes(), text).unwrap();
                let lease = [&*own_leases(&name, reader()), b"1"].concat();
                let keys = [token(&name), queue(&name), timeouts(&name), alive(&name)];
                let keys = keys.map(Derived::to_bytes).into_iter();
                let markers = [
                    marker.to_owned(),
                    namespace.to_owned() + &marker_under("quorlock-7"),
                ];
                let markers = markers.map(String::into_bytes);
                for key in keys.chain([lease]).chain(markers) {
                    let (_, rest) = key.split_at(namespace.len());
                    let key = Name::within(namespace.as_bytes(), rest).unwrap();
                    assert!(reserved::kept_under(&key).is_some(), "{key}");
                }
            }
        }
    }

    #[test]
    fn a_closing_brace_spaces_and_unicode_are_nothing_special() {
        for text in ["x}", " ", "a b", "заказ/42", "🔒"] {
            assert_eq!(
                channel(&name(text)).to_string(),
                format!("redisson_lock__channel:{{{text}}}")
            );
        }
    }
}
