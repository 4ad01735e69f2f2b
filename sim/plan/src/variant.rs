//! Variants of the lock: locks with deliberate flaws, and locks as others publish them. The simulator must find their
//! flaws.
//!
//! Each variant has a name and a list of [`Flaw`]s. The clients and nodes with these flaws are in
//! the crate `quorlock-sim-lab` (`model`).

mod algorithm;
mod flaw;

use std::fmt;
use std::str::FromStr;

pub use algorithm::{Algorithm, AlgorithmNodes, LEASE_RECORD, RegisterError};
pub use flaw::Flaw;

/// Defines the variants, each with its name in a plan and its flaws.
macro_rules! variants {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, [$($flaw:ident),*];)+) => {
        /// The implementation of the lock: the product's, or one of the simulator's own, which may have flaws.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub enum Variant {
            /// The lock of the crate `quorlock`.
            #[default]
            Product,
            $($(#[doc = $doc])+ $variant,)+
            /// A lock algorithm that the program has registered.
            Algorithm(Algorithm),
        }

        impl Variant {
            /// All variants but the registered algorithms.
            pub const ALL: &[Variant] = &[Variant::Product, $(Variant::$variant),+];

            /// The names of all variants that need no registration.
            const NAMES: &[&str] = &["product", $($name,)+ LEASE_RECORD.name()];

            /// Returns the name of the variant in a plan.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Variant::Product => "product",
                    $(Variant::$variant => $name,)+
                    Variant::Algorithm(algorithm) => algorithm.name(),
                }
            }

            /// Returns the flaws of the variant.
            #[must_use]
            pub const fn flaws(self) -> &'static [Flaw] {
                match self {
                    Variant::Product | Variant::Algorithm(_) => &[],
                    $(Variant::$variant => &[$(Flaw::$flaw),*],)+
                }
            }
        }
    };
}

