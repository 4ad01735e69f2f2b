//! Conditions in which a server refuses requests.

/// A condition in which a server answers requests with an error instead of executing them, where Redis does so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Condition {
    /// `READONLY`: the server is configured as a replica.
    ReadOnly,
    /// `LOADING`: the server is reading its data from disk.
    Loading,
    /// `OOM`: the server has reached its memory limit.
    OutOfMemory,
    /// `BUSY`: the server is running a script that does not end.
    Busy,
    /// `NOREPLICAS`: fewer replicas follow the server than `min-replicas-to-write` requires.
    FewReplicas,
}
