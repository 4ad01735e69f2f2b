//! A lock server, as the conformance test sees it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::message::{Reply, Request, Ttl, Wake};
use quorlock_core::name::Name;
use quorlock_core::node::Held;
use quorlock_core::transport::Cause;

use super::step::Plant;

/// A lock server whose time can be made to pass.
pub trait Arm: fmt::Debug {
    /// Forgets all keys.
    fn begin(&mut self);

    /// Executes a request.
    fn apply(&mut self, request: &Request) -> Result<Reply, Cause>;

    /// What was published since this was asked last.
    fn published(&mut self) -> Vec<(Name, Wake)>;

    /// Lets time pass.
    fn pass(&mut self, span: Duration);

    /// Writes a key as another program would.
    fn plant(&mut self, plant: &Plant);

    /// What is there under all of these names; there must be no other key.
    fn look(&mut self, names: &[Name]) -> Looks;
}

/// The keys of a lock server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Looks {
    /// What stands under the names.
    pub claims: BTreeMap<Name, (Held, Ttl)>,
    /// The token counters.
    pub tokens: BTreeMap<Name, (Token, Ttl)>,
}