variants! {
    /// Redlock as the Redis documentation describes it, used by a holder that respects its validity. On one node, the
    /// lock with `SET NX PX` and compare-and-delete. It has no flaw and serves as the control.
    Published = "published", [];
    /// N/2 grants count as a majority.
    HalfQuorum = "half-quorum", [HalfIsEnough];
    /// The holder never checks its deadline.
    ValidityIgnored = "validity-ignored", [NoDeadline];
    /// A round that took longer than its lease counts as won. The holder still checks the deadline when it uses the
    /// lock, so no property is broken.
    LateWin = "late-win", [LateWinTaken];
    /// The lease is counted from the replies that granted it.
    LeaseFromReply = "lease-from-reply", [GrantCountsFromReply];
    /// An extension is counted from the reply that confirmed it.
    ExtensionFromReply = "extension-from-reply", [ExtensionCountsFromReply];
    /// The release deletes the key without a check of its owner.
    PlainDelete = "plain-delete", [DeleteUnchecked];
    /// Nodes add to the hold count and subtract from it.
    Increments = "increments", [Increments];
    /// A renewal adds the lease to the remaining TTL of the claim, instead of setting it.
    AddingRenewals = "adding-renewals", [RenewalAdds];
    /// A client uses one owner number for all its rounds.
    ReusedNumber = "reused-number", [OneNumber];
    /// A confirmation counts for the latest renewal, whichever request it answers.
    LastPassCredited = "last-pass-credited", [LatestPassCredited];
    /// A renewal creates a missing claim again (extend or set), and the hold continues.
    ExtendOrSet = "extend-or-set", [FreshGrantRenews];
    /// Published Redlock whose token is the largest of plain counters, which start at 1.
    CounterTokens = "counter-tokens", [MaximumIsToken, CountersFromOne];
    /// A waiter that receives a wake-up treats it as a grant.
    WakeIsGrant = "wake-is-grant", [WakeIsGrant];
    /// A waiter tries again only after a message. It never tries on its own, neither after it has subscribed nor later.
    MessagesOnly = "messages-only", [NoLookWithoutMessage];
    /// A wake-up ends a random pause early.
    CutBackOff = "cut-back-off", [WakeEndsBackOff];
    /// All pauses between rounds have the same length, so clients that collided once collide again.
    EvenBackOff = "even-back-off", [PausesAreEven];
    /// `SET NX PX`, released by a plain `DEL`.
    SetNxDel = "set-nx-del", [SetNx, DeleteUnchecked];
    /// `SET NX PX`, released by `GET`, a comparison in the client, and `DEL`.
    GetThenDel = "get-then-del", [SetNx, GetBeforeDelete, DeleteUnchecked];
    /// `SET NX PX`, released by compare-and-delete. An owner that sends its acquire again is refused.
    SetNx = "set-nx", [SetNx];
    /// `SETNX`, followed by `EXPIRE` in a second request. A client that dies between the two leaves a key without an end.
    SetNxThenExpire = "set-nx-then-expire", [SetNx, ExpireFollows, ExpireUnchecked];
    /// Redisson's `RedissonRedLock`: members in turns, with a lease of twice the wait, `expireAsync` at the end, one owner
    /// for all attempts of a thread, hold counts that nodes increment, and no validity.
    RedissonRedLock = "redisson-red-lock",
        [TakesTurns, ExpireUnchecked, OneNumber, Increments, NoDeadline, MaximumIsToken, WallClock];
    /// Validity is measured with the client's wall clock.
    WallClock = "wall-clock", [WallClock];
    /// All clients make their claims under the same identity.
    SharedOwner = "shared-owner", [SetNx, SharedOwner];
    /// Every second client knows only the first three nodes.
    MixedMembership = "mixed-membership", [MixedMembership];
    /// Members are asked one after the other, and the lease counts from the last grant. The client does not check that
    /// the first member still has the claim at that time.
    UncheckedMulti = "unchecked-multi", [OneByOne, GrantCountsFromReply];
    /// Names are acquired one by one in the given order, and kept while the client waits for the next one. Two clients
    /// may wait for each other.
    HoldAndWait = "hold-and-wait", [WaitsInOrder];
    /// Every lost round multiplies the lease of the next by a thousand.
    CompoundingLease = "compounding-lease", [LeaseCompounds];
    /// The watchdog continues after the lock was released.
    ImmortalWatchdog = "immortal-watchdog", [WatchdogOutlivesRelease];
    /// An acquisition that is cancelled keeps the claims that it was granted so far, each renewed by a watchdog.
    CancelKeeps = "cancel-keeps", [CancelKeepsParts];
    /// A guard that is dropped releases nothing, and its watchdog continues.
    DropKeeps = "drop-keeps", [DropKeepsHold];
    /// A release stops at the first member that has lost the claim. The other members keep their claims, each renewed
    /// by a watchdog.
    ReleaseStops = "release-stops", [ReleaseStopsAtLoss];
    /// Members are asked one after the other, each with a full time-out. The elapsed time is never compared with the
    /// lease, neither at the end of the round nor later. There is also no round trip to agree on a token.
    UncheckedRound = "unchecked-round", [OneByOne, MembersHaveTime, LateWinTaken, NoDeadline, MaximumIsToken];
    /// The first renewal that fails ends the watchdog, and the holder never checks its deadline.
    SilentLoss = "silent-loss", [RenewalEndsAtError, NoDeadline];
    /// The product's clients, with nodes that serve and wake the newest waiter in the queue of a fair lock.
    NewestFirst = "newest-first", [NewestIsNext];
    /// The product's clients, with nodes on which places in a queue expire by the clocks of clients, as in Redisson.
    ClientClockQueue = "client-clock-queue", [ClientsTimePlaces];
    /// The product's clients, with nodes on which a waiter that gives up or dies keeps its place for minutes.
    KeptPlace = "kept-place", [PlaceOutlivesWaiter];
    /// The product's clients, with nodes on which the renewal of one reader renews all readers, even dead ones.
    ZombieReaders = "zombie-readers", [ReadersRenewAll];
    /// The product's clients, with nodes on which all readers share one lease: the lease of the reader that asked last.
    OneReadLease = "one-read-lease", [OneLeaseForReaders];
    /// The product's clients, with nodes on which readers do not keep a writer out.
    WriterBesideReaders = "writer-beside-readers", [WriterJoinsReaders];
    /// The product's clients, used by a reader that wants to write and keeps its read lock while it waits until no
    /// client reads.
    WaitingUpgrade = "waiting-upgrade", [UpgradeWaits];
    /// The product's clients, used by a leader that works until an event notifies it of its loss, and never checks
    /// whether it leads.
    ToldLeader = "told-leader", [LeaderWaitsForWord];
    /// The product's clients, used by leaders that take the number of elections won by their process as the term.
    CountedTerms = "counted-terms", [TermCountsElections];
    /// The product's clients, used by leaders that take the time of their election on their wall clock as the term.
    ClockTerms = "clock-terms", [TermIsClock];
    /// The product's clients of a group. They count claims before any replica has them, whatever the plan states.
    Unawaited = "unawaited", [ReplicasNotAwaited];
    /// The product's clients of a group. They ignore what sentinels publish.
    UnheardSwitch = "unheard-switch", [SwitchUnheard];
    /// The product's clients of a group. They ignore what sentinels publish, and keep using a server that answers
    /// `READONLY`.
    DeafClients = "deaf-clients", [SwitchUnheard, ReadOnlyStays];
    /// The product's clients of a cluster. They do not follow a node that names the owner of a slot, and do not look
    /// up the owner again.
    UnheardMoved = "unheard-moved", [MovedUnheard];
    /// The product's clients of a store that writes without the condition.
    BlindWrites = "blind-writes", [ConditionIgnored];
    /// The product's clients of a store whose versions are a count of its changes.
    VersionFromACounter = "version-from-a-counter", [VersionsAreCounted];
    /// The product's clients of a store whose clients are not told of changes.
    UntoldChanges = "untold-changes", [ChangesUntold];
    /// The product's clients, with a driver that reports a lost reply to a write as a failure.
    LostIsFailed = "lost-is-failed", [SilenceIsRefusal];
    /// The product's clients of a store whose time is the wall clock of the client that asks.
    ClientClockStore = "client-clock-store", [ClientsTimeRecords];
    /// The product's clients of a database whose replica takes over under the identity of its primary.
    SilentSuccessor = "silent-successor", [SuccessorIsSilent];
}

