//! One run of a plan on real servers, from the first process to the last.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::{LocalSet, spawn_local};

use super::clients::ClientSlot;
use super::clock;
use super::conductor::{Effects, Testbed};
use super::lock_under_test;
use super::message::{ConductorReply, WorkerSettings};
use super::node::Node;
use super::node_servers::NodeServers;
use super::preload::Preload;
use super::proxies::Proxies;
use super::records::Records;
use super::report_server::ReportServer;
#[cfg(test)]
pub(crate) use super::verdict::Break;
pub(crate) use super::verdict::Observed;
use crate::plan::fault::{Fault, Kind};
use crate::plan::time::SimTime;
use crate::plan::{LockKind, Plan};

/// The longest time that processes may take to start or to end.
const BOUND: Duration = Duration::from_secs(30);

/// Runs a plan on real servers. All times of the plan are multiplied by `scale`. `tick` is called every second.
///
/// # Errors
/// Returns the reason why the plan could not run, for example a missing `redis-server` or no free port.
pub(crate) fn run(
    plan: &Plan,
    scale: u32,
    tick: impl Fn(u64) + 'static,
) -> Result<Observed, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    LocalSet::new().block_on(&runtime, observe(plan.clone(), scale, tick))
}

/// Returns the number of servers that a plan needs.
fn servers(plan: &Plan) -> u16 {
    match plan.lock {
        LockKind::Single => 1,
        LockKind::Multi | LockKind::Redlock => plan.nodes.count,
    }
}

async fn start_nodes(
    plan: &Plan,
    scale: u32,
) -> Result<(Vec<NodeServers>, Option<String>), String> {
    let needs_clocks = plan.faults.iter().map(Fault::kind);
    let needs_clocks = needs_clocks
        .clone()
        .any(|kind| matches!(kind, Kind::NodeRate | Kind::NodeStep));
    let preload = needs_clocks.then(Preload::compile).transpose();
    let (preload, why) = match preload {
        Ok(preload) => (preload, None),
        Err(why) => (None, Some(why)),
    };
    let options = ["--enable-debug-command", "local", "--lua-time-limit", "50"];
    let options = options.map(str::to_owned);
    let mut nodes = Vec::new();
    for _ in 0..servers(plan) {
        let member = NodeServers::start(plan, scale, &options, preload.as_ref()).await;
        nodes.push(member.map_err(|error| error.to_string())?);
    }
    Ok((nodes, why))
}

async fn observe(plan: Plan, scale: u32, tick: impl Fn(u64) + 'static) -> Result<Observed, String> {
    let (mut nodes, why) = start_nodes(&plan, scale).await?;
    let ports: Vec<u16> = nodes.iter_mut().map(|node| node.primary().port()).collect();
    let links = Proxies::open(&plan, scale, &ports).await;
    let links = Rc::new(links.map_err(|error| error.to_string())?);
    let names = (0..plan.workload.names.max(1))
        .map(lock_under_test::name)
        .collect();
    // Clients do not need to know the faults.
    let told = Plan {
        faults: Vec::new(),
        ..plan.clone()
    };
    let introduced = Rc::clone(&links);
    let introduction = move |process: crate::history::Process| WorkerSettings {
        process,
        plan: told.clone(),
        scale,
        ports: introduced.ports(process.client),
    };
    let reports = ReportServer::open(Records::new(clock::now(), names), introduction).await;
    let reports = Rc::new(reports.map_err(|error| error.to_string())?);
    let seats: std::io::Result<Vec<ClientSlot>> = (0..plan.clients)
        .map(|client| ClientSlot::start(client, reports.port()))
        .collect();
    let seats = seats.map_err(|error| error.to_string())?;
    let stage = Rc::new(Testbed {
        scale,
        reports: Rc::clone(&reports),
        links,
        nodes: nodes.into_iter().map(Mutex::new).collect(),
        ports: RefCell::new(ports),
        seats: seats.into_iter().map(Mutex::new).collect(),
        effects: RefCell::new(Effects::default()),
    });
    let all = usize::from(plan.clients);
    let is_first_held =
        async || (reports.present() == all && 0 < reports.records().holds()).then_some(());
    if clock::wait_for(BOUND, is_first_held).await.is_none() {
        let failures = format!("{:?}", reports.records().failures());
        return Err(format!(
            "clients did not start: {} of {all} are connected; {failures}",
            reports.present()
        ));
    }
    let began = clock::now();
    spawn_local(look_at_lengths(Rc::clone(&stage)));
    let conducting = spawn_local(Rc::clone(&stage).conduct(plan.faults.clone(), began));
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

/// Ends a run: restores all nodes and links, ends the clients, and looks for leftover claims.
async fn end(plan: &Plan, stage: &Testbed) -> Result<Observed, String> {
    stage.heal().await?;
    let mut complaints = Vec::new();
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
        seat.end().await;
    }
    look_for_leftovers(plan, stage).await;
    for node in &stage.nodes {
        node.lock().await.end().await;
    }
    let mut records = stage.reports.records();
    let (lost_updates, failures) = (records.lost_updates(), records.failures().clone());
    let history = records.end(clock::now());
    let effects = stage.effects.borrow().clone();
    Ok(Observed {
        faults: effects.struck,
        passed_over: effects.passed_over,
        lacking: effects.lacking,
        lost_updates,
        failures,
        complaints,
        ..Observed::of(&history)
    })
}

/// Checks that no claim is left one lease after the last client has ended, plus the margin by which nodes keep claims
/// longer.
async fn look_for_leftovers(plan: &Plan, stage: &Testbed) {
    let longer = |span: SimTime| span.as_duration() * stage.scale;
    let clocks = plan
        .faults
        .iter()
        .any(|fault| matches!(fault.kind(), Kind::NodeStep | Kind::NodeRate));
    // After a backward step of the clock, claims last longer.
    let slack = if clocks { 8 } else { 1 };
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
    let mut claims = Vec::new();
    let ports = stage.ports.borrow().clone();
    for (node, port) in (0u16..).zip(ports) {
        let Ok(mut connection) = Node::connect(port).await else {
            continue;
        };
        for name in 0..plan.workload.names.max(1) {
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
