//! One run of a plan on real servers, from the first process to the last.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::Mutex;
use tokio::task::{LocalSet, spawn_local};

use super::bystanders;
use super::clients::ClientSlot;
use super::clock;
use super::conductor::Testbed;
use super::footprint::Footprint;
use super::lock_under_test;
use super::message::{ConductorReply, WorkerSettings};
use super::monitor;
use super::network::Network;
use super::node_servers::NodeServers;
use super::other_library::{OtherClients, SharedWith};
use super::outcome::Effects;
use super::preload::Preload;
use super::proxies::Proxies;
use super::records::Records;
use super::redis_cluster::RedisCluster;
use super::report_server::ReportServer;
use super::sentinel_group::SentinelGroup;
use super::server_command::connect;
use super::start;
pub(crate) use super::verdict::Observed;
use super::verdict::since;
#[cfg(test)]
pub(crate) use super::violation::Break;
#[cfg(test)]
pub(crate) use super::waits::WaitCounts;
use quorlock_sim_plan::fault::{FaultKind, Kind};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{LockKind, Plan, WorkloadKind};

/// The longest time that clients may take to end.
const BOUND: Duration = Duration::from_secs(30);

/// Runs a plan on real servers. All times of the plan are multiplied by `scale`. With `beside`, every second client is
/// one of another library. `tick` is called every second. The calling thread must end after the run, because it stays in
/// the network of the run.
///
/// # Errors
/// Returns the reason why the plan could not run, for example a missing `redis-server` or no free port.
pub(crate) fn run(
    plan: &Plan,
    scale: u32,
    beside: Option<OtherClients>,
    tick: impl Fn(u64) + 'static,
) -> Result<Observed, String> {
    let network = Network::enter()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let observed = LocalSet::new().block_on(&runtime, observe(plan.clone(), scale, beside, tick));
    Ok(Observed {
        network: Some(network),
        ..observed?
    })
}

/// Returns the number of nodes that a plan needs.
fn many(plan: &Plan) -> u16 {
    match plan.lock {
        LockKind::Single => 1,
        LockKind::Multi | LockKind::Redlock => plan.nodes.count,
    }
}

/// Returns whether a fault of the plan sets the clock of a server.
fn sets_clocks_of_nodes(plan: &Plan) -> bool {
    let mut faults = plan.faults.iter();
    faults.any(|fault| fault.kind().sets_clock() && matches!(fault.what, FaultKind::Node { .. }))
}

/// Returns whether a fault of the plan sets the clocks of a client.
fn sets_clocks_of_clients(plan: &Plan) -> bool {
    let mut faults = plan.faults.iter();
    faults.any(|fault| fault.kind().sets_clock() && matches!(fault.what, FaultKind::Client { .. }))
}

/// Returns whether the servers report the queues of fair locks.
///
/// After a failover, another server has the queues. If a server evicts one of the three keys of a queue, an owner may
/// have two places in the queue, and is served when the first of them is at the head. A server whose clock steps forward
/// may delete a whole queue, which it does not report.
fn are_queues_followed(plan: &Plan) -> bool {
    let unreported = [Kind::Failover, Kind::Evict, Kind::NodeStep];
    let mut faults = plan.faults.iter();
    plan.workload.kind == WorkloadKind::Fair
        && !faults.any(|fault| unreported.contains(&fault.kind()))
}

/// Compiles the library of clocks if the plan needs it. Returns the reason if that is not possible.
fn preload(plan: &Plan) -> (Option<Preload>, Option<String>) {
    let is_needed = sets_clocks_of_nodes(plan) || sets_clocks_of_clients(plan);
    match is_needed.then(Preload::compile).transpose() {
        Ok(preload) => (preload, None),
        Err(why) => (None, Some(why)),
    }
}

