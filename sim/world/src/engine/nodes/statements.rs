//! Records what the requests of each hold state, as nodes execute them.

use quorlock::transport::Request;
use quorlock::{Name, OwnerId};

use crate::history::{Process, ShortenedLease};
use crate::world::World;

/// Records the leases that a request states.
pub(crate) fn note(world: &mut World, by: Process, request: &Request) {
    match request {
        Request::Acquire(ask) => {
            if let Some(keep) = ask.keep {
                note_one(
                    world,
                    by,
                    &ask.name,
                    ask.owner,
                    keep.number,
                    ask.lease.millis(),
                );
            }
        }
        Request::Renew(ask) => {
            for claim in &ask.claims {
                if let Some(keep) = claim.keep {
                    let lease = claim.lease.millis();
                    note_one(world, by, &claim.name, claim.owner, keep.number, lease);
                }
            }
        }
        _ => {}
    }
}

fn note_one(world: &mut World, by: Process, name: &Name, owner: OwnerId, number: u64, lease: u64) {
    if let Some([before, after]) = world.statements.note(owner, number, lease) {
        let name = world.history.name(&name.text());
        let at = world.now();
        world.history.shrunk.push(ShortenedLease {
            at,
            name,
            by,
            before,
            after,
        });
    }
}
