//! The properties that are checked, by name. A plan may exempt a run from some of them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A property that must hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// At most one client believes that it holds the lock, from when it receives its guard until its last check that
    /// finds the lock held.
    Exclusion,
    /// The writes of two holds do not interleave, and no update is overwritten before it is read.
    Usage,
    /// Tokens are unique and grow. A store never accepts a token that is smaller than one that it has seen.
    Fencing,
    /// No client changes another client's claim.
    Ownership,
    /// The hold count that a guard reports is the number of guards of its hold.
    HoldCount,
    /// When all faults have ended, the lock is acquired within a bound.
    Progress,
    /// After all clients have stopped, nothing stays locked.
    Orphans,
    /// A fair lock serves its waiters in the order in which they arrived.
    Fairness,
    /// A writer excludes all other clients, and a client that has left keeps no other client out.
    ReadWrite,
    /// Of two requests of one hold, the one with the larger number does not state a shorter lease.
    Statements,
    /// At most one leader believes that it leads, from its election until its last check that finds that it leads.
    Leadership,
    /// Terms of leaders grow strictly with each election.
    Terms,
    /// Each node frees the claims of a dead process within their TTL. Only the fast lane observes the claims of nodes.
    Expiry,
    /// Statements about holds are true: a client that receives a guard holds the lock, an extension is as long as
    /// requested, and a hold that is renewed lasts.
    Validity,
    /// The run ends. Clients and events do not continue forever while no time passes.
    Termination,
    /// A property that a user's test states with `always!` is true in every evaluation.
    Always,
    /// A property that a user's test states with `eventually!` is true before the end of the run.
    Eventually,
}

impl Property {
    /// Every property, in the order in which they are checked.
    pub const ALL: [Property; 17] = [
        Property::Exclusion,
        Property::Leadership,
        Property::Terms,
        Property::ReadWrite,
        Property::Usage,
        Property::Fencing,
        Property::Ownership,
        Property::HoldCount,
        Property::Statements,
        Property::Validity,
        Property::Fairness,
        Property::Progress,
        Property::Orphans,
        Property::Expiry,
        Property::Termination,
        Property::Always,
        Property::Eventually,
    ];

    /// Returns the property with this name.
    pub fn named(name: &str) -> Option<Self> {
        Property::ALL
            .into_iter()
            .find(|property| property.name() == name)
    }

    /// Returns whether a user's test states this property.
    #[must_use]
    pub const fn is_stated(self) -> bool {
        matches!(self, Property::Always | Property::Eventually)
    }

    /// Returns the name of the property.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Property::Exclusion => "exclusion",
            Property::Usage => "usage",
            Property::Fencing => "fencing",
            Property::Ownership => "ownership",
            Property::HoldCount => "hold-count",
            Property::Progress => "progress",
            Property::Orphans => "orphans",
            Property::Fairness => "fairness",
            Property::ReadWrite => "read-write",
            Property::Statements => "statements",
            Property::Validity => "validity",
            Property::Leadership => "leadership",
            Property::Terms => "terms",
            Property::Expiry => "expiry",
            Property::Termination => "termination",
            Property::Always => "always",
            Property::Eventually => "eventually",
        }
    }

    /// Returns whether this is a liveness property. Such a property is violated by waiting too long, not by a wrong
    /// step.
    #[must_use]
    pub const fn is_liveness(self) -> bool {
        matches!(
            self,
            Property::Progress
                | Property::Orphans
                | Property::Expiry
                | Property::Termination
                | Property::Eventually
        )
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
