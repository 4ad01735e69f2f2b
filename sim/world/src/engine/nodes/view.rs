//! The view that the members of a group have of each other.

use crate::world::by_id::ById;
use crate::world::election_group::View;
use crate::world::id::NodeId;
use crate::world::node::{NodeState, Role};

/// The observations that members of a group can make of all nodes.
pub(super) struct Seen<'a> {
    pub(super) nodes: &'a ById<NodeId, NodeState>,
    pub(super) now: u64,
}

impl View for Seen<'_> {
    fn is_awake(&self, member: NodeId) -> bool {
        let node = self.nodes.get(member);
        node.is_some_and(|node| node.is_up() && node.paused_until() <= self.now)
    }

    fn role(&self, server: NodeId) -> Role {
        let node = self.nodes.get(server);
        node.map_or(Role::Sentinel, NodeState::role)
    }

    fn flows(&self, primary: NodeId, replica: NodeId) -> bool {
        let node = self.nodes.get(primary);
        let mut replicas = node.into_iter().flat_map(NodeState::replicas);
        replicas.any(|(known, _)| *known == replica)
    }
}
