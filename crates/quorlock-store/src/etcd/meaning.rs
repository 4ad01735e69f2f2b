//! What the answers of a server mean that are errors.

use quorlock_core::transport::Cause;

/// What an error means.
pub(super) struct Meaning {
    pub(super) cause: Cause,
    pub(super) advice: Option<&'static str>,
    /// Whether the call was not executed and never will be.
    pub(super) is_refused: bool,
    /// Whether another member, or another login, may do better.
    pub(super) is_of_session: bool,
}

pub(super) const UNREACHABLE: &str = "check that the members run, and that their addresses are right; a member that speaks TLS needs a client with options for it, which an address alone does not have";

pub(super) const CERTIFICATE: &str =
    "the client was not told to trust the certificate of the member, or it is for another host";

const NO_LEADER: &str =
    "the cluster has no leader: a majority of its members must run and reach each other";

const NO_AUTH: &str = "the server does not accept this user or password: see the address, and `etcdctl user list` of the server";

const TOO_LARGE: &str =
    "the record is larger than the server takes: raise --max-request-bytes of the server";

pub(super) const VERSION: &str =
    "the server is not etcd 3.4 or later, or is being upgraded from an older one";

/// What the errors of etcd mean, by how their texts begin.
///
/// A server checks the size, the token and whether it has a leader before it proposes a write, and the rights when it applies it, before
/// it executes it. A time-out, a change of the leader and the end of the server may come while a proposal is on its way, which is
/// then executed after all. And *database space exceeded* may also be the answer to the write that has filled the space: it was executed.
pub(super) const KNOWN: [(&str, Meaning); 17] = [
    (
        "etcdserver: permission denied",
        refused(
            Cause::NoPermission,
            "the user needs a role with the permission `readwrite` on all keys below the prefix (`etcdctl role grant-permission ROLE readwrite PREFIX --prefix`)",
        ),
    ),
    (
        "etcdserver: authentication failed",
        refused(Cause::NoAuth, NO_AUTH),
    ),
    (
        "etcdserver: user name is empty",
        refused(
            Cause::NoAuth,
            "the server asks for a user: write etcd://user:password@host",
        ),
    ),
    (
        "etcdserver: authentication is not enabled",
        refused(
            Cause::NoAuth,
            "the server knows no users: leave the user out of the address, or run `etcdctl auth enable`",
        ),
    ),
    (
        "etcdserver: invalid auth token",
        elsewhere(refused(Cause::NoAuth, NO_AUTH)),
    ),
    (
        "etcdserver: revision of auth store is old",
        elsewhere(refused(
            Cause::Busy,
            "the users of the server have just changed",
        )),
    ),
    (
        "etcdserver: no leader",
        elsewhere(refused(Cause::NoPrimary, NO_LEADER)),
    ),
    (
        "etcdserver: rpc not supported for learner",
        elsewhere(refused(
            Cause::ReadOnly,
            "the member is a learner: name the voting members",
        )),
    ),
    (
        "etcdserver: not capable",
        elsewhere(refused(Cause::Unsupported, VERSION)),
    ),
    (
        "etcdserver: request is too large",
        refused(Cause::Server, TOO_LARGE),
    ),
    (
        "grpc: received message larger than max",
        refused(Cause::Server, TOO_LARGE),
    ),
    (
        "etcdserver: too many requests",
        refused(Cause::Busy, "the server is behind with its requests"),
    ),
    (
        "etcdserver: mvcc: database space exceeded",
        open(
            Cause::OutOfMemory,
            "the database of the server has reached its quota: compact and defragment it (`etcdctl compact`, `etcdctl defrag`) or raise --quota-backend-bytes, then run `etcdctl alarm disarm`",
        ),
    ),
    (
        "etcdserver: corrupt cluster",
        open(
            Cause::Misconfigured,
            "the data of a member differs from that of the others: see `etcdctl alarm list`, and replace that member",
        ),
    ),
    (
        "etcdserver: request timed out",
        elsewhere(open(Cause::TimedOut, NO_LEADER)),
    ),
    (
        "etcdserver: leader changed",
        elsewhere(open(
            Cause::NoPrimary,
            "the cluster has just elected another leader",
        )),
    ),
    (
        "etcdserver: server stopped",
        elsewhere(open(Cause::Closed, "the member was stopped")),
    ),
];

pub(super) const fn refused(cause: Cause, advice: &'static str) -> Meaning {
    Meaning {
        cause,
        advice: Some(advice),
        is_refused: true,
        is_of_session: false,
    }
}

pub(super) const fn open(cause: Cause, advice: &'static str) -> Meaning {
    Meaning {
        is_refused: false,
        ..refused(cause, advice)
    }
}

pub(super) const fn elsewhere(meaning: Meaning) -> Meaning {
    Meaning {
        is_of_session: true,
        ..meaning
    }
}
