//! The lock and the data in one database, with clients that are paused between their read and their commit.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quorlock_sim_lab::client::context::Context;
use quorlock_sim_lab::simulation::Simulation;
use quorlock_sim_plan::generator::PlanGenerator;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{LockKind, NodeKind, Nodes, Plan, Watchdog, Workload};
use quorlock_sim_world::seam::records::{commit, read};
use quorlock_sim_world::world::id::{Id, Seat};
use quorlock_store::{CheckInError, Claims, Key};

/// What clients did to the stock of a shop.
#[derive(Default)]
struct Shop {
    sold: AtomicU64,
    refused: AtomicU64,
    /// The largest number that was written.
    most: AtomicU64,
}

/// Whether a sale checks the lock in the transaction that writes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    Claims,
    Nothing,
}

/// Counts sales in a record of the database under a lock: reads the number, and writes the next one.
async fn sell(ctx: Context, shop: Arc<Shop>, checks: Checks) {
    let (who, seat, key) = (ctx.who(), Seat::new(0), Key::new("the sales of a shop"));
    let lock = ctx
        .lock(["stock"])
        .lease(SimTime::millis(100).as_duration());
    loop {
        ctx.sleep(ctx.random_span(SimTime::millis(1), SimTime::millis(20)))
            .await;
        let Ok(guard) = lock.acquire().await else {
            continue;
        };
        let Ok(before) = read(who, seat, key.clone()).await else {
            continue;
        };
        let sold = before.and_then(|text| String::from_utf8(text).ok()?.parse().ok());
        let sold: u64 = sold.unwrap_or(0);
        // The client does not look at its clock again: only the database stops it.
        ctx.sleep(ctx.random_span(SimTime::millis(1), SimTime::millis(30)))
            .await;
        let names = guard.names().cloned();
        let claims = Claims::new(guard.owner_id(), names);
        let claims = (checks == Checks::Claims).then_some(claims);
        let record = (sold + 1).to_string().into_bytes();
        match commit(who, seat, key.clone(), claims, record).await {
            Ok(Ok(())) => {
                shop.sold.fetch_add(1, Ordering::Relaxed);
                shop.most.fetch_max(sold + 1, Ordering::Relaxed);
            }
            Ok(Err(CheckInError::NotHeld { .. })) => {
                shop.refused.fetch_add(1, Ordering::Relaxed);
            }
            other => panic!("no other fault strikes a commit: {other:?}"),
        }
        let _ = guard.release().await;
    }
}

/// Returns the sales that were lost, and the commits that were refused, over some seeds with long pauses of clients.
fn run(checks: Checks) -> (u64, u64) {
    let (mut lost, mut refused) = (0, 0);
    for seed in 0..20 {
        let faults = PlanGenerator {
            faults: "pause-client".parse().expect("a kind"),
            lock: LockKind::Single,
            clients: Some(3),
            ..PlanGenerator::default()
        };
        let plan = Plan {
            lock: LockKind::Single,
            clients: 3,
            nodes: Nodes {
                count: 1,
                kinds: vec![NodeKind::Database],
                ..Nodes::default()
            },
            workload: Workload {
                lease: SimTime::millis(100),
                watchdog: Watchdog::Off,
                ..Workload::default()
            },
            faults: faults.plan(seed).faults,
            ..Plan::default()
        };
        let plan = Plan {
            faults: plan
                .faults
                .iter()
                .filter(|fault| !fault.clients().is_empty())
                .cloned()
                .collect(),
            ..plan
        };
        let shop = Arc::new(Shop::default());
        let its = Arc::clone(&shop);
        let clients = Simulation::new(plan, move |ctx| sell(ctx, Arc::clone(&its), checks));
        let _ = Rc::new(clients.run(seed));
        let sold = shop.sold.load(Ordering::Relaxed);
        lost += sold.saturating_sub(shop.most.load(Ordering::Relaxed));
        refused += shop.refused.load(Ordering::Relaxed);
    }
    (lost, refused)
}

#[test]
fn a_stale_writer_cannot_commit() {
    let (lost, refused) = run(Checks::Claims);
    assert_eq!(lost, 0);
    assert!(0 < refused, "no client was late");
}

#[test]
fn without_the_check_a_stale_writer_overwrites() {
    let (lost, _) = run(Checks::Nothing);
    assert!(0 < lost, "no sale was overwritten");
}
