//! A service whose metrics Prometheus can scrape while its servers fail: `observed [SECONDS]`, for tests/operating.sh.
//!
//! It starts five `redis-server`s, works with locks on a majority of them, kills and restarts servers in turn, and frees
//! locks by force, so that every metric changes. It prints the address of its metrics and ends after SECONDS (default:
//! 60).

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusBuilder;
use quorlock::{Locks, RetryPolicy};
use quorlock_testbed::server::Server;
use tokio::time::sleep;

const LEASE: Duration = Duration::from_millis(600);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args()
        .nth(1)
        .map_or(Ok(60), |text| text.parse())?;
    // Without bounds, the exporter makes summaries, from which no quantile over several processes can be computed.
    let bounds = [
        0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
    ];
    let metrics = PrometheusBuilder::new()
        .set_buckets(&bounds)?
        .install_recorder()?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?);
    let app = Router::new().route("/metrics", get(async move || metrics.render()));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let work = tokio::time::timeout(Duration::from_secs(seconds), fail_and_work());
    work.await.unwrap_or(Ok(()))
}

/// Runs until the program ends.
async fn fail_and_work() -> Result<(), Box<dyn std::error::Error>> {
    let servers: Vec<Server> = (0..5).map(|_| Server::start()).collect();
    let locks = Locks::builder()
        .watchdog_lease(LEASE)
        .longest_lease(2 * LEASE)
        .retry(RetryPolicy::default().poll_cap(Duration::from_millis(100)))
        .trust_fresh_nodes()
        .quorum(servers.iter().map(Server::address))
        .await?;
    for worker in 0..4 {
        tokio::spawn(work(locks.clone(), worker));
    }
    tokio::spawn(campaign(locks.clone()));
    for turn in 0_usize.. {
        sleep(Duration::from_secs(2)).await;
        // A minority fails twice, and then a majority.
        let failing = [1, 2, 3][turn % 3];
        let first = turn % servers.len();
        let numbers: Vec<usize> = (first..first + failing)
            .map(|n| n % servers.len())
            .collect();
        numbers.iter().for_each(|n| servers[*n].kill());
        sleep(2 * LEASE).await;
        let _ = locks.force_release("work-0").await;
        numbers.iter().for_each(|n| servers[*n].restart());
    }
    Ok(())
}

/// Acquires, works and releases, and ignores errors.
async fn work(locks: Locks, worker: usize) {
    loop {
        let lock = locks.lock(format!("work-{}", worker % 2));
        if let Ok(guard) = lock.wait(Duration::from_secs(1)).acquire().await {
            let held = tokio::time::timeout(LEASE / 2, guard.lost()).await;
            if held.is_err() {
                let _ = guard.release().await;
            }
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Leads for a while, repeatedly.
async fn campaign(locks: Locks) {
    loop {
        let mut candidacy = locks.leader("leader").campaign();
        if candidacy.next().await.is_some() {
            sleep(LEASE).await;
        }
        let _ = candidacy.resign().await;
    }
}
