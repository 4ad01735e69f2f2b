//! The values under the keys of names.

use std::collections::BTreeMap;

use crate::message::Mode;
use crate::owner::OwnerId;

/// The value under the key of a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Held {
    /// A claim of a plain or a fair lock.
    Plain {
        /// Owner of the claim.
        owner: OwnerId,
        /// Hold count of the owner.
        count: u32,
    },
    /// Claims of a read-write lock.
    ReadWrite(ReadWrite),
    /// A key that is not a lock.
    NotALock,
}

/// The claims of a read-write lock: readers, or a writer, which may also be one of the readers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReadWrite {
    /// Writer and its hold count.
    pub writer: Option<(OwnerId, u32)>,
    /// Readers and their hold counts. Some may be dead: their leases have run out, and no request has removed them yet.
    pub readers: BTreeMap<OwnerId, u32>,
}

impl ReadWrite {
    pub(super) fn mode(&self) -> Mode {
        match self.writer {
            Some(_) => Mode::Write,
            None => Mode::Read,
        }
    }
}

impl Held {
    /// Returns the claims of a lock with one reader.
    #[must_use]
    pub fn read(owner: OwnerId, count: u32) -> Self {
        Held::ReadWrite(ReadWrite {
            writer: None,
            readers: BTreeMap::from([(owner, count)]),
        })
    }

    /// Returns the claims of a lock with a writer.
    #[must_use]
    pub fn write(owner: OwnerId, count: u32) -> Self {
        Held::ReadWrite(ReadWrite {
            writer: Some((owner, count)),
            readers: BTreeMap::new(),
        })
    }
}
