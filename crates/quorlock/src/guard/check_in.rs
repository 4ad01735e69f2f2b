//! A hold in a transaction of the database that stores its claims.

use quorlock_store::{CheckIn, Claims};

use super::Guard;

impl Guard {
    /// Checks in a transaction that this hold is still there, and locks its claim until the transaction ends: it can be
    /// committed only while no other client can be granted the name. **No stale write is possible**, whatever pauses do.
    ///
    /// The claim must be in the database of the transaction, and the data too: a lock of [`Locks::connect`] with
    /// `postgres://`, `mysql://` or `sqlite:`. The transaction is one of `tokio-postgres` or `mysql_async` (the result is a
    /// future), or of `rusqlite` (a [`Result`]). For another driver, or a transaction on another thread, see [`Guard::claims`].
    ///
    /// Check in last, just before the commit. A renewal waits for the transaction, so one that is longer than the lease
    /// loses it.
    ///
    /// [`CheckIn`] has an example, and the page "Stores" says when a database needs no majority.
    ///
    /// # Errors
    /// [`CheckInError`](quorlock_store::CheckInError): the hold is gone, or cannot be checked here. The transaction is
    /// rolled back then, also if the error is ignored; on MySQL, its connection is ended.
    ///
    /// # Cancel safety
    /// If the future is dropped early, nothing was checked: drop the transaction, too.
    ///
    /// [`Locks::connect`]: crate::Locks::connect
    pub fn check_in<'t, T: CheckIn>(&self, transaction: &'t mut T) -> T::Checked<'t> {
        transaction.check_in(self.claims())
    }

    /// Returns the claims of this hold for [`CheckIn::check_in`], which may be called on another thread.
    #[must_use]
    pub fn claims(&self) -> Claims {
        // The next caller would have the same owner. A check of the claims could then succeed although this hold has ended.
        self.hold.stay_here();
        let layout = &self.hold.layout;
        let claims = Claims::new(self.hold.owner, layout.names().cloned());
        match layout.parts.iter().all(|part| part.nodes.len() == 1) {
            true => claims,
            false => claims.on_several_nodes(),
        }
    }
}
