//! Thefts: requests that changed a claim of another owner than their sender.

use std::collections::BTreeSet;

use quorlock::OwnerId;
use quorlock::runtime::WallMillis;
use quorlock::transport::{Cause, Claim, Release, ReleaseReply, Renew, RenewReply, Reply, Request};
use quorlock_core::message::Mode;
use quorlock_core::node::{Held, Node as Keys};

use crate::history::{Process, Theft};
use crate::world::World;
use crate::world::id::{Id, NodeId};
use crate::world::specification::server::Specification;

/// The claims that a request could steal, before it is executed.
pub(super) struct ClaimsBefore {
    /// The owners of the name of a release.
    claimed: Owners,
    /// The indices of a renewal's claims that belong to other owners.
    strange: Vec<usize>,
}

impl ClaimsBefore {
    pub(super) fn of(keys: &Keys, wall: WallMillis, request: &Request) -> Self {
        let (mut claimed, mut strange) = (Owners::None, Vec::new());
        match request {
            Request::Release(release) => claimed = owners(keys, wall, &release.name),
            Request::Renew(renew) => strange = of_others(keys, wall, renew),
            _ => {}
        }
        ClaimsBefore { claimed, strange }
    }

    /// Records what the request stole at a node.
    pub(super) fn look_for_thefts(
        self,
        world: &mut World,
        (node, by, wall): (NodeId, Process, WallMillis),
        request: &Request,
        reply: &Result<Reply, Cause>,
    ) {
        match (request, reply) {
            (Request::Release(release), Ok(Reply::Release(reply))) => {
                let claimed = self.claimed.as_slice();
                if !claimed.is_empty() && is_theft(world, (node, wall), claimed, release, *reply) {
                    note_theft(world, node, by, &release.name);
                }
            }
            (Request::Renew(renew), Ok(Reply::Renew(replies))) => {
                for place in self.strange {
                    if let (Some(claim), Some(RenewReply::AlreadyYours { .. })) =
                        (renew.claims.get(place), replies.get(place))
                    {
                        note_theft(world, node, by, &claim.name);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a release removed a claim of an owner other than the sender's.
fn is_theft(
    world: &mut World,
    (node, wall): (NodeId, WallMillis),
    claimed: &[OwnerId],
    release: &Release,
    reply: ReleaseReply,
) -> bool {
    match (release.mode, claimed) {
        // A plain claim is released by the owner itself, or the answer states that another owner has it.
        (Mode::Plain | Mode::Fair, [owner]) => {
            let says_so = reply == ReleaseReply::NotYours || reply == ReleaseReply::Left;
            !says_so && *owner != release.owner
        }
        _ => {
            let keys = Specification::of(&mut *world.servers).at(node).keys();
            let left = owners(keys, wall, &release.name);
            let mut others = claimed.iter().filter(|owner| **owner != release.owner);
            // A name can have thousands of readers.
            let left: BTreeSet<&OwnerId> = left.as_slice().iter().collect();
            others.any(|owner| !left.contains(owner))
        }
    }
}

/// Returns the indices of a renewal's claims that belong to other owners. Readers are left out, because they share a
/// name.
fn of_others(keys: &Keys, now: WallMillis, renew: &Renew) -> Vec<usize> {
    if !matches!(renew.mode, Mode::Plain | Mode::Fair) {
        return Vec::new();
    }
    let is_others = |claim: &Claim| match owners(keys, now, &claim.name) {
        Owners::One(owner) => owner != claim.owner,
        _ => false,
    };
    let places = renew.claims.iter().enumerate();
    let others = places.filter(|(_, claim)| is_others(claim));
    others.map(|(place, _)| place).collect()
}

fn note_theft(world: &mut World, node: NodeId, by: Process, name: &quorlock::Name) {
    let name = world.history.name(&name.text());
    let at = world.now();
    world.history.thefts.push(Theft {
        at,
        node: node.get(),
        name,
        by,
    });
}

/// The owners with a claim under a name.
pub(super) enum Owners {
    None,
    One(OwnerId),
    Several(Vec<OwnerId>),
}

impl Owners {
    pub(super) fn as_slice(&self) -> &[OwnerId] {
        match self {
            Owners::None => &[],
            Owners::One(owner) => std::slice::from_ref(owner),
            Owners::Several(owners) => owners,
        }
    }
}

/// Returns the owners with a claim under a name, except readers whose claims have expired.
pub(super) fn owners(keys: &Keys, now: WallMillis, name: &quorlock::Name) -> Owners {
    match keys.held(now, name) {
        Some((Held::Plain { owner, .. }, _)) => Owners::One(owner),
        Some((Held::ReadWrite(held), _)) => {
            let readers = keys.readers(now, name).into_iter();
            let readers = readers.map(|(owner, ..)| owner);
            let writer = held.writer.map(|(owner, _)| owner);
            Owners::Several(writer.into_iter().chain(readers).collect())
        }
        _ => Owners::None,
    }
}
