//! Elections: how the sentinels of a group change the roles of its servers.

use crate::engine::nodes::view::Seen;
use crate::engine::nodes::{clusters, failover, replicas};
use crate::world::World;
use crate::world::election_group::{Apart, Deed, ElectionGroup};
use crate::world::event::Event;
use crate::world::fault::Failover;
use crate::world::id::{ClientId, FaultId, Id, NodeId, Seat};
use crate::world::server::News;
use quorlock_sim_plan::Connections;

/// How often sentinels check servers and exchange what they know, in nanoseconds.
const LOOKS: u64 = 5_000_000;

/// Calls `act` with the group of a node, the time, and what the members of the group see. Returns `None` if the node
/// is not a group.
fn with_group<R>(
    world: &mut World,
    seat: Seat,
    act: impl FnOnce(&mut ElectionGroup, u64, &Seen<'_>) -> R,
) -> Option<R> {
    let now = world.now();
    let seen = Seen {
        nodes: &world.nodes,
        now,
    };
    world
        .groups
        .get_mut(seat)
        .map(|group| act(group, now, &seen))
}

/// Starts the sentinels of every group.
pub fn begin(world: &mut World) {
    for seat in world.groups.ids() {
        world.push(LOOKS, Event::Watch(seat));
    }
}

/// Advances the sentinels of a group, and carries out what they decide.
pub fn watch(world: &mut World, seat: Seat) {
    world.push(world.now() + LOOKS, Event::Watch(seat));
    let deeds = with_group(world, seat, |group, now, seen| group.look(now, seen));
    for deed in deeds.into_iter().flatten() {
        match deed {
            Deed::Name {
                sentinel,
                primary,
                epoch,
            } => world
                .servers
                .name_primary(sentinel, primary, epoch, News::Switched),
            Deed::Resync { replica, primary } => follow(world, replica, primary),
            Deed::Demote { server, primary } => demote(world, seat, server, primary),
            Deed::Promote { leader, primary } => promote(world, seat, leader, primary),
        }
    }
    clusters::refresh(world);
}

/// Orders a sentinel to promote a replica.
pub fn order(world: &mut World, seat: Seat, by: FaultId) {
    let primary = world.failovers.primary(seat);
    let begins = with_group(world, seat, |group, now, seen| {
        let begins = group.order(now, seen);
        if begins {
            group.strike(by, primary);
        }
        begins
    });
    if begins == Some(true) {
        world.blame(by);
    }
}

/// Promotes the most recent replica that a sentinel reaches. If it reaches none, nothing changes.
pub(super) fn promote(world: &mut World, seat: Seat, leader: NodeId, old: NodeId) {
    let candidates = with_group(world, seat, |group, _, seen| {
        (group.candidates(leader, old, seen), group.cause())
    });
    let Some((candidates, by)) = candidates else {
        return;
    };
    let mut most_recent = None;
    for server in candidates {
        replicas::catch_up(world, server);
        let offset = world.servers.server(server).offset();
        if most_recent.is_none_or(|(max, _)| max < offset) {
            most_recent = Some((offset, server));
        }
    }
    let Some((_, new)) = most_recent else {
        return;
    };
    end_connections(world, seat, new);
    failover::replace(
        world,
        Failover {
            seat,
            from: old,
            to: new,
            by,
        },
    );
    world.counters.promotions += 1;
    let epoch = with_group(world, seat, |group, now, _| {
        group.promoted(leader, new, now)
    });
    let epoch = epoch.unwrap_or_default();
    world
        .servers
        .name_primary(leader, new, epoch, News::Promoted);
}

/// Makes a server follow this primary. Data that only this server has is lost.
fn demote(world: &mut World, seat: Seat, server: NodeId, primary: NodeId) {
    replicas::catch_up(world, server);
    end_connections(world, seat, server);
    cut_streams(world, server, |_| true);
    for other in world.nodes.ids() {
        let mut left = world.node(other).take_replicas();
        left.retain(|(replica, _)| *replica != server);
        world.node(other).set_replicas(left);
    }
    follow(world, server, primary);
}

fn follow(world: &mut World, replica: NodeId, primary: NodeId) {
    replicas::catch_up(world, replica);
    let many = world.node(primary).replicas().len();
    // The number is set before the copy is made: the first replica makes the primary begin a new history, which the
    // copy has to include.
    world.servers.server(primary).set_replicas(many + 1);
    failover::follow(world, replica, primary);
}

/// Closes the connections of a server whose role the sentinels change, if the plan lets sentinels do that.
fn end_connections(world: &mut World, seat: Seat, server: NodeId) {
    let group = world.groups.get(seat);
    if group.is_some_and(|group| group.rules().connections == Connections::Ended) {
        world.servers.hang_up(server);
    }
}

/// Records that a fault strikes the primary of a node, if the node is a group.
pub fn strike(world: &mut World, seat: Seat, by: FaultId, server: NodeId) {
    if let Some(group) = world.groups.get_mut(seat) {
        group.strike(by, server);
    }
}

/// Returns the server that a fault has struck: the primary at the beginning of the fault, even if another server is
/// the primary now.
pub fn struck(world: &World, seat: Seat, by: FaultId) -> NodeId {
    let group = world.groups.get(seat);
    let struck = group.and_then(|group| group.struck_by(by));
    struck.unwrap_or(world.failovers.primary(seat))
}

/// Drops the replication stream of a primary whose process has ended. What had not arrived at its replicas is lost.
pub(crate) fn primary_ended(world: &mut World, seat: Seat, primary: NodeId) {
    let servers = world.groups.get(seat).map(|group| group.servers().to_vec());
    for server in servers.into_iter().flatten() {
        if world.node(server).follows() == Some(primary) {
            replicas::catch_up(world, server);
            world.servers.server(server).lose_stream();
        }
    }
    if world.groups.get(seat).is_some() {
        cut_streams(world, primary, |_| true);
    }
}

/// Stops the replication of a server to these replicas.
pub(crate) fn cut_streams(world: &mut World, primary: NodeId, is_cut: impl Fn(NodeId) -> bool) {
    let now = world.now();
    let node = world.node(primary);
    let mut replicas = node.take_replicas();
    let before = replicas.len();
    replicas.retain(|(replica, _)| !is_cut(*replica));
    let many = replicas.len();
    node.set_replicas(replicas);
    if many < before {
        node.count_replicas_from(now);
        world.servers.server(primary).set_replicas(many);
    }
}

/// Isolates the primary of a group together with these clients and sentinels.
pub fn isolate(world: &mut World, seat: Seat, by: FaultId, clients: &[u16], sentinels: &[u16]) {
    let primary = world.failovers.primary(seat);
    let Some(group) = world.groups.get_mut(seat) else {
        return;
    };
    let mut members = vec![primary];
    members.extend(
        sentinels
            .iter()
            .filter_map(|number| group.sentinel(*number)),
    );
    group.strike(by, primary);
    let clients: Vec<ClientId> = clients.iter().copied().map(ClientId::new).collect();
    let apart = Apart {
        by,
        members,
        clients: Some(clients),
    };
    // The other shards of the cluster do not reach the primary either.
    if world.shards.is_some() {
        for other in world.groups.ids().filter(|other| *other != seat) {
            if let Some(group) = world.groups.get_mut(other) {
                group.separate(apart.clone());
            }
        }
    }
    if let Some(group) = world.groups.get_mut(seat) {
        group.separate(apart);
    }
    cut_streams(world, primary, |_| true);
}

/// Separates a sentinel from all other members.
pub(crate) fn make_stale(world: &mut World, seat: Seat, by: FaultId, sentinel: u16) {
    if let Some(group) = world.groups.get_mut(seat)
        && let Some(id) = group.sentinel(sentinel)
    {
        group.separate(Apart {
            by,
            members: vec![id],
            clients: None,
        });
    }
}

/// Ends the separation of members by a fault.
pub(crate) fn unite(world: &mut World, by: FaultId) {
    for group in world.groups.values_mut() {
        group.unite(by);
    }
}

/// Returns a sentinel of a group by its number.
pub fn sentinel(world: &World, seat: Seat, number: u16) -> Option<NodeId> {
    world.groups.get(seat)?.sentinel(number)
}
