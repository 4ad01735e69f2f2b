//! What stands under the keys of names.

use std::collections::BTreeMap;

use crate::message::Mode;
use crate::owner::OwnerId;

/// What stands under the key of a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Held {
    /// A claim of a plain lock, or of a fair one.
    Plain {
        /// Whose.
        owner: OwnerId,
        /// At which hold count.
        count: u32,
    },
    /// Claims of a read-write lock.
    ReadWrite(ReadWrite),
    /// A key that is no lock at all.
    NotALock,
}

/// The claims of a read-write lock: readers, or a writer, who may be among the readers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReadWrite {
    /// Who writes, and at which hold count.
    pub writer: Option<(OwnerId, u32)>,
    /// The readers, each with its hold count. Some may be dead: their leases have run out, and no request has removed them yet.
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
    /// What one reader holds.
    #[must_use]
    pub fn read(owner: OwnerId, count: u32) -> Self {
        Held::ReadWrite(ReadWrite {
            writer: None,
            readers: BTreeMap::from([(owner, count)]),
        })
    }

    /// What a writer holds.
    #[must_use]
    pub fn write(owner: OwnerId, count: u32) -> Self {
        Held::ReadWrite(ReadWrite {
            writer: Some((owner, count)),
            readers: BTreeMap::new(),
        })
    }
}
