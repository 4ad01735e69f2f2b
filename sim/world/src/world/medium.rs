//! The medium between the clients and the servers of a run. It is chosen once, by the lane of the plan, and creates the
//! servers, their driver and the transports of clients.

use std::sync::Arc;

use quorlock::transport::Transport;

use crate::world::id::{ProcessId, Seat};
use crate::world::server::Servers;
use quorlock_sim_plan::Plan;

/// How messages get from clients to servers and back.
pub trait Medium {
    /// Returns the servers of a run with this many nodes.
    fn servers(&self, plan: &Plan, nodes: usize) -> Box<dyn Servers>;

    /// Returns the driver of the parts that move independently of the world's events, if there are any. Must be called
    /// after the servers are in the world.
    fn driver(&self, plan: &Plan) -> Option<Box<dyn Driver>>;

    /// Returns the transport from one client process to one node of the plan.
    fn transport(&self, who: ProcessId, seat: Seat) -> Arc<dyn Transport>;
}

/// Returns the address of a node of the plan.
pub fn address(seat: Seat) -> Arc<str> {
    format!("node-{seat}:6379").into()
}

/// Drives a medium that moves in its own steps.
pub trait Driver {
    /// Takes a step. Returns the time until the next step, in nanoseconds.
    fn step(&mut self) -> u64;
}
