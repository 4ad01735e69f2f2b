//! The knowledge of cluster nodes about each other, and the slots that they announce to clients.
//!
//! Each shard is a [group](super::elections) whose voters are the nodes that were primaries when the run began.

use crate::engine::nodes::view::Seen;
use crate::world::World;
use crate::world::election_group::{ElectionGroup, View as _};
use crate::world::id::{Id, NodeId, Seat, first};
use crate::world::shards::{Availability, KnownShard, KnownSlots, Reached, Shards, Tidings};
use quorlock_sim_plan::{Cluster, Coverage, Plan};

/// Turns the nodes of a plan into the shards of a cluster.
pub fn build(world: &mut World, plan: &Plan, cluster: &Cluster) {
    let Some(rules) = plan.nodes.elections() else {
        return;
    };
    let nodes: Vec<NodeId> = world.nodes.ids().collect();
    for seat in first::<Seat>(plan.nodes.count) {
        let replicas = world.replicas_of(seat);
        let servers = std::iter::once(seat.first_node()).chain(replicas).collect();
        let group = ElectionGroup::of_cluster(&rules, servers, nodes.clone());
        world.groups.push(group);
    }
    world.shards = Some(Shards::new(cluster, plan.nodes.count, nodes.len()));
}

/// Informs every node about the owner of each slot, if the nodes form a cluster.
pub fn begin(world: &mut World) {
    let Some(mut shards) = world.shards.take() else {
        return;
    };
    if world.plan.is_one_cluster() {
        let seat = Seat::new(0);
        for name in 0..world.plan.workload.names.max(1) {
            let slot = world
                .servers
                .slot_of(seat, &quorlock_sim_plan::name_of(name));
            shards.assign(slot, seat);
        }
    }
    world.shards = Some(shards);
    refresh(world);
}

/// Updates what each node that is awake knows of the other nodes and tells clients. Does nothing without a cluster.
pub(crate) fn refresh(world: &mut World) {
    let Some(mut shards) = world.shards.take() else {
        return;
    };
    let now = world.now();
    let is_uncovered = shards.rules().coverage == Coverage::Full && lacks_an_owner(world);
    for node in world.nodes.ids().collect::<Vec<_>>() {
        let heard = hears(world, node);
        let mut service = shards.listen(now, node, heard);
        if heard == Reached::None {
            continue;
        }
        let seat = world.seat_of(node);
        if heard == Reached::Most {
            shards.learn(now, node, seat);
            if is_uncovered {
                service = Availability::Down;
            }
        }
        let known = shards.known_by(node, seat, &known_shards(world, node), service);
        tell(world, &mut shards, &known);
    }
    world.shards = Some(shards);
}

fn tell(world: &mut World, shards: &mut Shards, known: &KnownSlots) {
    if shards.tell(known) == Tidings::New {
        world.servers.know_slots(known);
    }
}

pub(super) fn seen(world: &World) -> Seen<'_> {
    Seen {
        nodes: &world.nodes,
        now: world.now(),
    }
}

/// Returns whether a majority considers the primary of a shard down and no replica has been promoted.
fn lacks_an_owner(world: &World) -> bool {
    let mut seats = first::<Seat>(world.plan.nodes.count);
    seats.any(|seat| {
        let primary = world.failovers.primary(seat);
        let group = world.groups.get(seat);
        group.is_some_and(|group| group.has_failed(primary, world.now(), &seen(world)))
    })
}

/// Returns how many of the primaries that it knows a node reaches.
fn hears(world: &World, node: NodeId) -> Reached {
    let seen = seen(world);
    if !seen.is_awake(node) {
        return Reached::None;
    }
    let count = world.plan.nodes.count;
    let is_heard = |seat: &Seat| {
        let group = world.groups.get(*seat);
        group.is_some_and(|group| {
            let primary = group.named_by(node);
            primary.is_some_and(|primary| {
                primary == node || (seen.is_awake(primary) && !group.is_apart(node, primary))
            })
        })
    };
    match count / 2 < first(count).filter(is_heard).count() as u16 {
        true => Reached::Most,
        false => Reached::Few,
    }
}

/// Returns the shards as a node knows them.
fn known_shards(world: &World, node: NodeId) -> Vec<KnownShard> {
    let seats = first::<Seat>(world.plan.nodes.count);
    let known = seats.map(|seat| {
        let group = world.groups.get(seat);
        let primary = group.and_then(|group| group.named_by(node));
        let primary = primary.unwrap_or(seat.first_node());
        let servers = group
            .map_or(&[][..], ElectionGroup::servers)
            .iter()
            .copied();
        KnownShard {
            primary,
            replicas: servers.filter(|server| *server != primary).collect(),
        }
    });
    known.collect()
}
