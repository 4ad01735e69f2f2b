//! What happens to a lock, with the scenario that shows it.

use super::{Clocks, Failover, Persistence, Question, Resource};

/// Something that happens, and what it does to a lock.
#[derive(Debug)]
pub(in crate::advise) struct Evidence {
    /// The id of a scenario in the catalog.
    pub(in crate::advise) scenario: &'static str,
    /// One of its cases.
    pub(in crate::advise) case: &'static str,
    pub(in crate::advise) expected: Expected,
    /// The deployments for which it matters.
    when: When,
    /// What happens, for the table.
    pub(in crate::advise) what: &'static str,
    /// What it does to a lock.
    pub(in crate::advise) text: &'static str,
}

/// The verdict of the case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::advise) enum Expected {
    Holds,
    /// Two clients hold the lock at once.
    TwoHolders,
    /// A write of a former holder takes effect.
    LateWrite,
    /// No client gets the lock, and none gets it twice.
    Stands,
}

impl Expected {
    /// The verdict and the property, as the catalog has them.
    #[cfg(test)]
    pub(in crate::advise) fn words(self) -> (&'static str, Option<&'static str>) {
        match self {
            Expected::Holds => ("holds", None),
            Expected::TwoHolders => ("breaks", Some("exclusion")),
            Expected::LateWrite => ("breaks", Some("usage")),
            Expected::Stands => ("breaks", Some("progress")),
        }
    }
}

/// The answers for which a piece of evidence is of interest. What is not answered may be anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    Always,
    Keeps(Persistence),
    Clocks(Clocks),
    FailsOver,
    Resource(Resource),
}

impl Evidence {
    pub(in crate::advise) fn applies_to(&self, question: &Question) -> bool {
        match self.when {
            When::Always => true,
            When::Keeps(how) => question.persistence.is_none_or(|known| known == how),
            When::Clocks(how) => question.clocks.is_none_or(|known| known == how),
            When::FailsOver => question.failover != Some(Failover::None),
            When::Resource(how) => question.resource.is_none_or(|known| known == how),
        }
    }
}

const fn evidence(
    (scenario, case): (&'static str, &'static str),
    expected: Expected,
    when: When,
    what: &'static str,
    text: &'static str,
) -> Evidence {
    Evidence {
        scenario,
        case,
        expected,
        when,
        what,
        text,
    }
}

const ANY: &str = "product";
const STEPPED: When = When::Clocks(Clocks::Stepped);
use Expected::{Holds, LateWrite, Stands, TwoHolders};

pub(super) const RESTART: &[Evidence] = &[
    evidence(
        ("S5", ANY),
        TwoHolders,
        When::Keeps(Persistence::None),
        "a restart without its data",
        "a server that keeps nothing restarts, and grants the next client what the first one holds",
    ),
    evidence(
        ("S6", ANY),
        TwoHolders,
        When::Keeps(Persistence::Everysec),
        "a power cut (everysec)",
        "with appendfsync everysec, a power cut takes the claims of the last second",
    ),
    evidence(
        ("S7", ANY),
        Holds,
        When::Keeps(Persistence::Always),
        "a power cut (always)",
        "with appendfsync always, a power cut loses no claim",
    ),
];

pub(super) const CLOCK_OF_SERVER: &[Evidence] = &[
    evidence(
        ("S9", ANY),
        TwoHolders,
        STEPPED,
        "a forward step of its clock",
        "a forward step of its clock by a lease ends claims early, as clock_margin is 0 on one server",
    ),
    evidence(
        ("S10", ANY),
        Holds,
        STEPPED,
        "a backward step of its clock",
        "a backward step of its clock keeps the names of dead holders locked for longer, and gives no lock away",
    ),
];

pub(super) const FAILOVER_OF_SERVER: &[Evidence] = &[evidence(
    ("R1", ANY),
    TwoHolders,
    When::Always,
    "a failover",
    "a failover promotes a replica that has not received the claim, and the next client gets the lock",
)];

pub(super) const FAILOVER_OF_GROUP: &[Evidence] = &[
    evidence(
        ("R1", ANY),
        TwoHolders,
        When::Always,
        "a failover",
        "a failover promotes a replica that has not received the claim, and the next client gets the lock",
    ),
    evidence(
        ("R2", "product, WAIT 1"),
        Holds,
        When::Always,
        "a failover (WAIT)",
        "with WAIT, a failover to a replica that has confirmed the claim",
    ),
    evidence(
        ("R3", "product, WAIT 1"),
        TwoHolders,
        When::Always,
        "a failover to another replica (WAIT)",
        "with WAIT, a failover to a replica that has not confirmed the claim",
    ),
    evidence(
        ("R12", "product, cut off with the old primary"),
        TwoHolders,
        When::Always,
        "a cut-off primary",
        "a client that reaches no sentinel stays at an old primary that still grants",
    ),
    evidence(
        (
            "R12",
            "product, min-replicas-to-write, cut off with the old primary",
        ),
        Holds,
        When::Always,
        "a cut-off primary (min-replicas-to-write)",
        "the old primary is cut off, and refuses writes without replicas before another one is promoted",
    ),
];

pub(super) const CLUSTER: &[Evidence] = &[
    evidence(
        ("R22", "product, one cluster"),
        TwoHolders,
        When::Always,
        "a failover",
        "a shard fails over to a replica that has not received the claim, and the next client gets the lock",
    ),
    evidence(
        ("R21", ANY),
        Stands,
        When::Always,
        "a shard without an owner",
        "a primary and its replica are down: no lock on the names of their slots",
    ),
];

