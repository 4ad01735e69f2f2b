//! Resources that a lock protects, with their own latencies, losses, pauses and crashes.
//!
//! A test creates its resources in its world. Each client uses a resource through its own handle, which belongs to the
//! client's process. What a process sent before it died still arrives. What a paused process was about to send leaves
//! after the pause. The faults of a resource are part of the plan ([`Outage`](quorlock_sim_plan::Outage)): they are drawn
//! from the seed, and shrunk with the plan.
//!
//! | resource | what it is |
//! |---|---|
//! | [`Service`] | request and reply, with your own handler; the other resources are built on it |
//! | [`KeyValueStore`] | keys and values, with or without fencing tokens |
//! | [`Table`] | rows and transactions; of two transactions that conflict, one is refused |
//! | [`Queue`] | at-least-once deliveries |
//!
//! A resource is one machine that handles one request after another. A request is answered, is refused, or gets no
//! answer. Without an answer, the request may have been executed, or may be executed later
//! ([`CallError::Unanswered`]).

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
