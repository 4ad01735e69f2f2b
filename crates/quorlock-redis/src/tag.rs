//! Names under one tag, for a shard of a cluster that is a member of a majority.

use quorlock_core::message::{Channel, Request};
use quorlock_core::name::{LONGEST_NAME, Name, NameError};
use quorlock_core::slot::{Slot, UnfitName};
use quorlock_core::transport::TransportError;

use crate::error;
use crate::keyslot::{self, SLOTS};
use crate::reserved;
use crate::script::Home;
use crate::unfit_names;

/// The prefix of tags; a number follows.
const WORD: &str = "quorlock-";

/// A tag. All names under it are in one slot, together with the marker of the process that owns the slot.
///
/// Tags depend only on the number of shards. If clients derived them from the current slot owners, the tags would change
/// when slots are moved: A would hold a name under three tags, and B under three others.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    text: String,
    slot: Slot,
    home: Home,
}

impl Tag {
    /// Returns the tag of shard `index` (from 0) of `of`. The slots are divided into `of` equal parts, and the tag is
    /// in the middle slot of part `index`. If the cluster has at least `of` primaries with equal and contiguous parts,
    /// each tag is on a different primary.
    pub(crate) fn of_shard(index: usize, of: usize) -> Self {
        let middle = (2 * index + 1).saturating_mul(usize::from(SLOTS)) / (2 * of.max(1));
        let slot = u16::try_from(middle).map_or(SLOTS - 1, |slot| slot.min(SLOTS - 1));
        Tag::in_slot(Slot(slot))
    }

    /// Returns the first tag whose slot is this one.
    fn in_slot(slot: Slot) -> Self {
        let mut texts = (0_u32..).map(|number| format!("{WORD}{number}"));
        let text = texts.find(|text| keyslot::of_key(text) == slot);
        let text = text.expect("BUG: a slot that no text has");
        Tag {
            home: Home::under(&text),
            slot,
            text,
        }
    }

    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the key under which a name is stored.
    ///
    /// # Errors
    /// [`UnfitName`] for a name with its own tag, which would have no effect, and for a name that is too long with this
    /// tag.
    pub(crate) fn name(&self, name: &Name) -> Result<Name, UnfitName> {
        self.check(name)?;
        Ok(self.key(name).expect("BUG: a name that was checked"))
    }

    fn key(&self, name: &Name) -> Result<Name, NameError> {
        let (namespace, name) = name.split();
        Name::within(namespace, [self.prefix().as_bytes(), name].concat())
    }

    /// Text before each name that is stored under this tag, behind the namespace. No character of it is special in a pattern of Redis.
    pub(crate) fn prefix(&self) -> String {
        format!("{{{}}}:", self.text)
    }

    /// Checks that a name can be stored.
    ///
    /// # Errors
    /// Those of [`Tag::name`].
    pub(crate) fn check(&self, name: &Name) -> Result<(), UnfitName> {
        let bytes = name.as_bytes();
        let most = LONGEST_NAME - self.text.len() - "{}:".len();
        if keyslot::tag(bytes).is_some() {
            return Err(self.tagged(name, most));
        }
        if most < bytes.len() {
            return Err(unfit_names::too_long(name, most));
        }
        let word = reserved::LEASE.as_bytes();
        if bytes.windows(word.len()).any(|part| part == word)
            && let Ok(key) = self.key(name)
            && let Some(kept) = reserved::kept_under(&key)
        {
            return Err(unfit_names::reserved_behind_tag(name, kept));
        }
        Ok(())
    }

    /// Returns the error for a name with its own tag. It suggests the name without braces, if that can be stored.
    fn tagged(&self, name: &Name, most: usize) -> UnfitName {
        let (namespace, text) = name.split();
        let mut instead = keyslot::readable(text).replace(['{', '}'], "");
        if instead.is_empty() {
            instead.push_str("lock");
        }
        if most < instead.len() {
            return unfit_names::too_long(name, most);
        }
        let stored = [instead.clone(), self.prefix() + &instead];
        let mut stored = stored.iter().flat_map(|key| Name::within(namespace, key));
        match stored.find_map(|key| reserved::kept_under(&key)) {
            Some(kept) => unfit_names::reserved_behind_tag(name, kept),
            None => unfit_names::tagged(name, instead),
        }
    }