pub(super) const RESTART_OF_MAJORITY: &[Evidence] = &[
    evidence(
        ("Q5", ANY),
        Holds,
        When::Always,
        "a restart without its data",
        "a server restarts without its data: its votes do not count for one longest lease",
    ),
    evidence(
        ("Q8", "product, everysec"),
        Holds,
        When::Keeps(Persistence::Everysec),
        "a power cut (everysec)",
        "with appendfsync everysec, a power cut takes the claims of the last second of one server: its votes do not count either",
    ),
];

pub(super) const CLOCK_OF_MAJORITY: &[Evidence] = &[
    evidence(
        ("Q3", "product, with a margin of 700ms"),
        Holds,
        STEPPED,
        "a forward step within the margin",
        "the clock of a server steps forward by less than the clock margin within one hold",
    ),
    evidence(
        ("Q3", "product, without a margin"),
        TwoHolders,
        STEPPED,
        "a forward step beyond the margin",
        "the clock of a server steps forward by more than the clock margin within one hold",
    ),
];

pub(super) const MINORITY: &[Evidence] = &[evidence(
    ("Q1", ANY),
    Holds,
    When::Always,
    "a minority is down",
    "a minority is down, and the others grant and renew",
)];

pub(super) const FAILOVERS_OF_MAJORITY: &[Evidence] = &[
    evidence(
        ("Q24", "product"),
        Holds,
        When::FailsOver,
        "failovers",
        "members fail over to replicas that lack claims: their votes do not count for one longest lease",
    ),
    evidence(
        ("R22", "product, two Sentinel groups"),
        TwoHolders,
        When::FailsOver,
        "two cut-off primaries",
        "a client stays at old primaries of two members that still grant, and hears nothing of their failovers",
    ),
];

pub(super) const SHARDS: &[Evidence] = &[
    evidence(
        ("R22", ANY),
        Holds,
        When::Always,
        "two failovers at once",
        "two of the shards fail over at once to replicas that lack the claim: their votes do not count for one longest lease",
    ),
    evidence(
        ("R21", "product, a majority of shards"),
        Holds,
        When::Always,
        "a shard without an owner",
        "one shard has no owner, and the others are enough",
    ),
    evidence(
        ("R21", "product, a majority of shards, full coverage"),
        Stands,
        When::Always,
        "full coverage",
        "with cluster-require-full-coverage yes, all shards stop while one slot has no owner",
    ),
];

pub(super) const PAUSE: &[Evidence] = &[
    evidence(
        ("S2", ANY),
        LateWrite,
        When::Resource(Resource::Cannot),
        "a suspended holder",
        "a holder is suspended between its check and its write for longer than the lease, and writes late",
    ),
    evidence(
        ("S2", "product, fenced"),
        Holds,
        When::Resource(Resource::Compares),
        "a suspended holder (fenced)",
        "a holder is suspended for longer than the lease, and the resource rejects its late write by its token",
    ),
];

pub(super) const PAUSE_ON_MAJORITY: &[Evidence] = &[
    evidence(
        ("Q10", ANY),
        LateWrite,
        When::Resource(Resource::Cannot),
        "a suspended holder",
        "a holder is suspended between its check and its write for longer than the lease, and writes late",
    ),
    evidence(
        ("Q10", "product, fenced"),
        Holds,
        When::Resource(Resource::Compares),
        "a suspended holder (fenced)",
        "a holder is suspended for longer than the lease, and the resource rejects its late write by its token",
    ),
];

pub(super) const FAILOVER_OF_DATABASE: &[Evidence] = &[evidence(
    ("D1", ANY),
    TwoHolders,
    When::FailsOver,
    "a failover to an asynchronous replica",
    "a failover to an asynchronous replica loses the commit of the claim",
)];

pub(super) const COPIES: &[Evidence] = &[
    evidence(
        ("D10", "product, back at once"),
        TwoHolders,
        When::Always,
        "an old copy",
        "an old copy is restored, and is used before a lease has passed",
    ),
    evidence(
        ("D10", ANY),
        Holds,
        When::Always,
        "an old copy after a lease",
        "an old copy is restored, and stays away for longer than a lease",
    ),
];

pub(super) const CLOCK_OF_DATABASE: &[Evidence] = &[evidence(
    ("D3", "product, a database"),
    TwoHolders,
    STEPPED,
    "a forward step of its clock",
    "a forward step of its clock by a lease ends claims early; check_in refuses the commit of a former holder",
)];

pub(super) const ETCD: &[Evidence] = &[
    evidence(
        ("D4", ANY),
        Holds,
        When::Always,
        "a change of the leader",
        "the leader of its members changes: a new one has every acknowledged write",
    ),
    evidence(
        ("D3", "product, a consensus store"),
        Holds,
        STEPPED,
        "a step of a clock",
        "no clock of the store is read",
    ),
];

pub(super) const RESTART_OF_STORES: &[Evidence] = &[evidence(
    ("D9", ANY),
    Holds,
    When::Always,
    "a store that forgets",
    "one of the stores restarts without its data, and later another fails over without its last commits",
)];

pub(super) const FAILOVER_OF_STORES: &[Evidence] = &[evidence(
    ("D2", ANY),
    Holds,
    When::FailsOver,
    "failovers of databases",
    "databases fail over to asynchronous replicas: the votes of a promoted one do not count for one longest lease",
)];
