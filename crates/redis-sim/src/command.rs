//! The commands, by family.

pub(crate) mod admin;
pub(crate) mod client;
pub(crate) mod cluster;
pub(crate) mod hashes;
pub(crate) mod keys;
pub(crate) mod lists;
pub(crate) mod pubsub;
pub(crate) mod scripting;
pub(crate) mod sentinel;
pub(crate) mod sets;
pub(crate) mod sorted_sets;
pub(crate) mod strings;
pub(crate) mod transactions;
pub(crate) mod wait;
