//! Locks that are wrong on purpose, or as others publish them: what the simulator must be able to find.
//!
//! Each has a name, and [`Flaw`]s: what is wrong with it, one thing at a time. The clients and nodes that have them are
//! in [`model`](crate::model).

mod flaw;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use flaw::Flaw;

/// The table of variants: each with its name in a plan and what is wrong with it.
macro_rules! variants {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, [$($flaw:ident),*];)+) => {
        /// Which lock is run: the product's, or a lock of the simulator's own that may be wrong.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        pub enum Variant {
            /// The lock of the crate `quorlock`.
            #[default]
            #[serde(rename = "product")]
            Product,
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Variant {
            /// Every one.
            pub const ALL: &[Variant] = &[Variant::Product, $(Variant::$variant),+];

            /// Its name in a plan.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Variant::Product => "product",
                    $(Variant::$variant => $name,)+
                }
            }

            /// What is wrong with it.
            #[must_use]
            pub const fn flaws(self) -> &'static [Flaw] {
                match self {
                    Variant::Product => &[],
                    $(Variant::$variant => &[$(Flaw::$flaw),*],)+
                }
            }
        }
    };
}

variants! {
    /// Redlock as the Redis documentation describes it, by a holder that keeps to its validity; on one node, the lock
    /// with `SET NX PX` and compare-and-delete. Nothing is wrong with it: the control.
    Published = "published", [];
    /// N/2 grants are taken for a majority.
    HalfQuorum = "half-quorum", [HalfIsEnough];
    /// The holder never looks at its deadline.
    ValidityIgnored = "validity-ignored", [NoDeadline];
    /// A round that took longer than its lease is taken for won, by a holder that looks at the deadline when it uses
    /// the lock: no property is broken.
    LateWin = "late-win", [LateWinTaken];
    /// The lease is counted from the replies that granted it.
    LeaseFromReply = "lease-from-reply", [GrantCountsFromReply];
    /// An extension is counted from the reply that confirmed it.
    ExtensionFromReply = "extension-from-reply", [ExtensionCountsFromReply];
    /// A lost round releases only what was granted.
    GrantedReleasedOnly = "granted-released-only", [SilenceIsRefusal];
    /// The release deletes the key, whosever it is.
    PlainDelete = "plain-delete", [DeleteUnchecked];
    /// Nodes add to the count and take from it.
    Increments = "increments", [Increments];
    /// A renewal adds the lease to what is left of the claim, where it should set it.
    AddingRenewals = "adding-renewals", [RenewalAdds];
    /// A client has one owner number for all its rounds.
    ReusedNumber = "reused-number", [OneNumber];
    /// A confirmation counts for the latest renewal, whichever it answers.
    LastPassCredited = "last-pass-credited", [LatestPassCredited];
    /// A renewal makes the claim anew where it is gone (extend or set), and the hold goes on.
    ExtendOrSet = "extend-or-set", [FreshGrantRenews];
    /// The token is the largest of the counters of the nodes that granted.
    MaximumToken = "maximum-token", [MaximumIsToken];
    /// Published Redlock with the largest of plain counters, from 1 up, as token.
    CounterTokens = "counter-tokens", [MaximumIsToken, CountersFromOne];
    /// A waiter that is told that the lock is free takes itself for the holder.
    WakeIsGrant = "wake-is-grant", [WakeIsGrant];
    /// A waiter waits for a message and never looks by itself: neither after it has subscribed nor later.
    MessagesOnly = "messages-only", [NoLookWithoutMessage];
    /// A wake-up ends a random pause early.
    CutBackOff = "cut-back-off", [WakeEndsBackOff];
    /// Clients pause equally long between rounds, so that those who collided once collide again.
    EvenBackOff = "even-back-off", [PausesAreEven];
    /// `SET NX PX`, released by a plain `DEL`.
    SetNxDel = "set-nx-del", [SetNx, DeleteUnchecked];
    /// `SET NX PX`, released by `GET`, a comparison in the client, and `DEL`.
    GetThenDel = "get-then-del", [SetNx, GetBeforeDelete, DeleteUnchecked];
    /// `SET NX PX`, released by compare-and-delete: an owner that asks again is refused.
    SetNx = "set-nx", [SetNx];
    /// Validity is measured with the client's wall clock.
    WallClock = "wall-clock", [WallClock];
    /// All clients claim under one identity.
    SharedOwner = "shared-owner", [SetNx, SharedOwner];
    /// Every other client knows only the first three nodes.
    MixedMembership = "mixed-membership", [MixedMembership];
    /// Members are asked one after the other, and the lease counts from the last grant: nobody looks whether the first
    /// is still held by then.
    UncheckedMulti = "unchecked-multi", [OneByOne, GrantCountsFromReply];
    /// Names are taken one by one in the order given, and kept while the next is waited for: two clients may wait for
    /// each other.
    HoldAndWait = "hold-and-wait", [WaitsInOrder];
    /// Every lost round multiplies the lease of the next by a thousand.
    CompoundingLease = "compounding-lease", [LeaseCompounds];
    /// The watchdog goes on when the lock was released.
    ImmortalWatchdog = "immortal-watchdog", [WatchdogOutlivesRelease];
    /// An acquisition that is cancelled midway leaves the parts that it was granted, each renewed by a watchdog.
    CancelKeeps = "cancel-keeps", [CancelKeepsParts];
    /// A guard that is dropped releases nothing, and its watchdog goes on.
    DropKeeps = "drop-keeps", [DropKeepsHold];
    /// A release ends at the first member that has lost the claim; the others keep it, each renewed by a watchdog.
    ReleaseStops = "release-stops", [ReleaseStopsAtLoss];
    /// Members are asked one after the other, each has time, and nobody compares the time with the lease: neither at
    /// the end of the round nor later. There is no round trip to agree on a token either.
    UncheckedRound = "unchecked-round", [OneByOne, MembersHaveTime, LateWinTaken, NoDeadline, MaximumIsToken];
    /// The first renewal that fails ends the watchdog, and the holder never looks at its deadline.
    SilentLoss = "silent-loss", [RenewalEndsAtError, NoDeadline];
    /// The product's clients, and nodes that serve and wake whoever of the queue of a fair lock came last.
    NewestFirst = "newest-first", [NewestIsNext];
    /// The product's clients, and nodes on which places in a queue end by the clocks of clients, as in Redisson.
    ClientClockQueue = "client-clock-queue", [ClientsTimePlaces];
    /// The product's clients, and nodes on which a waiter that gives up or dies keeps its place for minutes.
    KeptPlace = "kept-place", [PlaceOutlivesWaiter];
    /// The product's clients, and nodes on which the renewal of one reader renews all, also those that have died.
    ZombieReaders = "zombie-readers", [ReadersRenewAll];
    /// The product's clients, and nodes on which all readers share one lease: that of the last one that asked.
    OneReadLease = "one-read-lease", [OneLeaseForReaders];
    /// The product's clients, and nodes on which a writer is not kept out by readers.
    WriterBesideReaders = "writer-beside-readers", [WriterJoinsReaders];
    /// The product's clients, used by somebody who reads, wants to write, and waits until nobody reads.
    WaitingUpgrade = "waiting-upgrade", [UpgradeWaits];
    /// The product's clients, used by a leader that works until an event tells it of its loss, and never asks.
    ToldLeader = "told-leader", [LeaderWaitsForWord];
    /// The product's clients, used by leaders whose term is the number of elections that their process has won.
    CountedTerms = "counted-terms", [TermCountsElections];
    /// The product's clients, used by leaders whose term is the time of their election by their wall clock.
    ClockTerms = "clock-terms", [TermIsClock];
    /// The product's clients of a group, whose claims count before any replica has them, whatever the plan says.
    Unawaited = "unawaited", [ReplicasNotAwaited];
    /// The product's clients of a group, which hear nothing of what sentinels publish.
    UnheardSwitch = "unheard-switch", [SwitchUnheard];
    /// The same, and they do not leave a server that says `READONLY`.
    DeafClients = "deaf-clients", [SwitchUnheard, ReadOnlyStays];
    /// The product's clients of a cluster, which do not follow a node that names the owner of a slot, nor look again for that.
    UnheardMoved = "unheard-moved", [MovedUnheard];
}

impl Variant {
    /// Whether its clients are those of the product: what is wrong, if anything, is about queues, readers or leaders.
    #[must_use]
    pub fn has_product_clients(self) -> bool {
        let flaws = self.flaws();
        self == Variant::Product
            || (!flaws.is_empty() && flaws.iter().all(|flaw| flaw.is_of_modes()))
    }

    /// Whether it has a flaw.
    pub(crate) fn has(self, flaw: Flaw) -> bool {
        self.flaws().contains(&flaw)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no variant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{word:?} is no variant of the lock: say one of {}", names())]
pub struct UnknownVariant {
    word: String,
}

fn names() -> String {
    let names: Vec<&str> = Variant::ALL.iter().map(|variant| variant.name()).collect();
    names.join(", ")
}

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        let mut all = Variant::ALL.iter();
        let found = all.find(|variant| variant.name() == text);
        found.copied().ok_or_else(|| UnknownVariant {
            word: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

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
