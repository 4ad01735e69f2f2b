//! Which client, process, node or fault: numbers that are not to be mixed up.
//!
//! The plan and the history have bare numbers in their files. They become ids where a run takes them over from the plan,
//! and numbers again where it writes them into the history.

use std::fmt;

use crate::history::Process;

/// What a place in a [`ById`](super::by_id::ById) is called by.
pub(crate) trait Id: Copy {
    fn new(number: u16) -> Self;
    fn get(self) -> u16;

    fn index(self) -> usize {
        usize::from(self.get())
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(u16);

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
    /// A client, whichever process it is now.
    ClientId
}
id! {
    /// A node of the run: the primaries of the plan, then their replicas, then the sentinels of groups.
    NodeId
}
id! {
    /// A node of the plan, as clients know it. After a failover another [`NodeId`] answers for it.
    Seat
}
id! {
    /// A fault, by its place in the plan.
    FaultId
}

impl Seat {
    /// The node that answers for it at the beginning.
    #[inline]
    pub(crate) fn first_node(self) -> NodeId {
        NodeId(self.0)
    }
}

/// A process of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProcessId {
    pub(crate) run: u32,
    pub(crate) client: ClientId,
    pub(crate) restarts: u16,
}

impl ProcessId {
    pub(crate) fn process(self) -> Process {
        Process {
            client: self.client.get(),
            restarts: self.restarts,
        }
    }

    /// For what is drawn for this process alone.
    pub(crate) fn stream(self) -> u64 {
        u64::from(self.client.get()) << 16 | u64::from(self.restarts)
    }
}

/// The first `count` ids.
pub(crate) fn first<I: Id>(count: u16) -> impl Iterator<Item = I> + Clone {
    (0..count).map(I::new)
}
