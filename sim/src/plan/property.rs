//! The properties that must hold, by name. A plan may list some that are not demanded.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A property that must hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// At most one client believes to hold the lock: from when it receives its guard until it last finds the lock
    /// held.
    Exclusion,
    /// Writes of two holds do not interleave, and no update is overwritten unread.
    Usage,
    /// Tokens are unique and grow; a store never accepts a smaller one than it has seen.
    Fencing,
    /// No client changes another client's claim.
    Ownership,
    /// The hold count that a guard reports is the number of its hold's guards.
    HoldCount,
    /// Once everything works again, the lock is acquired within a bound.
    Progress,
    /// After all clients have ended, nothing stays locked.
    Orphans,
    /// A fair lock serves its waiters in the order of their arrival.
    Fairness,
    /// A writer excludes all others, and a client that has left keeps no other client out.
    ReadWrite,
    /// Of two requests of one hold, the one with the larger number states no shorter lease.
    Statements,
    /// At most one leader believes to lead: from its election until it last finds that it leads.
    Leadership,
    /// Terms of leaders grow strictly with each election.
    Terms,
    /// Each node frees the claims of a dead process within their TTL. Only the fast lane observes the claims of
    /// nodes.
    Expiry,
    /// Statements about holds are true: a client that receives a guard holds the lock, an extension is as long as
    /// requested, and a hold that is renewed lasts.
    Validity,
    /// The run ends: clients and events do not continue forever while no time passes.
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

    /// Returns whether a user's test states it.
    #[must_use]
    pub const fn is_stated(self) -> bool {
        matches!(self, Property::Always | Property::Eventually)
    }

    /// Returns its name.
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

    /// Returns whether it is a liveness property: to violate it means to wait too long, not to do something wrong.
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
