//! What a client says of a hold.

use quorlock::{OwnerId, Token};

/// What the checkers ask of a guard.
pub trait Hold {
    /// By which the history knows the hold: its guards share it, and no other hold of the client has it.
    fn id(&self) -> OwnerId;

    /// Whether the client may rely upon it now.
    fn is_held(&self) -> bool;

    /// What is held, name after name.
    fn each_name(&self, f: &mut dyn FnMut(&str));

    /// The token for one of the names.
    fn token_of(&self, name: &str) -> Option<Token>;
}