    /// Returns the same request for the names as they are stored.
    ///
    /// # Errors
    /// A definite error for a name that cannot be stored.
    pub(crate) fn request(&self, mut request: Request) -> Result<Request, TransportError> {
        let names: Vec<&mut Name> = match &mut request {
            Request::Acquire(ask) => vec![&mut ask.name],
            Request::Renew(ask) => ask.claims.iter_mut().map(|claim| &mut claim.name).collect(),
            Request::Release(ask) => vec![&mut ask.name],
            Request::Inspect(ask) => vec![&mut ask.name],
            Request::ForceRelease(ask) => vec![&mut ask.name],
            Request::Probe(_) => Vec::new(),
        };
        for name in names {
            *name = self.name(name).map_err(|unfit| error::unfit(&unfit))?;
        }
        Ok(request)
    }

    /// Returns the channel of the name as it is stored; `None` for a name that cannot be stored.
    pub(crate) fn channel(&self, channel: &Channel) -> Option<Channel> {
        let name = self.name(channel.name()).ok()?;
        Some(match channel {
            Channel::Lock(_) => Channel::Lock(name),
            Channel::Waiter(_, owner) => Channel::Waiter(name, *owner),
            Channel::ReadWrite(_) => Channel::ReadWrite(name),
            Channel::Claim(_, mode, owner) => Channel::Claim(name, *mode, *owner),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key;

    #[test]
    fn a_tag_lies_in_the_middle_of_its_part() {
        for (of, slots) in [
            (1, vec![8_192]),
            (3, vec![2_730, 8_192, 13_653]),
            (5, vec![1_638, 4_915, 8_192, 11_468, 14_745]),
        ] {
            let tags: Vec<Tag> = (0..of).map(|index| Tag::of_shard(index, of)).collect();
            let found: Vec<u16> = tags.iter().map(|tag| tag.slot().0).collect();
            assert_eq!(found, slots);
            for tag in &tags {
                let name = tag.name(&Name::new("orders/42").unwrap()).unwrap();
                let keys = [
                    name.to_string(),
                    String::from_utf8(tag.home().marker(b"")).unwrap(),
                    key::token(&name).to_string(),
                    key::channel(&name).to_string(),
                ];
                assert!(keys.iter().all(|key| keyslot::of_key(key) == tag.slot()));
            }
        }
    }

    /// Clients of different versions must have the same tags, or they would not exclude each other.
    #[test]
    fn tags_stay_what_they_are() {
        let texts = |of| {
            let tags = (0..of).map(|index| Tag::of_shard(index, of).text);
            tags.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(texts(1), "quorlock-13404");
        assert_eq!(texts(3), "quorlock-10213 quorlock-13404 quorlock-22561");
        assert_eq!(
            texts(5),
            "quorlock-43741 quorlock-8255 quorlock-13404 quorlock-12548 quorlock-47782"
        );
    }

    #[test]
    fn a_name_that_cannot_be_kept_is_told_what_to_do() {
        let tag = Tag::of_shard(0, 3);
        let refused = |text: &str| tag.name(&Name::new(text).unwrap()).unwrap_err().to_string();
        let text = refused("{orders}:42");
        assert!(text.contains("lock orders:42 instead"), "{text}");
        let text = refused("x:1:rwlock_timeout:1");
        assert!(text.contains("take another name"), "{text}");
        let text = refused("{{}");
        assert!(text.contains("lock lock instead"), "{text}");
        for reserved in ["{quorlock_marker}", "{a:rwlock_timeout:1}"] {
            let text = refused(reserved);
            assert!(text.contains("take another name"), "{text}");
        }
        let most = LONGEST_NAME - tag.text().len() - 3;
        let text = refused(&format!("{{{}}}", "x".repeat(most + 1)));
        assert!(text.contains(&format!("{most} bytes")), "{text}");
        let text = refused(&"x".repeat(most + 1));
        assert!(text.contains(&format!("{most} bytes")), "{text}");
        for fine in ["x".repeat(most).as_str(), "a}b", "a{b", "{}x"] {
            tag.name(&Name::new(fine).unwrap()).unwrap();
        }
    }
}
