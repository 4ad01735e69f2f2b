//! What must hold, by name: a plan says which of it is not demanded.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What must hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// At most one client believes to hold the lock: from its guard on until it last found it held.
    Exclusion,
    /// Writes of two holds do not interleave, and no update is overwritten unread.
    Usage,
    /// Tokens are unique and grow; a store never takes a smaller one than it has seen.
    Fencing,
    /// No client changes another's claim.
    Ownership,
    /// A hold has as many guards as were taken of it.
    HoldCount,
    /// Once everything works again the lock is acquired within a bound.
    Progress,
    /// When everybody has gone, nothing stays locked.
    Orphans,
    /// A fair lock serves its waiters in the order in which they came.
    Fairness,
    /// A writer is alone, and no client is kept out by one that has gone.
    ReadWrite,
    /// Of two requests of one hold, the one with the larger number states no shorter lease.
    Statements,
    /// At most one leader believes to lead: from its election on until it last found that it leads.
    Leadership,
    /// Terms of leaders grow strictly, with each election.
    Terms,
    /// What a process that died held is free on each node within its TTL. Only the fast lane sees what nodes hold.
    Expiry,
    /// A hold is worth what is said of it: who is given a guard holds the lock, an extension is as long as it was asked for,
    /// and what is renewed lasts.
    Validity,
    /// The run comes to its end: clients and events do not go on for ever while no time passes.
    Termination,
    /// A property that a test of a user's own states by `always!` is true at each look.
    Always,
    /// A property that a test of a user's own states by `eventually!` is true before the end of the run.
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

    /// Whether it is stated by a test of a user's own.
    #[must_use]
    pub const fn is_stated(self) -> bool {
        matches!(self, Property::Always | Property::Eventually)
    }

    /// Its name.
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

    /// Whether breaking it is a matter of waiting too long rather than of something wrong being done.
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
