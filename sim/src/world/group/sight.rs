//! The view that sentinels have of the members of their group.

use crate::world::id::NodeId;
use crate::world::node::Role;

/// What the engine knows about the members of a group at the moment.
pub(crate) trait Sight {
    /// Whether it is up and not paused.
    fn is_awake(&self, member: NodeId) -> bool;

    fn role(&self, server: NodeId) -> Role;

    /// Whether writes of the primary are replicated to the replica.
    fn flows(&self, primary: NodeId, replica: NodeId) -> bool;
}
