//! The checkers' view of a guard.

use std::time::Duration;

use quorlock::{OwnerId, Token};

/// A guard, as the checkers see it.
pub trait Hold {
    /// Returns the id of the hold in the history. All guards of a hold share this id, and no other hold of the client
    /// has it.
    fn id(&self) -> OwnerId;

    /// Returns whether the client may rely on the hold now.
    fn is_held(&self) -> bool;

    /// Returns how much longer the client may rely on the hold, or `None` if it is lost. A guard that cannot tell
    /// returns [`Duration::MAX`].
    fn validity(&self) -> Option<Duration> {
        self.is_held().then_some(Duration::MAX)
    }

    /// Calls `f` with each name that is held.
    fn each_name(&self, f: &mut dyn FnMut(&str));

    /// Returns the token for one of the names.
    fn token_of(&self, name: &str) -> Option<Token>;
}
