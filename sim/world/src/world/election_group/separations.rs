//! The partitions between the members of a group.

use crate::world::id::{ClientId, FaultId, NodeId};

/// Members that are separated from the other members.
#[derive(Clone, Debug)]
pub struct Apart {
    pub(crate) by: FaultId,
    pub(crate) members: Vec<NodeId>,
    /// The clients on the side of these members. If `None`, clients reach both sides.
    pub clients: Option<Vec<ClientId>>,
}

/// The separations that are in effect.
#[derive(Default, Debug)]
pub(super) struct Separations(Vec<Apart>);

impl Separations {
    pub(super) fn add(&mut self, apart: Apart) {
        self.0.push(apart);
    }

    /// Ends the separations that a fault caused.
    pub(super) fn end(&mut self, fault: FaultId) {
        self.0.retain(|apart| apart.by != fault);
    }

    /// Whether two members are separated from each other.
    pub(super) fn has_between(&self, a: NodeId, b: NodeId) -> bool {
        let mut apart = self.0.iter();
        apart.any(|apart| apart.members.contains(&a) != apart.members.contains(&b))
    }

    /// Returns the faults that keep a client from reaching a member.
    pub(super) fn cuts(&self, client: ClientId, member: NodeId) -> impl Iterator<Item = FaultId> {
        let cut = self.0.iter().filter(move |apart| {
            let clients = apart.clients.as_ref();
            clients
                .is_some_and(|clients| clients.contains(&client) != apart.members.contains(&member))
        });
        cut.map(|apart| apart.by)
    }
}
