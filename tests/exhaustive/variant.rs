//! The variants of Redlock that are checked, and the expected outcome of each.

/// A lease, in ticks.
pub(crate) const LEASE: u8 = 3;

/// The possible faults, and the checks that are left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Whether a round that took longer than its lease is lost.
    pub(crate) round_is_checked: bool,
    /// Whether a holder checks its deadline when it uses the lock.
    pub(crate) deadline_is_checked: bool,
    /// Whether the clock of a client may stand still, for any number of ticks.
    pub(crate) a_clock_stops: bool,
    /// Whether a request may be lost.
    pub(crate) messages_are_lost: bool,
    /// How often the clock of a node may jump by [`JUMP`].
    pub(crate) jumps: u8,
    /// For how many ticks longer than its lease a node keeps a claim.
    pub(crate) margin: u8,
    /// How often a node may end.
    pub(crate) crashes: u8,
    pub(crate) restart: Restart,
    pub(crate) expected: Expected,
}

/// What a node has after a restart, and when the restart happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Restart {
    /// No data, at any time.
    Empty,
    /// No data, at least a lease later.
    EmptyAfterLease,
    /// All data, at any time.
    Complete,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    Holds,
    Breaks,
}

/// By how many ticks the clock of a node jumps. After a jump, every earlier claim has expired.
pub(crate) const JUMP: u8 = LEASE + 1;

/// The protocol as it is, without faults. Steps take time.
const RIGHT: Variant = Variant {
    id: "V-C",
    title: "clocks are right, the holder looks at its deadline",
    round_is_checked: true,
    deadline_is_checked: true,
    a_clock_stops: false,
    messages_are_lost: false,
    jumps: 0,
    margin: 0,
    crashes: 0,
    restart: Restart::Complete,
    expected: Expected::Holds,
};

/// The same, with the loss of messages.
const LOSSY: Variant = Variant {
    id: "V-D",
    title: "V-C, and any request may be lost",
    messages_are_lost: true,
    ..RIGHT
};

pub(crate) const ALL: [Variant; 14] = [
    Variant {
        id: "V-A",
        title: "as published: the clock of a client may lag, and the holder ignores its deadline",
        deadline_is_checked: false,
        a_clock_stops: true,
        expected: Expected::Breaks,
        ..RIGHT
    },
    Variant {
        id: "V-B",
        title: "clocks are right, the holder ignores its deadline",
        deadline_is_checked: false,
        expected: Expected::Breaks,
        ..RIGHT
    },
    RIGHT,
    LOSSY,
    Variant {
        id: "V-E",
        title: "V-C, and the round is not checked at its end",
        round_is_checked: false,
        ..RIGHT
    },
    Variant {
        id: "V-F",
        title: "the holder looks at its deadline, on a clock that may lag",
        a_clock_stops: true,
        expected: Expected::Breaks,
        ..RIGHT
    },
    Variant {
        id: "V-G",
        title: "V-D, and the clock of one node jumps",
        jumps: 1,
        expected: Expected::Breaks,
        ..LOSSY
    },
    Variant {
        id: "V-G+",
        title: "V-G, and nodes keep claims by a margin",
        jumps: 1,
        margin: JUMP,
        ..LOSSY
    },
    Variant {
        id: "V-H",
        title: "V-C, and the clock of one node jumps",
        jumps: 1,
        expected: Expected::Breaks,
        ..RIGHT
    },
    Variant {
        id: "V-H+",
        title: "V-H, and nodes keep claims by a margin",
        jumps: 1,
        margin: JUMP,
        ..RIGHT
    },
    Variant {
        id: "V-I",
        title: "V-D, and one node restarts without its data",
        crashes: 1,
        restart: Restart::Empty,
        expected: Expected::Breaks,
        ..LOSSY
    },
    Variant {
        id: "V-J",
        title: "V-D, and one node restarts without its data after a lease",
        crashes: 1,
        restart: Restart::EmptyAfterLease,
        ..LOSSY
    },
    Variant {
        id: "V-K",
        title: "V-D, and one node restarts with its data",
        crashes: 1,
        ..LOSSY
    },
    Variant {
        id: "V-L",
        title: "V-D, and two nodes restart without their data after a lease",
        crashes: 2,
        restart: Restart::EmptyAfterLease,
        ..LOSSY
    },
];
