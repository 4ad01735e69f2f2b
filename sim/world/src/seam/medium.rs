//! The medium of the lane `fast`.

use std::sync::Arc;

use quorlock::transport::Transport;

use crate::seam::records;
use crate::seam::transport::ValueTransport;
use crate::world::id::{Id, ProcessId, Seat};
use crate::world::medium::{Driver, Medium};
use crate::world::server::Servers;
use crate::world::specification::server::Specification;
use crate::world::with;
use quorlock_sim_plan::Plan;

/// The medium in which messages are values. Events of the world carry them to servers that execute the specification.
#[derive(Debug)]
pub struct Values;

impl Medium for Values {
    fn servers(&self, plan: &Plan, nodes: usize) -> Box<dyn Servers> {
        Box::new(Specification::new(plan, nodes))
    }

    fn driver(&self, _plan: &Plan) -> Option<Box<dyn Driver>> {
        None
    }

    fn transport(&self, who: ProcessId, seat: Seat) -> Arc<dyn Transport> {
        match with(|world| world.plan.nodes.kind(seat.get()).is_store()) {
            true => Arc::new(records::transport(who, seat)),
            false => Arc::new(ValueTransport::new(who, seat)),
        }
    }
}