impl Variant {
    /// Returns whether the clients of the variant are those of the product. Its flaws, if any, then concern queues,
    /// readers, leaders, or how clients reach a group, a cluster or a store.
    #[must_use]
    pub fn has_product_clients(self) -> bool {
        let flaws = self.flaws();
        self == Variant::Product
            || (!flaws.is_empty() && flaws.iter().all(|flaw| flaw.is_of_modes()))
    }

    /// Returns the algorithm, if the variant is a registered one.
    #[must_use]
    pub const fn algorithm(self) -> Option<Algorithm> {
        match self {
            Variant::Algorithm(algorithm) => Some(algorithm),
            _ => None,
        }
    }

    /// Returns whether the variant has a flaw.
    pub fn has(self, flaw: Flaw) -> bool {
        self.flaws().contains(&flaw)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a text that names no variant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{word:?} is not a variant of the lock: use one of {}", algorithm::names().join(", "))]
pub struct UnknownVariant {
    word: String,
}

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        let mut all = Variant::ALL.iter();
        let found = all.find(|variant| variant.name() == text);
        let registered = || Algorithm::named(text).map(Variant::Algorithm);
        found
            .copied()
            .or_else(registered)
            .ok_or_else(|| UnknownVariant {
                word: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    #[test]
    fn every_variant_is_known_by_its_name_in_a_plan_and_on_the_command_line() {
        for variant in Variant::ALL.iter().copied() {
            let text = format!("variant = {:?}", variant.name());
            let plan: Plan = toml::from_str(&text).unwrap();
            assert_eq!(plan.variant, variant);
            assert_eq!(variant.name().parse(), Ok(variant));
        }
        assert!("redlock".parse::<Variant>().is_err());
    }
}
