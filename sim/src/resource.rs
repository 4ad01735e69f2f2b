//! Resources beside the lock: what it protects, with latencies, losses, pauses and crashes of its own.
//!
//! A test makes them in its world, and each client asks through a handle of its own, which belongs to its process: what a
//! process has sent before it dies arrives all the same, what a paused one was about to send leaves after its pause. What goes
//! wrong with a resource is data of the plan ([`Outage`](crate::plan::Outage)), drawn from the seed and shrunk with it.
//!
//! | resource | what it is |
//! |---|---|
//! | [`Service`] | request and reply, with a handler of your own; the others are made of it |
//! | [`KeyValueStore`] | keys and values, with fencing tokens and without |
//! | [`Table`] | rows, and transactions of which one of two that conflict is refused |
//! | [`Queue`] | deliveries that come at least once |
//!
//! A resource is one machine that does one thing after the other. A question can be answered, refused, or stay without an
//! answer: then it may have been done, or may yet be ([`CallError::Unanswered`]).

mod calling;
mod key_value;
mod queue;
mod service;
mod table;

pub use calling::CallError;
pub use key_value::{KeyValueClient, KeyValueStore, StoreError};
pub use queue::{Delivery, Queue, QueueClient};
pub use service::{Service, ServiceClient};
pub use table::{Table, TableClient, Transaction, TransactionError};
