//! Redlock as the Redis documentation describes it, and what is wrong with it on purpose.
//!
//! One small lock client of the simulator's own speaks to the same nodes as the product. It is right by itself
//! ([`Variant::Published`](crate::plan::variant::Variant::Published)); each [`Flaw`](crate::plan::variant::Flaw) makes
//! it wrong in one way. None of this is in any crate that users depend on.

mod asking;
mod client;
mod entry;
mod guard;
mod hold;
mod layout;
mod lock;
mod member;
mod release;
mod round;
mod stray;
mod waiting;
mod watchdog;

pub(crate) use client::ModelClient;
pub use guard::ModelGuard;
pub use lock::ModelLock;
