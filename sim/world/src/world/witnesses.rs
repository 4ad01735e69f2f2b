//! Witnesses, which wait until a node can be reached again.

use std::fmt;
use std::sync::Arc;

use quorlock::transport::Witness;

use crate::world::id::{ClientId, Seat};

/// A witness of a process that watches one node of the plan.
pub struct Attendance {
    client: ClientId,
    seat: Seat,
    witness: Arc<dyn Witness>,
}

impl Attendance {
    pub fn new(client: ClientId, seat: Seat, witness: Arc<dyn Witness>) -> Self {
        Attendance {
            client,
            seat,
            witness,
        }
    }

    pub fn client(&self) -> ClientId {
        self.client
    }

    pub fn seat(&self) -> Seat {
        self.seat
    }

    pub(crate) fn witness(&self) -> &Arc<dyn Witness> {
        &self.witness
    }
}

impl fmt::Debug for Attendance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attendance({} at {})", self.client, self.seat)
    }
}
