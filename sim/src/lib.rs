//! The production locks of Quorlock against failing nodes, networks, clocks and processes: deterministically, and fast.
//!
//! A seed stands for a plan: an explicit list of what goes wrong. The plan is run in one thread, in virtual time, with
//! the unchanged code of the crate `quorlock`; checkers look at the history of what happened.
//!
//! | to read | see |
//! |---|---|
//! | what a run depends on | [`plan`] |
//! | what goes wrong | [`fault`] |
//! | what happened | [`history`] |
//! | what must hold | [`checker`] |
//! | a Redis server without sockets | the crate `redis-sim` |
//! | the same on real ports | [`serve`] |
//! | locks that are wrong on purpose | [`variant`] |
//! | the same over simulated TCP | [`sockets`] |
//! | clients of your own | [`simulation`], [`context`] |
//! | plans drawn from a seed | [`swarm`] |
//! | plans in files | [`plan_file`], [`source`] |
//! | what can be seen from outside | [`recording`] |
//! | a run as a picture | [`report`] |
//! | plans with what is expected of them | [`scenario`] |
//! | many runs | [`campaign`], [`failure`] |
//! | every lock against every class of fault | [`matrix`] |
//! | less of a failure | [`shrink`] |

mod call;
pub mod campaign;
pub mod checker;
pub mod cli;
mod client;
mod clock;
pub mod context;
mod draw;
mod engine;
mod event;
mod executor;
pub mod export;
pub mod failure;
pub mod fault;
pub mod history;
mod link;
pub mod matrix;
mod node;
pub mod plan;
pub mod plan_file;
mod progress;
pub mod recording;
mod replication;
pub mod report;
mod runtime;
pub mod scenario;
pub mod serve;
pub mod shrink;
pub mod simulation;
mod slab;
pub mod sockets;
pub mod source;
pub mod span;
mod statement;
mod store;
pub mod story;
pub mod subject;
mod subscription;
pub mod swarm;
mod transport;
mod trouble;
mod turn;
pub mod variant;
mod workload;
mod world;

pub use world::Counters;
