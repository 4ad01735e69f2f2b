//! Conditions in which a server refuses requests.

/// A condition in which a server answers requests with an error instead of executing them, as far as Redis does so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Condition {
    /// `READONLY`: the server is configured as a replica.
    ReadOnly,
    /// `LOADING`: the server reads its data from disk.
    Loading,
    /// `OOM`: the memory of the server is used up.
    OutOfMemory,
    /// `BUSY`: a script does not end.
    Busy,
    /// `NOREPLICAS`: fewer replicas follow the server than `min-replicas-to-write` demands.
    FewReplicas,
}
