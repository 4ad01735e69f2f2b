//! The host of a client. It carries the requests of the client's process through the production adapter.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use quorlock::redis::{NodeConnectError, RedisConfig, RedisTransport, Wait};
use quorlock::transport::{Request, Subscription, Transport};

use super::outbox::{Listening, OutboxJob, Posted};
use super::stream::SimStreams;
use super::swaps::Swaps;
use super::transport::{hand_in, is_given_up};
use super::{cluster, group_name, place, seat_host, sockets};
use quorlock_sim_plan::Plan;
use quorlock_sim_world::world::id::{ClientId, Id, Seat, first};
use quorlock_sim_world::world::slab::Key;
use quorlock_sim_world::world::{World, with};

/// How soon a broken connection for wake-ups is noticed. The fast lane takes as long.
const PING: Duration = Duration::from_millis(100);

/// Runs the host until the process ends.
pub(super) async fn run(client: ClientId) -> turmoil::Result {
    let (plan, is_first) = with(|world| {
        let restarts = world.client(client).restarts();
        (world.plan.clone(), restarts == 0)
    });
    let transports = transports(&plan, client);
    if is_first {
        for transport in &transports {
            let transport = transport.clone();
            tokio::task::spawn_local(async move {
                match transport.check().await {
                    // The time-outs of the plan are shorter than a handshake: the run begins without this connection.
                    Ok(_) | Err(NodeConnectError::TimedOut { .. }) => {}
                    Err(error) => panic!("BUG: a node that nothing is wrong with yet: {error}"),
                }
                with(|world| sockets(world).warm += 1);
            });
        }
    }
    let mut subscriptions: Vec<(Key<Listening>, Subscription)> = Vec::new();
    loop {
        let errands = poll_fn(|cx| with(|world| take_errands(world, client, cx))).await;
        for errand in errands {
            match errand {
                OutboxJob::Call(key, seat, request) => {
                    if let Some(transport) = transports.get(seat.index()) {
                        tokio::task::spawn_local(carry(key, transport.clone(), *request));
                    }
                }
                OutboxJob::Listen(key, seat, name, listener) => {
                    if let Some(transport) = transports.get(seat.index()) {
                        subscriptions.push((key, transport.subscribe(&name, listener)));
                    }
                }
                OutboxJob::Attend(key, seat, witness) => {
                    if let Some(transport) = transports.get(seat.index()) {
                        subscriptions.push((key, transport.attend(witness)));
                    }
                }
                OutboxJob::Leave(key) => subscriptions.retain(|(known, _)| *known != key),
            }
        }
    }
}

/// Returns a transport to each node of a plan.
fn transports(plan: &Plan, client: ClientId) -> Vec<RedisTransport> {
    if plan.nodes.cluster.is_some() {
        return cluster::transports(plan, config(plan, client));
    }
    let open = |seat| {
        let address = with(|world| address(world, seat));
        RedisTransport::open(&address, config(plan, client)).expect("BUG: no address")
    };
    first(plan.nodes.count).map(open).collect()
}

/// Returns the address of a node of the plan: the address of its server, or those of its sentinels.
fn address(world: &World, seat: Seat) -> String {
    let Some(group) = world.groups.get(seat) else {
        return format!("redis://{}/", seat_host(seat));
    };
    let sentinels = group.sentinels().map(|id| {
        let (host, port) = place(id);
        format!("{host}:{port}")
    });
    let sentinels: Vec<String> = sentinels.collect();
    format!(
        "redis+sentinel://{}/{}",
        sentinels.join(","),
        group_name(seat)
    )
}

fn config(plan: &Plan, client: ClientId) -> RedisConfig {
    let config = RedisConfig::default();
    let config = match plan.awaited() {
        Some(wait) => config.wait(Wait::replicas(
            wait.replicas.into(),
            wait.within.as_duration(),
        )),
        None => config,
    };
    config
        .network(SimStreams {
            client,
            swaps: Swaps::of(plan.variant),
        })
        .call_timeout(plan.network.call_timeout.as_duration())
        .connect_timeout(plan.network.connect_timeout.as_duration())
        .ping_interval(PING)
}

/// Sends one request and stores the answer. If no caller waits for the call any more, it is dropped, but only after it
/// was sent.
async fn carry(key: Key<Posted>, transport: RedisTransport, request: Request) {
    let mut call = transport.call(request);
    let answer = poll_fn(|cx| match call.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if with(|world| is_given_up(world, key, cx)) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let answer = answer.await;
    let caller = with(|world| hand_in(world, key, answer));
    if let Some(caller) = caller {
        caller.wake();
    }
}

fn take_errands(world: &mut World, client: ClientId, cx: &Context<'_>) -> Poll<Vec<OutboxJob>> {
    let now = world.now();
    sockets(world).desk(client).take(now, cx)
}

#[cfg(test)]
mod tests {
    use quorlock_sim_plan::LockKind;

    use super::*;

    /// Those of majorities once sent scripts only, and went on with it here when the product did not.
    #[test]
    fn clients_may_do_without_scripts_as_they_do_by_default() {
        for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
            let plan = Plan {
                lock,
                ..Plan::default()
            };
            let config = format!("{:?}", config(&plan, ClientId::new(0)));
            assert!(config.contains("only_scripts: false"), "{config}");
        }
    }
}