/// Returns the options of all servers.
fn options() -> Vec<String> {
    let options = ["--enable-debug-command", "local", "--lua-time-limit", "50"];
    // By default, a replica receives its first data after five seconds, together with other replicas.
    let at_once = ["--repl-diskless-sync-delay", "0"];
    // This thread waits for points in time of the wall clock, and keeps a core busy after that clock is set back.
    let no_thread = ["--jemalloc-bg-thread", "no"];
    let options = options.into_iter().chain(at_once).chain(no_thread);
    let options = options.map(str::to_owned);
    options.collect()
}

/// Starts the Sentinel groups, if the nodes of the plan are groups.
async fn start_groups(plan: &Plan, scale: u32) -> Result<Vec<SentinelGroup>, String> {
    let Some(sentinels) = &plan.nodes.sentinels else {
        return Ok(Vec::new());
    };
    let options = options();
    let groups = (0..many(plan)).map(|_| SentinelGroup::start(plan, sentinels, scale, &options));
    let groups = try_join_all(groups).await;
    groups.map_err(|error| error.to_string())
}

/// Starts the cluster, if the nodes of the plan are its shards.
async fn start_cluster(plan: &Plan, scale: u32) -> Result<Option<RedisCluster>, String> {
    let Some(rules) = &plan.nodes.cluster else {
        return Ok(None);
    };
    let cluster = RedisCluster::start(plan, rules, scale, &options()).await;
    cluster.map(Some).map_err(|error| error.to_string())
}

async fn start_nodes(
    plan: &Plan,
    scale: u32,
    preload: Option<&Preload>,
) -> Result<Vec<NodeServers>, String> {
    let preload = preload.filter(|_| sets_clocks_of_nodes(plan));
    let mut nodes = Vec::new();
    let servers = if plan.nodes.are_groups() {
        0
    } else {
        many(plan)
    };
    for _ in 0..servers {
        let member = NodeServers::start(plan, scale, &options(), preload).await;
        nodes.push(member.map_err(|error| error.to_string())?);
    }
    Ok(nodes)
}

/// Starts the servers and clients of a run, and the proxies between them.
async fn set_up(
    plan: &Plan,
    scale: u32,
    beside: Option<OtherClients>,
    preload: Option<Preload>,
) -> Result<Testbed, String> {
    let mut nodes = start_nodes(plan, scale, preload.as_ref()).await?;
    let servers: Vec<u16> = nodes.iter_mut().map(|node| node.primary().port()).collect();
    let links = Proxies::open(plan, scale, &servers).await;
    let links = Rc::new(links.map_err(|error| error.to_string())?);
    let groups = start_groups(plan, scale).await?;
    let cluster = start_cluster(plan, scale).await?;
    let ports = servers
        .iter()
        .copied()
        .chain(groups.iter().map(SentinelGroup::first_port))
        .collect();
    let sentinels: Vec<Vec<u16>> = groups.iter().map(SentinelGroup::sentinel_ports).collect();
    let of_cluster = cluster.as_ref().map(RedisCluster::ports);
    let of_cluster = of_cluster.unwrap_or_default().to_vec();
    let names = (0..lock_under_test::names(plan))
        .map(lock_under_test::name)
        .collect();
    // Clients do not need to know the faults.
    let told = Plan {
        faults: Vec::new(),
        ..plan.clone()
    };
    let has_bystanders = bystanders::are_spared(plan);
    let introduced = Rc::clone(&links);
    let introduction = move |process: quorlock_sim_world::history::Process| WorkerSettings {
        process,
        plan: told.clone(),
        scale,
        has_bystanders,
        ports: introduced.ports(process.client),
        sentinels: sentinels.clone(),
        cluster: of_cluster.clone(),
    };
    let reports = ReportServer::open(Records::new(clock::now(), names), introduction).await;
    let reports = Rc::new(reports.map_err(|error| error.to_string())?);
    follow_queues(plan, &servers, &reports).await?;
    let seats = start_clients(plan, reports.port(), preload, beside.as_ref());
    let seats = seats.map_err(|error| error.to_string())?;
    Ok(Testbed {
        scale,
        names: lock_under_test::names(plan),
        reports,
        links,
        nodes: nodes.into_iter().map(Mutex::new).collect(),
        groups,
        cluster,
        ports: RefCell::new(ports),
        seats: seats.into_iter().map(Mutex::new).collect(),
        beside,
        effects: RefCell::new(Effects::default()),
        footprints: RefCell::default(),
    })
}

