//! What a sequence is made of.

use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::message::Request;
use quorlock_core::name::Name;
use quorlock_core::node::Held;

/// One step of a sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A request is executed.
    Ask(Request),
    /// The last request is executed again, as a network may do.
    AskAgain,
    /// Requests about different names are executed, which many callers have at the same moment.
    AskTogether(Vec<Request>),
    /// Time passes.
    Pass(Duration),
    /// Another program writes a key.
    Plant(Plant),
}

/// What another program writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plant {
    /// Something under the key of a name.
    Key {
        /// The name.
        name: Name,
        /// What.
        held: Held,
        /// When it expires, if ever.
        ttl: Option<Duration>,
    },
    /// The marker, if there is one, is another process's from now on: the server was restarted with all its data.
    Restart,
    /// A token counter.
    Token {
        /// The name.
        name: Name,
        /// Its value.
        token: Token,
        /// When it expires, if ever.
        ttl: Option<Duration>,
    },
}
