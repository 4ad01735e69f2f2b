//! The ids of clients, processes, nodes and faults, each with its own type.
//!
//! The files of plans and histories hold bare numbers. A run turns them into ids when it reads the plan, and back into
//! numbers when it writes the history.

use std::fmt;

use crate::history::Process;

/// An index into a [`ById`](super::by_id::ById).
pub trait Id: Copy {
    /// Creates the id of an index.
    fn new(number: u16) -> Self;
    /// Returns the index.
    fn get(self) -> u16;

    /// Returns the index for a list.
    fn index(self) -> usize {
        usize::from(self.get())
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(u16);

        impl Id for $name {
            #[inline]
            fn new(number: u16) -> Self {
                $name(number)
            }

            #[inline]
            fn get(self) -> u16 {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// A client, across all of its processes.
    ClientId
}
id! {
    /// A node of the run: the primaries of the plan, then their replicas, then the sentinels of groups.
    NodeId
}
id! {
    /// A node of the plan, as clients know it. After a failover, another [`NodeId`] serves it.
    Seat
}
id! {
    /// A fault, by its index in the plan.
    FaultId
}

impl Seat {
    /// Returns the node that serves this node of the plan when the run begins.
    #[inline]
    pub fn first_node(self) -> NodeId {
        NodeId(self.0)
    }
}

/// A process of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessId {
    /// The number of the run in its thread, so that what is left of an earlier run reaches nothing.
    pub run: u32,
    /// The client.
    pub client: ClientId,
    /// How many times the client had been restarted before this process.
    pub restarts: u16,
}

impl ProcessId {
    /// Returns the process as the history names it.
    pub fn process(self) -> Process {
        Process {
            client: self.client.get(),
            restarts: self.restarts,
        }
    }

    /// Returns the number of the random stream that only this process uses.
    pub fn stream(self) -> u64 {
        u64::from(self.client.get()) << 16 | u64::from(self.restarts)
    }
}

/// Returns the first `count` ids.
pub fn first<I: Id>(count: u16) -> impl Iterator<Item = I> + Clone {
    (0..count).map(I::new)
}
