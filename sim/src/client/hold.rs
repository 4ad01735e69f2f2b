//! The view that the checkers have of a guard.

use std::time::Duration;

use quorlock::{OwnerId, Token};

/// What the checkers read from a guard.
pub trait Hold {
    /// Returns the identity of the hold in the history. All guards of the hold share it; no other hold of the client
    /// has it.
    fn id(&self) -> OwnerId;

    /// Whether the client may rely on the hold now.
    fn is_held(&self) -> bool;

    /// Returns for how long the client may rely on the hold from now on, or `None` if it is lost. A guard that does not
    /// know returns [`Duration::MAX`].
    fn validity(&self) -> Option<Duration> {
        self.is_held().then_some(Duration::MAX)
    }

    /// Calls `f` with each name that is held.
    fn each_name(&self, f: &mut dyn FnMut(&str));

    /// Returns the token for one of the names.
    fn token_of(&self, name: &str) -> Option<Token>;
}
