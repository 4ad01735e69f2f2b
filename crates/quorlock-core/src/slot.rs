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

/// A name that cannot be locked on a node that is divided: its keys would lie in different parts, and no request can be about
/// two of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScatteredName {
    /// The name.
    pub name: Name,
    /// What to lock instead: the same name behind a tag, which keeps its keys together.
    pub instead: String,
}

impl fmt::Display for ScatteredName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: its braces would put its keys into different slots of the cluster, and no script can use two of those: \
             lock {} instead, whose tag (what stands between the first braces) keeps them together",
            self.name, self.instead
        )
    }
}

impl std::error::Error for ScatteredName {}
