//! The medium of the lane `fast`.

use std::sync::Arc;

use quorlock::transport::Transport;

use crate::seam::transport::ValueTransport;
use crate::world::id::{ProcessId, Seat};
use crate::world::medium::{Driver, Medium};
use crate::world::server::Servers;
use crate::world::specification::server::Specification;
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
        Arc::new(ValueTransport::new(who, seat))
    }
}
