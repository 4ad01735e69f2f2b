//! The simulator: its lanes, its plans, what it finds, and what it costs.

#![allow(
    clippy::disallowed_macros,
    reason = "each choice between two events is biased: the order is fixed"
)]

mod algorithms;
mod backups;
mod checked_in;
mod clocks;
mod clusters;
mod command_line;
mod contention;
mod determinism;
mod endless;
mod every_combination;
mod extending;
mod failovers;
mod fair_order;
mod fast_path;
mod greedy;
mod handing_over;
mod made_up;
mod own_clients;
mod permits;
mod plan_files;
mod planted_faults;
mod product_faults;
mod property_tests;
mod rate;
mod returns;
mod scenarios;
mod sentinel_groups;
mod serve;
mod stopped;
mod studies;
mod taken_out;
mod triggers;
mod turmoil_adapter;
mod turmoil_lane;
mod watched_claims;
mod why;
