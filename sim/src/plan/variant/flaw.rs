//! What can be wrong with a lock, one thing at a time.

/// One way to be wrong. Without any, the lock is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// N/2 of N are enough, which two clients can have at a time.
    HalfIsEnough,
    /// The holder never compares the time with its deadline.
    NoDeadline,
    /// Nobody looks at the end of a round whether the lease has run out by then.
    LateWinTaken,
    /// A grant carries from the moment at which the round was won, not from before its requests were sent.
    GrantCountsFromReply,
    /// A renewal carries from its answer, not from before it was sent.
    ExtensionCountsFromReply,
    /// Only members that are known to have granted are released: a request without an answer is taken for refused.
    SilenceIsRefusal,
    /// The node deletes the claim at anybody's request.
    DeleteUnchecked,
    /// The client asks whose the claim is, and then has it deleted, which are two requests.
    GetBeforeDelete,
    /// The node adds one to the count of a claim and takes one away, where it should set what the request states.
    Increments,
    /// The node adds the lease of a renewal to what is left of the claim.
    RenewalAdds,
    /// The node refuses a claim to its own owner: `SET NX` does.
    SetNx,
    /// All rounds of a client have one owner number, so what is left of one hits the next.
    OneNumber,
    /// All clients have one identity.
    SharedOwner,
    /// Whatever request a confirmation answers, it is credited to the latest renewal.
    LatestPassCredited,
    /// A renewal makes a claim anew where there is none, and revives a hold that had run out.
    FreshGrantRenews,
    /// The token is the largest that a node of the quorum handed out, also where they differ.
    MaximumIsToken,
    /// Nodes count tokens from 1, not from a clock.
    CountersFromOne,
    /// A message that the lock is free is taken for the lock.
    WakeIsGrant,
    /// Nothing but a message makes a waiter look again.
    NoLookWithoutMessage,
    /// A message ends a random pause, so that all who pause try at the same time.
    WakeEndsBackOff,
    /// Pauses between rounds are all of one length.
    PausesAreEven,
    /// Deadlines are compared with the wall clock.
    WallClock,
    /// Clients with an odd number know only the first three nodes.
    MixedMembership,
    /// The next member is asked when the one before it has answered.
    OneByOne,
    /// Members are taken in the order in which names were given, and kept while the next is waited for.
    WaitsInOrder,
    /// After a lost round the lease is a thousand times as long.
    LeaseCompounds,
    /// Renewals go on after the release, as long as the process lives.
    WatchdogOutlivesRelease,
    /// A round that is dropped midway leaves what it was granted, each part with a watchdog of its own.
    CancelKeepsParts,
    /// A guard that is dropped counts on: only a release on purpose ends its hold.
    DropKeepsHold,
    /// A release tells member after member and ends at the first that knows of no claim: the rest stays renewed.
    ReleaseStopsAtLoss,
    /// A member is given as long to answer as the transport tries, not a small part of the lease.
    MembersHaveTime,
    /// The first renewal that fails is the last.
    RenewalEndsAtError,
    /// The node serves and wakes whoever came last.
    NewestIsNext,
    /// Places in a queue end by the clocks of clients: each asks the node to drop those whose time is up by its own.
    ClientsTimePlaces,
    /// A waiter that gives up stays in the queue, and one that died does so for minutes.
    PlaceOutlivesWaiter,
    /// Whoever renews a reader renews all of them.
    ReadersRenewAll,
    /// The claims of all readers end together, when the lease of the last one that asked does.
    OneLeaseForReaders,
    /// A writer is not kept out by readers.
    WriterJoinsReaders,
    /// Who reads and wants to write waits until nobody reads.
    UpgradeWaits,
    /// A leader works until it is told of its loss, and does not ask whether it leads.
    LeaderWaitsForWord,
    /// The term of a leader is the number of elections that its process has won.
    TermCountsElections,
    /// The term of a leader is the wall clock of its process.
    TermIsClock,
    /// A claim counts before any replica has it.
    ReplicasNotAwaited,
    /// What sentinels publish is not heard.
    SwitchUnheard,
    /// A node's word that another one has the slot is taken for an error like others.
    MovedUnheard,
    /// A connection on which the server said `READONLY` is used on.
    ReadOnlyStays,
}

impl Flaw {
    /// Whether it is about queues, readers, leaders or the way to a group: then what clients do otherwise is what the product
    /// does.
    pub(crate) const fn is_of_modes(self) -> bool {
        matches!(
            self,
            Flaw::NewestIsNext
                | Flaw::ClientsTimePlaces
                | Flaw::PlaceOutlivesWaiter
                | Flaw::ReadersRenewAll
                | Flaw::OneLeaseForReaders
                | Flaw::WriterJoinsReaders
                | Flaw::UpgradeWaits
                | Flaw::LeaderWaitsForWord
                | Flaw::TermCountsElections
                | Flaw::TermIsClock
        ) || self.is_of_ways()
    }

    /// Whether it is about the way of clients to the nodes of a cluster.
    pub(crate) const fn is_of_clusters(self) -> bool {
        matches!(self, Flaw::MovedUnheard)
    }

    /// Whether it is about the way of clients to a server.
    const fn is_of_ways(self) -> bool {
        self.is_of_groups() || self.is_of_clusters()
    }

    /// Whether it is about the way of clients to the primary of a group.
    pub(crate) const fn is_of_groups(self) -> bool {
        matches!(
            self,
            Flaw::ReplicasNotAwaited | Flaw::SwitchUnheard | Flaw::ReadOnlyStays
        )
    }

    /// Whether it is the nodes that are wrong.
    pub(crate) const fn is_of_nodes(self) -> bool {
        let of_plain = matches!(
            self,
            Flaw::SetNx | Flaw::Increments | Flaw::RenewalAdds | Flaw::DeleteUnchecked
        );
        let of_users = matches!(
            self,
            Flaw::UpgradeWaits
                | Flaw::LeaderWaitsForWord
                | Flaw::TermCountsElections
                | Flaw::TermIsClock
        ) || self.is_of_ways();
        of_plain || (self.is_of_modes() && !of_users)
    }
}
