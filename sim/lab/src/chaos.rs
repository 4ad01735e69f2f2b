//! Runs plans on real servers: `redis-server` processes, clients in separate processes, and proxies as the network.
//! The simulator's own history and checkers judge the run.
//!
//! The command controls everything: it starts the processes, injects the faults of the plan, and writes the history
//! from what the clients report. All times in a history are readings of the same clock, the clock of the machine.

mod append_log;
mod backup;
mod blocking;
mod bystanders;
mod clients;
mod clock;
mod conductor;
mod counts;
mod eviction;
mod footprint;
mod lateness;
mod lock_under_test;
mod message;
mod monitor;
pub(crate) mod network;
mod node;
mod node_servers;
pub(crate) mod other_library;
mod outcome;
pub(crate) mod possible;
mod preload;
mod proxies;
mod queue_log;
mod records;
mod redis_cluster;
pub(crate) mod redisson;
mod replication;
mod report_server;
mod rights;
pub(crate) mod run;
mod sentinel_group;
mod server_command;
mod server_error;
mod simple_locks;
mod slot_move;
mod start;
mod verdict;
mod violation;
mod waits;
pub(crate) mod worker;
