//! Waiters that pause while no node answers. The transport tells them when a node can be reached again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock_sim_lab::client::context::Context;
use quorlock_sim_lab::simulation::Simulation;
use quorlock_sim_plan::Plan;

/// When the node can be reached again. The pauses double until then: their bound of a minute is longer. (A run goes on for twice
/// that bound after its last fault.)
const RETURN: Duration = Duration::from_secs(6);

/// The time within which a waiter is served: a second between attempts to connect, the time-out of an attempt, a spread
/// of 100 ms, and the round trips.
const SOON: Duration = Duration::from_millis(1_400);

fn plan(lane: &str, fault: &str) -> Plan {
    let plan: Plan = toml::from_str(&format!(
        "lane = '{lane}'\nlock = 'single'\nclients = 1\nduration = '9s'\nnodes = {{ count = 1 }}\n\
         network = {{ call_timeout = '100ms', connect_timeout = '100ms' }}\n\
         workload = {{ backoff_cap = '60s', lease = '300ms' }}\nfaults = [{{ at = '100ms', {fault} }}]"
    ))
    .expect("a plan");
    quorlock_sim_plan::check(&plan).expect("a plan that can be run");
    plan
}

/// Waits for a lock from the beginning of the outage. Records when it is acquired.
async fn wait(ctx: Context, served: Arc<AtomicU64>) {
    let began = ctx.now();
    let lock = ctx.lock(["x"]).wait(Duration::from_secs(60));
    ctx.sleep(Duration::from_millis(200)).await;
    let guard = lock.acquire().await.expect("it is waited for");
    let took = ctx.now().since(began);
    served.store(took.as_millis() as u64, Ordering::Relaxed);
    let _ = guard.release().await;
}

#[test]
fn the_pause_of_a_waiter_ends_soon_after_its_node_can_be_reached_again() {
    for (lane, seeds) in [("fast", 0..20), ("turmoil", 0..1)] {
        for fault in [
            "kind = 'crash-node', node = 0, restart_after = '5900ms'",
            "kind = 'pause-node', node = 0, lasts = '5900ms'",
            "kind = 'cut', clients = [0], nodes = [0], lasts = '5900ms'",
            "kind = 'cut', clients = [0], nodes = [0], direction = 'to-client', lasts = '5900ms'",
        ] {
            for seed in seeds.clone() {
                let served = Arc::new(AtomicU64::new(u64::MAX));
                let told = Arc::clone(&served);
                let simulation =
                    Simulation::new(plan(lane, fault), move |ctx| wait(ctx, Arc::clone(&told)));
                let _ = simulation.run(seed);
                let served = Duration::from_millis(served.load(Ordering::Relaxed));
                assert!(
                    RETURN <= served && served < RETURN + SOON,
                    "{lane}, {fault}, seed {seed}: served after {served:?}"
                );
            }
        }
    }
}
