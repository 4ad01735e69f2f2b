//! Operations of the plan and the checkers on a server, over a separate connection.

use super::{contains, sockets};
use crate::redis::micros;
use quorlock_sim_world::engine::nodes::{replicas, wait};
use quorlock_sim_world::history::{Process, Theft};
use quorlock_sim_world::world::World;
use quorlock_sim_world::world::id::{Id, NodeId, first};
use quorlock_sim_world::world::server::{Replicas, Server as _};
use redis_sim::SessionId;

/// The field of a read-write lock that contains its mode. It is not a claim.
const MODE: &[u8] = b"mode";

/// The suffix that follows the owner in the field of a writer's claim.
const WRITER: &[u8] = b":write";

/// Returns the lines of an answer that are not lengths. This is enough for numbers and short texts without line
/// breaks.
fn words(answer: &[u8]) -> Vec<Vec<u8>> {
    let lines = answer.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let said = lines.filter(|line| !matches!(line.first(), None | Some(b'$' | b'*')));
    said.map(<[u8]>::to_vec).collect()
}

/// Executes a command on a server and returns the reply.
fn operate(world: &mut World, node: NodeId, words: &[&[u8]]) -> Vec<u8> {
    let now = world.micros(node);
    let station = sockets(world).station(node);
    let answer = station.redis.operate(now, words);
    station.pass_on();
    answer
}

/// Returns whether a key exists.
fn stands(world: &mut World, node: NodeId, key: &str) -> bool {
    operate(world, node, &[b"EXISTS", key.as_bytes()]) == b":1\r\n"
}

/// Handles bytes that a server receives from a client.
pub(super) fn receive(world: &mut World, node: NodeId, session: SessionId, bytes: &[u8]) {
    let now = world.micros(node);
    // A request may have begun in bytes that came before.
    let pending = sockets(world).station(node).redis.process.pending(session);
    let counted = requests(pending);
    let heard = [pending, bytes].concat();
    let asked = requests(&heard);
    let before = match asked {
        0 => Vec::new(),
        _ => claims(world, node, &heard),
    };
    mind_replicas(world, node);
    let station = sockets(world).station(node);
    station.redis.process.receive(session, micros(now), bytes);
    station.pass_on();
    world.counters.commands += asked.saturating_sub(counted);
    if 0 < asked {
        blame_for_refusals(world, node, session);
        check_owners(world, node, session, &heard, &before);
        replicas::keep(world, node);
    }
    wait::block(world, node);
}

/// Makes a server refuse writes when it has noticed that it lacks replicas.
fn mind_replicas(world: &mut World, node: NodeId) {
    let Some(demands) = world.plan.nodes.min_replicas.clone() else {
        return;
    };
    let now = world.now();
    let lacks = world.node(node).lacks_replicas(now, Some(&demands));
    let replicas = if lacks {
        Replicas::Few
    } else {
        Replicas::Enough
    };
    sockets(world).station(node).redis.mind_replicas(replicas);
}

/// Records an effect of the faults that kept a server from executing a request.
fn blame_for_refusals(world: &mut World, node: NodeId, session: SessionId) {
    if let Some((_, fault)) = world.node(node).error() {
        world.blame(fault);
    }
    let mut forgot =
        first(world.plan.clients).map(|client| world.link(client, node).lacks_scripts());
    if let Some(fault) = forgot.find_map(|fault| fault)
        && sockets(world).station(node).says(session, b"NOSCRIPT")
    {
        // The first client that notices it loads the scripts for all clients.
        for client in first(world.plan.clients) {
            world.link(client, node).take_lacking_scripts();
        }
        world.blame(fault);
    }
}

/// Returns the claims on all names that occur in the bytes: key, owner and count. Readers with expired leases are
/// omitted.
fn claims(world: &mut World, node: NodeId, bytes: &[u8]) -> Vec<(String, Vec<u8>, i64)> {
    let names = world.history.names.iter();
    let spoken_of = names.filter(|name| contains(bytes, name.as_bytes()));
    let mut claims = Vec::new();
    let spoken_of: Vec<String> = spoken_of.cloned().collect();
    let redis = &sockets(world).station(node).redis;
    let keys = spoken_of.into_iter().flat_map(|name| redis.keys_of(&name));
    for name in keys.collect::<Vec<String>>() {
        let answer = words(&operate(world, node, &[b"HGETALL", name.as_bytes()]));
        let pairs = answer.chunks_exact(2);
        let is_read_write = pairs
            .clone()
            .any(|pair| pair.first().is_some_and(|f| f == MODE));
        for pair in pairs {
            let [owner, count] = pair else { continue };
            let is_over = is_read_write && !owner.ends_with(WRITER) && {
                let owner = String::from_utf8_lossy(owner);
                !stands(world, node, &format!("{{{name}}}:{owner}:rwlock_timeout:1"))
            };
            if owner == MODE || is_over {
                continue;
            }
            let owner = owner.strip_suffix(WRITER).unwrap_or(owner);
            // With a margin, the claim version is behind the count.
            let count = String::from_utf8_lossy(count);
            let count = count.split(' ').next().unwrap_or_default();
            let count = count.parse().unwrap_or(0);
            claims.push((name.clone(), owner.to_vec(), count));
        }
    }
    claims
}

/// Records a theft: a request that reduced a claim but does not name the claim's owner.
fn check_owners(
    world: &mut World,
    node: NodeId,
    session: SessionId,
    bytes: &[u8],
    before: &[(String, Vec<u8>, i64)],
) {
    if before.is_empty() {
        return;
    }
    let after = claims(world, node, bytes);
    let station = sockets(world).station(node);
    let client = station.callers.get(&session).map(|caller| caller.client);
    for (name, owner, count) in before {
        let mut same = after.iter().filter(|(n, o, _)| n == name && o == owner);
        let is_less = same.next().is_none_or(|(_, _, now)| now < count);
        let Some(client) = client.filter(|_| is_less && !contains(bytes, owner)) else {
            continue;
        };
        let restarts = world.client(client).restarts();
        let theft = Theft {
            at: world.now(),
            node: node.get(),
            name: world.history.name(bare(name)),
            by: Process {
                client: client.get(),
                restarts,
            },
        };
        world.history.thefts.push(theft);
    }
}

/// Returns the name that is stored under a key.
fn bare(key: &str) -> &str {
    let behind = key.strip_prefix('{').and_then(|key| key.split_once("}:"));
    behind.map_or(key, |(_, name)| name)
}

/// Returns the number of scripts that a client's request asks the server to run.
fn requests(bytes: &[u8]) -> u64 {
    let lines = bytes.split(|byte| *byte == b'\n');
    let count = lines.filter(|line| matches!(*line, b"EVALSHA\r" | b"EVAL\r"));
    count.count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_requests_counted() {
        let answer = b"*2\r\n$7\r\nuuid:12\r\n$1\r\n3\r\n";
        assert_eq!(words(answer), [b"uuid:12".to_vec(), b"3".to_vec()]);
        assert_eq!(words(b":1\r\n"), [b":1".to_vec()]);
        let two = b"*2\r\n$7\r\nEVALSHA\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nEVAL\r\n";
        assert_eq!(requests(two), 2);
    }
}
