//! The view that sentinels have of the members of their group.

use crate::world::id::NodeId;
use crate::world::node::Role;

/// What the engine knows about the members of a group now.
pub trait View {
    /// Returns whether the member is up and not paused.
    fn is_awake(&self, member: NodeId) -> bool;

    fn role(&self, server: NodeId) -> Role;

    /// Returns whether writes of the primary are replicated to the replica.
    fn flows(&self, primary: NodeId, replica: NodeId) -> bool;
}
