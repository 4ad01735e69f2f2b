//! Flaws of a lock, one at a time.

/// One flaw of a lock. A lock without flaws is correct.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// N/2 of N grants are enough. Two clients can have that many at the same time.
    HalfIsEnough,
    /// The holder never compares the time with its deadline.
    NoDeadline,
    /// At the end of a round, the client does not check that the lease is still valid.
    LateWinTaken,
    /// The lease of a grant counts from when the round was won, not from before its requests were sent.
    GrantCountsFromReply,
    /// The lease of a renewal counts from its answer, not from before it was sent.
    ExtensionCountsFromReply,
    /// The node deletes the claim at the request of any client.
    DeleteUnchecked,
    /// The client reads the owner of the claim and then deletes it, in two requests.
    GetBeforeDelete,
    /// The node increments and decrements the hold count, instead of setting what the request states.
    Increments,
    /// The node adds the lease of a renewal to the remaining TTL of the claim.
    RenewalAdds,
    /// The node refuses a claim to its own owner, as `SET NX` does.
    SetNx,
    /// All rounds of a client use the same owner number, so requests of one round affect the next.
    OneNumber,
    /// The claim is made without an end, and a second request sets its TTL.
    ExpireFollows,
    /// A renewal of no hold (with the count 0) sets the TTL of the key to the lease, whatever it was and whichever
    /// client owns the key, as `PEXPIRE` does.
    ExpireUnchecked,
    /// Members are acquired in turns with the arithmetic of Redisson's `RedissonRedLock`: a lease of twice the wait, a
    /// number of members that may fail, a return to the first member after one more, and an expiry at the end.
    TakesTurns,
    /// All clients use the same identity.
    SharedOwner,
    /// A confirmation is credited to the latest renewal, whichever request it answers.
    LatestPassCredited,
    /// A renewal creates a missing claim again, and so revives a hold that had expired.
    FreshGrantRenews,
    /// The token is the largest one that a node of the quorum returned, even if the nodes returned different ones.
    MaximumIsToken,
    /// Nodes count tokens from 1, not from a clock.
    CountersFromOne,
    /// A waiter treats a wake-up as a grant.
    WakeIsGrant,
    /// A waiter tries again only after a wake-up.
    NoLookWithoutMessage,
    /// A wake-up ends a random pause, so all clients that are pausing try at the same time.
    WakeEndsBackOff,
    /// All pauses between rounds have the same length.
    PausesAreEven,
    /// Deadlines are compared with the wall clock.
    WallClock,
    /// Clients with an odd number know only the first three nodes.
    MixedMembership,
    /// A request is sent to a member only after the previous member has answered.
    OneByOne,
    /// Members are acquired in the order in which the names were given, and kept while the client waits for the next
    /// one.
    WaitsInOrder,
    /// After each lost round, the lease is a thousand times as long.
    LeaseCompounds,
    /// Renewals continue after the release, until the process ends.
    WatchdogOutlivesRelease,
    /// A round that is dropped keeps the claims that it was granted, each with its own watchdog.
    CancelKeepsParts,
    /// The hold of a dropped guard continues: only an explicit release ends it.
    DropKeepsHold,
    /// A release is sent to one member after another, and stops at the first one without a claim. The watchdog keeps
    /// renewing the other claims.
    ReleaseStopsAtLoss,
    /// A member has the full time-out of the transport to answer, not a small part of the lease.
    MembersHaveTime,
    /// Renewals stop after the first one that fails.
    RenewalEndsAtError,
    /// The node serves and wakes the newest waiter.
    NewestIsNext,
    /// Places in a queue expire by the clocks of clients. Each client requests that the node remove the places that
    /// have expired by the client's clock.
    ClientsTimePlaces,
    /// A waiter that gives up or dies stays in the queue for minutes.
    PlaceOutlivesWaiter,
    /// The renewal of one reader renews all readers.
    ReadersRenewAll,
    /// The claims of all readers end at the same time, with the lease of the reader that asked last.
    OneLeaseForReaders,
    /// Readers do not exclude a writer.
    WriterJoinsReaders,
    /// A reader that wants to write keeps its read lock while it waits until no client reads.
    UpgradeWaits,
    /// A leader works until it is notified of its loss, and does not check whether it leads.
    LeaderWaitsForWord,
    /// The term of a leader is the number of elections that its process has won.
    TermCountsElections,
    /// The term of a leader is the reading of its process's wall clock.
    TermIsClock,
    /// A claim counts before any replica has it.
    ReplicasNotAwaited,
    /// The client ignores what sentinels publish.
    SwitchUnheard,
    /// The client treats a node's answer that another node owns the slot like any other error.
    MovedUnheard,
    /// The client keeps a connection on which the server answered `READONLY`.
    ReadOnlyStays,
    /// A store executes a write whatever version the record has.
    ConditionIgnored,
    /// The version of a record is the number of changes of its store, which goes back with an older state.
    VersionsAreCounted,
    /// A store does not tell the clients that watch a record of its changes.
    ChangesUntold,
    /// The driver of a store reports a write that got no reply as one that was not executed.
    SilenceIsRefusal,
    /// The time of a store is the wall clock of the client that asks.
    ClientsTimeRecords,
    /// A replica that takes over says that it is the process that it replaces.
    SuccessorIsSilent,
}

impl Flaw {
    /// Returns whether the flaw concerns queues, readers, leaders, or how clients reach the nodes. In all other
    /// respects, the clients are then the product's.
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

    /// Returns whether the flaw concerns how clients reach the nodes of a cluster.
    pub(crate) const fn is_of_clusters(self) -> bool {
        matches!(self, Flaw::MovedUnheard)
    }

    /// Returns whether the flaw concerns how clients reach a server.
    const fn is_of_ways(self) -> bool {
        self.is_of_groups() || self.is_of_clusters() || self.is_of_stores()
    }

    /// Returns whether the flaw concerns a store, or how clients reach it.
    pub(crate) const fn is_of_stores(self) -> bool {
        matches!(
            self,
            Flaw::ConditionIgnored
                | Flaw::VersionsAreCounted
                | Flaw::ChangesUntold
                | Flaw::SilenceIsRefusal
                | Flaw::ClientsTimeRecords
                | Flaw::SuccessorIsSilent
        )
    }

    /// Returns whether the flaw concerns how clients reach the primary of a group.
    pub(crate) const fn is_of_groups(self) -> bool {
        matches!(
            self,
            Flaw::ReplicasNotAwaited | Flaw::SwitchUnheard | Flaw::ReadOnlyStays
        )
    }

    /// Returns whether the nodes have the flaw, not the clients.
    pub(crate) const fn is_of_nodes(self) -> bool {
        let of_plain = matches!(
            self,
            Flaw::SetNx
                | Flaw::Increments
                | Flaw::RenewalAdds
                | Flaw::DeleteUnchecked
                | Flaw::ExpireUnchecked
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
