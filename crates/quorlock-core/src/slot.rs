//! The slots and the servers of a node that is divided, as a Redis Cluster is.

use std::fmt;

use crate::name::Name;

/// The part of a node in which the keys of a name are stored. Each part is served, moved and lost separately.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Slot(pub u16);

impl Slot {
    /// The only slot of a node that is not divided.
    pub const WHOLE: Slot = Slot(0);
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One of the servers of a node, by a number that its transport has given it. The numbers of two nodes are unrelated.
///
/// Each server executes its requests one after another, and is slow, silent or gone by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ServerNumber(pub u64);

impl ServerNumber {
    /// The only server of a node that is not divided, and the number for slots whose server is not known.
    pub const WHOLE: ServerNumber = ServerNumber(0);
}

/// The error for a name that a node cannot store.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UnfitName {
    /// The node is divided, and the keys of the name would be in different slots. No request can use keys in two slots.
    Scattered {
        /// Rejected name.
        name: Name,
        /// Name to lock instead: the same name behind a tag, which keeps its keys together.
        instead: String,
    },
    /// The node stores all names under its own tag, so the tag in the name would have no effect.
    Tagged {
        /// Rejected name.
        name: Name,
        /// Name to lock instead: the same name without its braces.
        instead: String,
    },
    /// The node stores all names under its own tag, and with the tag the name is too long.
    TooLong {
        /// Rejected name.
        name: Name,
        /// The longest name that the node can store, in bytes.
        most: usize,
    },
    /// The node stores all names under its own tag, and with the tag the name is a key that stores something else.
    Reserved {
        /// Rejected name.
        name: Name,
        /// Description of what the key stores.
        kept: &'static str,
    },
}

impl fmt::Display for UnfitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitName::Scattered { name, instead } => {
                let why = match instead.contains('{') {
                    true => "whose tag (the text between the first braces) keeps them together",
                    false => "which has none",
                };
                write!(
                    f,
                    "{name}: its braces would put its keys into different slots of the cluster, and no script can use two of those: \
                     lock {instead} instead, {why}"
                )
            }
            UnfitName::Tagged { name, instead } => write!(
                f,
                "{name}: it has a tag (the text between the first braces), and a cluster in a majority stores all names under tags of \
                 the client: lock {instead} instead"
            ),
            UnfitName::TooLong { name, most } => write!(
                f,
                "{name}: a cluster in a majority stores names behind a tag, so at most {most} bytes are allowed: name a hash of it instead"
            ),
            UnfitName::Reserved { name, kept } => write!(
                f,
                "{name}: behind the tag of a cluster in a majority it is a key that stores {kept}: take another name"
            ),
        }
    }
}

impl std::error::Error for UnfitName {}
