//! The slots and the servers of a node that is divided.

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
pub struct UnfitName {
    /// Rejected name.
    pub name: Name,
    /// Why the node cannot store the name, and what to do about it.
    pub why: String,
    /// Name to lock instead, if the transport knows one that the node can store.
    pub instead: Option<String>,
}

impl UnfitName {
    /// Returns the error for a name, with the reason and what to do about it.
    #[must_use]
    pub fn new(name: Name, why: impl Into<String>) -> Self {
        UnfitName {
            name,
            why: why.into(),
            instead: None,
        }
    }

    /// Returns the same error with a name to lock instead.
    #[must_use]
    pub fn with_instead(self, instead: impl Into<String>) -> Self {
        let instead = Some(instead.into());
        UnfitName { instead, ..self }
    }
}

impl fmt::Display for UnfitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

impl std::error::Error for UnfitName {}
