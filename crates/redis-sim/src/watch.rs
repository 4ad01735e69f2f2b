//! The group that a sentinel watches.

/// The address of a process: host and port.
pub type Place = (String, u16);

/// The state of the group that a sentinel watches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// Name of the group.
    pub name: String,
    /// Server that the sentinel names as the primary.
    pub primary: Place,
    /// Epoch of the configuration, which grows with each failover.
    pub epoch: u64,
    /// Other sentinels that it knows.
    pub sentinels: Vec<Place>,
}
