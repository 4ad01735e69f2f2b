//! The links between all clients and nodes, and the route of each client to each node of the plan.

use crate::world::id::{ClientId, Id, NodeId, Seat, first};
use crate::world::link::Link;
use quorlock_sim_plan::Plan;

/// The links of every client with every node.
#[derive(Debug, Default)]
pub struct Links {
    /// The links, ordered by client and then by node.
    links: Vec<Link>,
    nodes: usize,
    /// The node that serves each node of the plan for each client, ordered by client and then by node of the plan.
    routes: Vec<NodeId>,
    seats: u16,
}

impl Links {
    pub(crate) fn new(plan: &Plan, nodes: usize) -> Self {
        let (min, max) = (plan.network.min.as_nanos(), plan.network.max.as_nanos());
        let seats = plan.nodes.count;
        let routes = |_| first(seats).map(Seat::first_node);
        Links {
            links: (0..usize::from(plan.clients) * nodes)
                .map(|index| Link::new(plan.seed, index as u64, min, max))
                .collect(),
            nodes,
            routes: (0..plan.clients).flat_map(routes).collect(),
            seats,
        }
    }

    /// Draws the passage of all later messages anew.
    pub(super) fn branch_off(&mut self, seed: u64) {
        self.links.iter_mut().for_each(|link| link.branch_off(seed));
    }

    /// Returns a link, if there is one.
    #[inline]
    pub fn get_mut(&mut self, client: ClientId, node: NodeId) -> Option<&mut Link> {
        self.links
            .get_mut(client.index() * self.nodes + node.index())
    }

    /// Returns the node that serves a node of the plan for this client.
    #[inline]
    pub fn route(&self, client: ClientId, seat: Seat) -> NodeId {
        let at = client.index() * usize::from(self.seats) + seat.index();
        *self.routes.get(at).expect("BUG: no such route")
    }

    /// Changes the node that serves a node of the plan. Returns the previous one.
    pub(crate) fn reroute(&mut self, client: ClientId, seat: Seat, node: NodeId) -> NodeId {
        let at = client.index() * usize::from(self.seats) + seat.index();
        let route = self.routes.get_mut(at).expect("BUG: no such route");
        std::mem::replace(route, node)
    }

    /// Returns the nodes of the plan that this node serves for a client.
    pub(crate) fn seats_of(&self, client: ClientId, node: NodeId) -> Vec<Seat> {
        let seats = first(self.seats);
        seats
            .filter(|seat| self.route(client, *seat) == node)
            .collect()
    }
}
