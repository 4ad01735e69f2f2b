//! The steps of a sequence.

use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::message::Request;
use quorlock_core::name::Name;
use quorlock_core::node::{Held, KeyKind};

/// One step of a sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a sequence has a few dozen steps"
)]
pub enum Step {
    /// A request is executed.
    Ask(Request),
    /// The last request is executed again, as can happen in a network.
    AskAgain,
    /// Requests about different names that many callers send at the same moment are executed.
    AskTogether(Vec<Request>),
    /// Time passes.
    Pass(Duration),
    /// The keys change without a request.
    Plant(Plant),
}

/// What changes the keys without a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plant {
    /// A value under the key of a name.
    Key {
        /// The name whose key is written.
        name: Name,
        /// The value.
        held: Held,
        /// TTL of the key; `None` if it does not expire.
        ttl: Option<Duration>,
    },
    /// The server, at its memory limit, evicts keys of a name.
    Evict {
        /// The name whose keys are evicted.
        name: Name,
        /// The keys.
        kinds: Vec<KeyKind>,
    },
    /// The marker, if there is one, becomes that of another process, as if the server had been restarted with all its
    /// data.
    Restart,
    /// A token counter.
    Token {
        /// The name whose counter is written.
        name: Name,
        /// The value of the counter.
        token: Token,
        /// TTL of the counter; `None` if it does not expire.
        ttl: Option<Duration>,
    },
}
