//! What a sentinel knows of the one group that it watches.

/// Where a process listens: host and port.
pub type Place = (String, u16);

/// A group that a sentinel watches, as far as it says something about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// What the group is called.
    pub name: String,
    /// Which server it names as the primary.
    pub primary: Place,
    /// Of the configuration: it grows with each failover.
    pub epoch: u64,
    /// The other sentinels that it knows.
    pub sentinels: Vec<Place>,
}