fn start_clients(
    plan: &Plan,
    reports: u16,
    preload: Option<Preload>,
    beside: Option<&OtherClients>,
) -> std::io::Result<Vec<ClientSlot>> {
    let preload = preload.filter(|_| sets_clocks_of_clients(plan));
    let clients = 0..plan.clients;
    clients
        .map(|client| ClientSlot::start(client, reports, preload.as_ref(), beside))
        .collect()
}

/// Follows the queues of fair locks on the servers, if the servers report them.
async fn follow_queues(
    plan: &Plan,
    servers: &[u16],
    reports: &Rc<ReportServer>,
) -> Result<(), String> {
    if are_queues_followed(plan) {
        for (node, port) in (0u16..).zip(servers) {
            let followed = monitor::follow(node, *port, Rc::clone(reports)).await;
            followed.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

async fn observe(
    plan: Plan,
    scale: u32,
    beside: Option<OtherClients>,
    tick: impl Fn(u64) + 'static,
) -> Result<Observed, String> {
    let (preload, why) = preload(&plan);
    let stage = Rc::new(set_up(&plan, scale, beside, preload).await?);
    start::wait(&stage).await?;
    let began = clock::now();
    stage.reports.records().begin_run(began);
    spawn_local(look_at_lengths(Rc::clone(&stage)));
    spawn_local(look_at_footprints(Rc::clone(&stage)));
    let conducting = spawn_local(Rc::clone(&stage).conduct(plan.clone(), began));
    let lasts = plan.duration.as_duration() * scale;
    for second in 0..lasts.as_secs() {
        clock::sleep_until(began + second * 1_000_000_000).await;
        tick(second);
    }
    clock::sleep_until(began + u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX)).await;
    let seconds = (clock::now() - began) / 1_000_000_000;
    let _ = conducting.await;
    let mut observed = end(&plan, &stage).await?;
    observed.seconds = seconds;
    if let Some(why) = why {
        observed.lacking.insert(why, 1);
    }
    Ok(observed)
}

/// Keeps recording the length of the servers' append-only files, so that a power cut can restore an earlier length.
async fn look_at_lengths(stage: Rc<Testbed>) {
    loop {
        for node in &stage.nodes {
            if let Ok(mut node) = node.try_lock() {
                node.primary().look_at_length();
            }
        }
        clock::sleep(Duration::from_millis(20)).await;
    }
}

/// Reads every second how much memory and how many descriptors each client of this crate has.
async fn look_at_footprints(stage: Rc<Testbed>) {
    loop {
        for (client, seat) in (0u16..).zip(&stage.seats) {
            let own = seat.try_lock().ok().filter(|seat| !seat.is_other());
            let pid = own.and_then(|seat| seat.pid());
            if let Some((pid, now)) = pid.and_then(|pid| Some((pid, Footprint::of(pid)?))) {
                stage.footprints.borrow_mut().add(client, pid, now);
            }
        }
        clock::sleep(Duration::from_secs(1)).await;
    }
}

/// Ends a run: restores all nodes and links, ends the clients, and looks for leftover claims.
async fn end(plan: &Plan, stage: &Testbed) -> Result<Observed, String> {
    stage.heal().await?;
    let mut complaints = stage.footprints.borrow().grown();
    let most = stage.footprints.borrow().most();
    end_clients(plan, stage, &mut complaints).await;
    look_for_leftovers(plan, stage).await;
    for node in &stage.nodes {
        node.lock().await.end().await;
    }
    for group in &stage.groups {
        group.end().await;
    }
    if let Some(cluster) = &stage.cluster {
        cluster.end().await;
    }
    let mut records = stage.reports.records();
    let (lost_updates, failures) = (records.lost_updates(), records.failures().clone());
    let (waits, overrun) = (records.wait_counts(), records.overrun());
    let bereft = records.bereft().cloned();
    let within = plan
        .idle_within
        .map(|within| within.as_duration() * stage.scale);
    let delayed = within.and_then(|within| records.delayed(within));
    let queued = records.queues().ordered();
    let history = records.end(clock::now());
    let run_began = records.run_began();
    let counted = since(&history, run_began);
    let beside = stage.beside.as_ref().map(|_| SharedWith::of(&counted));
    let effects = stage.effects.borrow().clone();
    Ok(Observed {
        passed_over: effects.passed_over,
        lacking: effects.lacking,
        waits,
        overrun,
        bereft,
        is_idle: is_idle(plan),
        delayed,
        queued,
        lost_updates,
        failures,
        complaints,
        beside,
        most_memory_kib: most.memory,
        most_descriptors: most.descriptors,
        ..Observed::of(&history, run_began)
    })
}

/// Ends all clients. Adds what they printed, and whether some did not end by themselves.
async fn end_clients(plan: &Plan, stage: &Testbed, complaints: &mut Vec<String>) {
    // Sent repeatedly, because a process that was started last may not be connected yet.
    let has_ended = async || {
        for client in 0..plan.clients {
            stage.reports.tell(client, ConductorReply::Stop);
        }
        (stage.reports.present() == 0).then_some(())
    };
    if clock::wait_for(BOUND, has_ended).await.is_none() {
        complaints.push(format!("{} clients did not end", stage.reports.present()));
    }
    for seat in &stage.seats {
        let mut seat = seat.lock().await;
        let output = seat.output();
        if !output.is_empty() {
            complaints.push(output.chars().take(300).collect());
        }
        seat.kill().await;
    }
}

/// Checks that no claim is left one lease after the last client has ended, plus the margin by which nodes keep claims
/// longer.
async fn look_for_leftovers(plan: &Plan, stage: &Testbed) {
    let longer = |span: SimTime| span.as_duration() * stage.scale;
    // After a backward step of the clock, claims last longer.
    let slack = if sets_clocks_of_nodes(plan) { 8 } else { 1 };
    let bound = (longer(plan.longest_lease()) + longer(plan.clock_margin())) * slack
        + Duration::from_secs(2);
    let none = clock::wait_for(bound, async || {
        claims(plan, stage).await.is_empty().then_some(())
    })
    .await;
    if none.is_none() {
        for (node, name) in claims(plan, stage).await {
            stage.reports.records().left_over(node, name);
        }
    }
}

async fn claims(plan: &Plan, stage: &Testbed) -> Vec<(u16, u16)> {
    let names = lock_under_test::names(plan);
    if let Some(cluster) = &stage.cluster {
        return cluster.claims(names).await;
    }
    let mut claims = Vec::new();
    let ports = stage.ports.borrow().clone();
    for (node, port) in (0u16..).zip(ports) {
        let Ok(mut connection) = connect(port).await else {
            continue;
        };
        for name in 0..names {
            let mut exists = redis::cmd("EXISTS");
            exists.arg(lock_under_test::name(name));
            let there: u64 = exists.query_async(&mut connection).await.unwrap_or(0);
            if 0 < there {
                claims.push((node, name));
            }
        }
    }
    claims
}

/// Whether clients use locks for a small part of their time.
fn is_idle(plan: &Plan) -> bool {
    plan.workload.hold_max < plan.workload.think_min
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lock on one node does not promise to be granted at once after a restart, and its clients are as idle as the others.
    #[test]
    fn clients_are_idle_whatever_their_lock_promises() {
        let mut plan = Plan::default();
        assert!(!is_idle(&plan));
        plan.workload.hold_max = SimTime::millis(20);
        plan.workload.think_min = SimTime::millis(1_200);
        assert!(is_idle(&plan));
    }
}
