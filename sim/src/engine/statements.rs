//! What the requests of each hold stated, as nodes execute them.

use quorlock::transport::Request;
use quorlock::{Name, OwnerId};

use crate::history::{Process, Shrunk};
use crate::world::World;

impl World {
    /// A node executes a request.
    pub(crate) fn note_statements(&mut self, by: Process, request: &Request) {
        match request {
            Request::Acquire(ask) => {
                if let Some(keep) = ask.keep {
                    self.note_statement(by, &ask.name, ask.owner, keep.number, ask.lease.millis());
                }
            }
            Request::Renew(ask) => {
                for claim in &ask.claims {
                    if let Some(keep) = claim.keep {
                        let lease = claim.lease.millis();
                        self.note_statement(by, &claim.name, claim.owner, keep.number, lease);
                    }
                }
            }
            _ => {}
        }
    }

    fn note_statement(
        &mut self,
        by: Process,
        name: &Name,
        owner: OwnerId,
        number: u64,
        lease: u64,
    ) {
        if let Some([before, after]) = self.statements.note(owner, number, lease) {
            let name = self.history.name(name.as_str());
            let at = self.now;
            self.history.shrunk.push(Shrunk {
                at,
                name,
                by,
                before,
                after,
            });
        }
    }
}
