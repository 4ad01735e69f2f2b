//! What a client says of a hold.

use std::time::Duration;

use quorlock::{OwnerId, Token};

/// What the checkers ask of a guard.
pub trait Hold {
    /// By which the history knows the hold: its guards share it, and no other hold of the client has it.
    fn id(&self) -> OwnerId;

    /// Whether the client may rely upon it now.
    fn is_held(&self) -> bool;

    /// For how long the client may rely upon it from now on; `None` when it is lost. One that does not say for how long says
    /// [`Duration::MAX`].
    fn validity(&self) -> Option<Duration> {
        self.is_held().then_some(Duration::MAX)
    }

    /// What is held, name after name.
    fn each_name(&self, f: &mut dyn FnMut(&str));

    /// The token for one of the names.
    fn token_of(&self, name: &str) -> Option<Token>;
}
