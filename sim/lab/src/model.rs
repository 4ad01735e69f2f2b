//! Redlock as the Redis documentation describes it, and its deliberate flaws.
//!
//! A small lock client in the simulator talks to the same nodes as the product. Without flaws it is correct
//! ([`Variant::Published`](quorlock_sim_plan::variant::Variant::Published)); each [`Flaw`](quorlock_sim_plan::variant::Flaw) makes
//! it wrong in one way. No crate that users depend on contains any of this code.

mod client;
mod entry;
mod guard;
mod hold;
mod layout;
mod lock;
mod member;
mod orphans;
mod release;
mod requests;
mod round;
mod waiting;
mod watchdog;

pub use client::LockClient;
pub use guard::ModelGuard;
pub use lock::ModelLock;
pub(crate) use member::Member;
