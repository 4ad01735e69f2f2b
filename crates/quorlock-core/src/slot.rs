//! The parts of a node that is divided, as a Redis Cluster is.

use std::fmt;

use crate::name::Name;

/// Which part of a node the keys of a name lie in. Parts are served, moved and lost by themselves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Slot(pub u16);

impl Slot {
    /// The one part of a node that is not divided.
    pub const WHOLE: Slot = Slot(0);
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A name that a node cannot keep.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UnfitName {
    /// The node is divided, and the keys of the name would lie in different parts: no request can be about two of them.
    Scattered {
        /// The name.
        name: Name,
        /// What to lock instead: the same name behind a tag, which keeps its keys together.
        instead: String,
    },
    /// The node keeps all names under a tag of its own, so the tag of the name would mean nothing.
    Tagged {
        /// The name.
        name: Name,
        /// What to lock instead: the same name without its braces.
        instead: String,
    },
    /// The node keeps all names under a tag of its own, and behind that the name would be too long.
    TooLong {
        /// The name.
        name: Name,
        /// The longest name that the node can keep, in bytes.
        most: usize,
    },
    /// The node keeps all names under a tag of its own, and behind that the name is a key under which something else is kept.
    Reserved {
        /// The name.
        name: Name,
        /// What is kept there.
        kept: &'static str,
    },
}

impl fmt::Display for UnfitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitName::Scattered { name, instead } => {
                let why = match instead.contains('{') {
                    true => "whose tag (what stands between the first braces) keeps them together",
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
                "{name}: it has a tag (what stands between the first braces), and a cluster in a majority keeps all names under tags of \
                 the client's: lock {instead} instead"
            ),
            UnfitName::TooLong { name, most } => write!(
                f,
                "{name}: a cluster in a majority keeps names behind a tag, so that {most} bytes are allowed: name a hash of it instead"
            ),
            UnfitName::Reserved { name, kept } => write!(
                f,
                "{name}: behind the tag of a cluster in a majority it is a key under which {kept} is kept: take another name"
            ),
        }
    }
}

impl std::error::Error for UnfitName {}
