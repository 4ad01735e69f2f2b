//! The result of work that ran while a lock was held.

use crate::error::ReleaseError;

/// The output of work that ended while the lock was held, and the result of the release after it. See
/// [`Guard::while_held`](crate::Guard::while_held).
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "the output of the work, and perhaps a release that was not confirmed"]
pub struct Finished<T> {
    /// The output of the work. The lock was held until it ended.
    pub output: T,
    /// The result of the release. An unconfirmed release does not affect the output: it continues in the background,
    /// and the name stays locked until its lease ends at the latest.
    pub release: Result<(), ReleaseError>,
}
