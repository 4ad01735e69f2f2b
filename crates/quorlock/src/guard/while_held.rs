//! Work that ends with the lock.

use crate::error::ReleaseError;

/// Work that was done in time, and what became of the release after it. See [`Guard::while_held`](crate::Guard::while_held).
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "the output of the work, and perhaps a release that was not confirmed"]
pub struct Finished<T> {
    /// What the work came to. The lock was held until then.
    pub output: T,
    /// What became of the release, which does not take the output away: where it is not confirmed it goes on in the background, and
    /// the name stays locked until its lease ends at latest.
    pub release: Result<(), ReleaseError>,
}
