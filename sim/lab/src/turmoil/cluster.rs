//! The servers of this lane as the nodes of a cluster.

use quorlock::redis::{RedisConfig, RedisTransport};
use redis_sim::{ClusterState, Place, SlotShare, SlotTable};

use super::place;
use quorlock_sim_plan::Plan;
use quorlock_sim_world::world::id::{NodeId, first};
use quorlock_sim_world::world::shards::{Availability, KnownSlots};

/// Returns the address of the cluster, which lists all of its nodes.
pub(super) fn address(plan: &Plan) -> String {
    let servers = plan.nodes.count + plan.nodes.count * plan.nodes.replicas;
    let nodes = first::<NodeId>(servers).map(|node| {
        let (host, port) = place(node);
        format!("{host}:{port}")
    });
    let nodes: Vec<String> = nodes.collect();
    format!("redis+cluster://{}", nodes.join(","))
}

/// Returns one transport to the cluster if clients see it as one node, or else one transport to each of its shards.
pub(super) fn transports(plan: &Plan, config: RedisConfig) -> Vec<RedisTransport> {
    let cluster = RedisTransport::open(&address(plan), config).expect("BUG: no address");
    if plan.is_one_cluster() {
        return vec![cluster];
    }
    let shards = usize::from(plan.nodes.count);
    let shards = (0..shards).filter_map(|shard| cluster.shard(shard, shards));
    shards.collect()
}

/// Returns the hash tags under which shards store names, as the adapter chooses them. There are none if clients see the
/// cluster as one node.
pub(crate) fn tags(plan: &Plan) -> Vec<String> {
    if plan.nodes.cluster.is_none() || plan.is_one_cluster() {
        return Vec::new();
    }
    let transports = transports(plan, RedisConfig::default());
    let shown = transports
        .iter()
        .map(quorlock::transport::Transport::address);
    let tags = shown.filter_map(|shown| shown.rsplit_once('{')?.1.split_once('}'));
    tags.map(|(tag, _)| tag.to_owned()).collect()
}

/// Converts a node's view of the slots into the table of its server.
pub(super) fn table(known: &KnownSlots) -> SlotTable {
    let places = |moved: &[(u16, NodeId)]| {
        let places = moved.iter().map(|(slot, node)| (*slot, place(*node)));
        places.collect()
    };
    let shares = known.shares.iter().map(|share| SlotShare {
        first: share.first,
        last: share.last,
        owner: place(share.owner),
        replicas: share
            .replicas
            .iter()
            .copied()
            .map(place)
            .collect::<Vec<Place>>(),
    });
    SlotTable {
        own: place(known.own),
        shares: shares.collect(),
        leaving: places(&known.leaving),
        arriving: places(&known.arriving),
        state: match known.service {
            Availability::Up => ClusterState::Ok,
            Availability::Down => ClusterState::Fail,
        },
    }
}
