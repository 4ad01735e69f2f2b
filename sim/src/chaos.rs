//! The same plans on real servers: real `redis-server` processes, clients that are processes, proxies for the network, and the
//! simulator's own history and checkers as judges.
//!
//! The command has everything in its hands: it starts the processes, strikes them with the faults of the plan, and writes the
//! history of what the clients tell it. All clocks of a history are one: that of the machine.

pub(crate) mod cell;
mod clients;
mod clock;
mod conductor;
pub(crate) mod control;
mod desk;
mod guardian;
pub(crate) mod had;
mod links;
mod member;
mod message;
mod node;
mod plain;
mod preload;
mod proxy;
mod records;
mod subject;
mod verdict;
pub(crate) mod worker;
