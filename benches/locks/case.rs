//! The cases: what is measured, by which contestants, and how much of it.

use std::time::Duration;

use crate::contestant::Contestant::{
    self, Bare, Control, Fair, NodeRedlock, Permits, Ping, Plain, Quorlock, Reader, ReaderAgain,
    ReaderOfMany, Redisson, Redsync, Rlock, Rows, Rslock, TenLocks,
};
use crate::driver::program::Work;

/// A kind of work in a setting.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) store: Stored,
    pub(crate) nodes: usize,
    /// Delay of a message from a client to a server, or back.
    pub(crate) way: Duration,
    /// Number of processes of each contestant.
    pub(crate) processes: usize,
    /// Number of callers in each process.
    pub(crate) callers: usize,
    /// The length of a hold.
    pub(crate) hold: Duration,
    pub(crate) work: Work,
    pub(crate) contestants: &'static [Contestant],
}

/// Where locks are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// On Redis servers.
    Redis,
    /// In a table of PostgreSQL.
    Table,
}

/// How much of a case is done.
#[derive(Clone, Copy)]
pub(crate) struct Amount {
    /// The number of turns of each contestant.
    pub(crate) turns: u64,
    /// The length of a turn.
    pub(crate) turn: Duration,
    /// The number of locks that are kept.
    pub(crate) locks: usize,
}

/// All libraries work on one server. A few do not on five, or not in ten processes: ten virtual machines beside five
/// servers would measure the machine. The bare scripts have no client, so that no call waits and nothing is renewed.
const FREE_1: &[Contestant] = &[
    Quorlock,
    Control,
    Plain,
    Bare,
    Rslock,
    Rlock,
    Redsync,
    Redisson,
    NodeRedlock,
];
const FREE_5: &[Contestant] = &[
    Quorlock,
    Control,
    Plain,
    Bare,
    Rslock,
    Redsync,
    Redisson,
    NodeRedlock,
];
const DISTANT: &[Contestant] = &[
    Quorlock,
    Control,
    Plain,
    Ping,
    Rslock,
    Redsync,
    Redisson,
    NodeRedlock,
];
const WAITING_1: &[Contestant] = &[
    Quorlock,
    Control,
    Rslock,
    Rlock,
    Redsync,
    Redisson,
    NodeRedlock,
];
const WAITING_5: &[Contestant] = &[Quorlock, Control, Rslock, Redsync, Redisson, NodeRedlock];
const TEN_1: &[Contestant] = &[Quorlock, Control, Rslock, Rlock, Redsync];
const TEN_5: &[Contestant] = &[Quorlock, Control, Rslock, Redsync];
const IN_TURN: &[Contestant] = &[Quorlock, Control, Plain, Bare, Rslock];
const READERS: &[Contestant] = &[Reader, ReaderAgain, ReaderOfMany];

const fn case(
    name: &'static str,
    about: &'static str,
    (nodes, work): (usize, Work),
    contestants: &'static [Contestant],
) -> Case {
    Case {
        name,
        about,
        store: Stored::Redis,
        nodes,
        way: Duration::ZERO,
        processes: 1,
        callers: 1,
        hold: Duration::from_millis(5),
        work,
        contestants,
    }
}

const fn callers(callers: usize, case: Case) -> Case {
    Case { callers, ..case }
}

const fn processes(processes: usize, case: Case) -> Case {
    Case { processes, ..case }
}

const fn distant(way: Duration, case: Case) -> Case {
    Case { way, ..case }
}

const fn in_table(case: Case) -> Case {
    let store = Stored::Table;
    Case { store, ..case }
}

/// Holds of a millisecond, for many clients.
const fn short(case: Case) -> Case {
    let hold = Duration::from_millis(1);
    Case { hold, ..case }
}

use Work::{Acquire, HandOver, Holds, Keep, Pairs};

#[rustfmt::skip]
pub(crate) const ALL: &[Case] = &[
    case("acquire-1", "one caller, a free name, one server", (1, Acquire), FREE_1),
    case("acquire-5", "one caller, a free name, five servers", (5, Acquire), FREE_5),
    distant(Duration::from_micros(250),
        case("acquire-5-0.5ms", "the same with a round trip of half a millisecond", (5, Acquire), &[Quorlock, Control, Plain, Ping])),
    distant(Duration::from_micros(500),
        case("acquire-5-1ms", "the same with a round trip of a millisecond", (5, Acquire), DISTANT)),
    callers(64, case("callers-1", "64 callers on names of their own, one server", (1, Pairs), FREE_1)),
    callers(64, case("callers-5", "64 callers on names of their own, five servers", (5, Pairs), FREE_5)),
    callers(2, case("handover-1", "two clients in turn, one server", (1, HandOver), IN_TURN)),
    callers(2, case("handover-5", "two clients in turn, five servers", (5, HandOver), IN_TURN)),
    processes(2, case("two-1", "two processes that ask again at once, one server", (1, Holds), WAITING_1)),
    processes(2, case("two-5", "two processes that ask again at once, five servers", (5, Holds), WAITING_5)),
    processes(10, case("ten-1", "ten processes that ask again at once, one server", (1, Holds), TEN_1)),
    processes(10, case("ten-5", "ten processes that ask again at once, five servers", (5, Holds), TEN_5)),
    short(processes(50, case("herd-1", "50 processes that ask again at once, one server", (1, Holds), &[Quorlock]))),
    short(processes(50, case("herd-5", "50 processes that ask again at once, five servers", (5, Holds), &[Quorlock]))),
    callers(50, case("waiters-1", "50 waiters of one process, one server", (1, Holds), WAITING_1)),
    callers(50, case("waiters-5", "50 waiters of one process, five servers", (5, Holds), WAITING_5)),
    callers(50, case("permits-1", "50 callers for ten permits, or for ten locks, one server", (1, Holds), &[Permits, TenLocks])),
    callers(50, case("permits-5", "50 callers for ten permits, or for ten locks, five servers", (5, Holds), &[Permits, TenLocks])),
    short(processes(2, case("fair-2", "two processes want a fair lock", (1, Holds), &[Fair]))),
    short(processes(10, case("fair-10", "ten processes want a fair lock", (1, Holds), &[Fair]))),
    short(processes(50, case("fair-50", "50 processes want a fair lock", (1, Holds), &[Fair]))),
    case("readers-1", "one more reader of a name, beside 1 and 1,000", (1, Acquire), READERS),
    in_table(callers(64, case("table-64", "64 callers on names of their own, a table of PostgreSQL", (1, Pairs), &[Quorlock, Control, Rows]))),
    in_table(callers(50, case("table-50", "50 waiters of one process, a table of PostgreSQL", (1, Holds), &[Quorlock]))),
    case("keep-1", "locks that are kept, one server", (1, Keep), WAITING_1),
];

impl Case {
    pub(crate) fn amount(&self, is_quick: bool) -> Amount {
        let (turns, millis) = match (self.work, is_quick) {
            (Pairs, true) => (8, 150),
            (Pairs, false) => (30, 400),
            (Acquire, true) => (10, 100),
            (Acquire, false) => (60, 200),
            (Holds, true) => (2, 2_000),
            (Holds, false) => (4, 8_000),
            (HandOver, true) => (4, 500),
            (HandOver, false) => (15, 1_000),
            (Keep, true) => (1, 20_000),
            (Keep, false) => (1, 60_000),
        };
        Amount {
            turns,
            turn: Duration::from_millis(millis),
            locks: if is_quick { 2_000 } else { 10_000 },
        }
    }
}
