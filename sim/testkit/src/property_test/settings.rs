//! The settings of a test, and the plans that follow from them.

use std::path::PathBuf;

use super::CodeLocation;
use quorlock_sim_plan::PlanError;
use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_plan::fault::{ClientFault, Fault};
use quorlock_sim_plan::generator::{FaultChoice, PlanGenerator};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{LockKind, Outage, Plan, WorkloadKind};

/// The environment variable that makes each run of each test twice, if it is `1`.
const CHECK_DETERMINISM: &str = "QUORLOCK_SIM_CHECK_DETERMINISM";

/// The settings of a test, without its clients and its world.
pub(super) struct Settings {
    pub(super) site: CodeLocation,
    pub(super) seeds: u64,
    pub(super) clients: u16,
    pub(super) nodes: u16,
    pub(super) faults: FaultChoice,
    pub(super) outages: Outages,
    pub(super) duration: Option<SimTime>,
    pub(super) expected: Vec<String>,
    pub(super) failures: PathBuf,
    pub(super) most_runs: u32,
    /// Whether each run is made twice.
    pub(super) check_determinism: bool,
}

/// The settings on which the plan of a seed depends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Drawn {
    pub(super) clients: u16,
    pub(super) nodes: u16,
    pub(super) faults: String,
    pub(super) outages: Outages,
    pub(super) duration: Option<SimTime>,
}

impl Settings {
    /// Returns the defaults for a test at a location in the source.
    pub(super) fn of(site: CodeLocation) -> Self {
        Settings {
            site,
            seeds: 100,
            clients: 3,
            nodes: 1,
            faults: FaultChoice::Inside,
            outages: Outages::Drawn,
            duration: None,
            expected: Vec::new(),
            failures: PathBuf::from("failures"),
            most_runs: 5_000,
            check_determinism: std::env::var_os(CHECK_DETERMINISM).is_some_and(|set| set == "1"),
        }
    }

    pub(super) fn generator(&self) -> PlanGenerator {
        PlanGenerator {
            faults: self.faults.clone(),
            lock: match self.nodes {
                1 => LockKind::Single,
                _ => LockKind::Redlock,
            },
            nodes: Some(self.nodes),
            clients: Some(self.clients),
            workload: Some(WorkloadKind::MutualExclusion),
            duration: self.duration,
            ..PlanGenerator::default()
        }
    }

    /// Returns the settings on which plans depend, in addition to the seed.
    pub(super) fn drawn(&self) -> Drawn {
        Drawn {
            clients: self.clients,
            nodes: self.nodes,
            faults: self.faults.to_string(),
            outages: self.outages,
            duration: self.duration,
        }
    }

    /// Returns the same settings, but with these values for drawing plans.
    pub(super) fn drawing(&self, drawn: &Drawn) -> Result<Settings, String> {
        let faults: Result<FaultChoice, _> = drawn.faults.parse();
        Ok(Settings {
            site: self.site.clone(),
            clients: drawn.clients,
            nodes: drawn.nodes,
            faults: faults.map_err(|error| error.to_string())?,
            outages: drawn.outages,
            duration: drawn.duration,
            ..Settings::of(self.site.clone())
        })
    }

    /// Returns the plan for a seed. The settings must have been checked.
    pub(super) fn plan(&self, seed: u64) -> Plan {
        match self.try_plan(seed) {
            Ok(plan) => plan,
            Err(error) => panic!("{}: {error}", self.site.test()),
        }
    }

    /// Returns the plan for a seed. The plan demands only the properties that the test states.
    pub(super) fn try_plan(&self, seed: u64) -> Result<Plan, PlanError> {
        let mut plan = self.generator().plan(seed);
        if self.outages == Outages::Drawn {
            plan.outages = Outage::draw(seed, plan.duration);
        }
        if matches!(self.faults, FaultChoice::Inside | FaultChoice::All) {
            plan.faults.extend(stops(&plan));
            plan.faults.sort_by_key(Fault::begins);
        }
        plan.idle_within = None;
        plan.free_within = None;
        plan.holds_last = false;
        plan.workload.max_hold = None;
        let is_of_locks =
            |property: &Property| !property.is_stated() && *property != Property::Termination;
        plan.not_demanded = Property::ALL.into_iter().filter(is_of_locks).collect();
        quorlock_sim_plan::check(&plan)?;
        Ok(plan)
    }
}

/// Whether the resources of a test have outages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outages {
    Drawn,
    None,
}

impl Outages {
    /// Returns the value of the attribute's argument.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Outages::Drawn => "drawn",
            Outages::None => "none",
        }
    }

    /// Returns the value with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let both = [Outages::Drawn, Outages::None];
        both.into_iter().find(|outages| outages.name() == name)
    }
}

/// Draws stops of clients in the middle of steps, in half of all runs.
///
/// These stops reveal code that checks that it holds its lock and then acts on that. If the code is stopped in between
/// for slightly longer than the lease, its action collides with what the next holder has begun.
fn stops(plan: &Plan) -> Vec<Fault> {
    let mut draw = Draw::new(plan.seed, Purpose::Outages, 1);
    if draw.chance(500_000) {
        return Vec::new();
    }
    let lease = plan.workload.lease.as_nanos();
    let end = plan.duration.as_nanos() / 4 * 3;
    let max = u64::from(plan.clients.saturating_sub(1));
    let stops = (0..draw.between(4, 16)).map(|_| {
        let at = SimTime::nanos(draw.between(0, end));
        let client = u16::try_from(draw.between(0, max)).unwrap_or(0);
        let nth = u32::try_from(draw.between(1, 24)).unwrap_or(1);
        let lasts = SimTime::nanos(lease + draw.between(0, lease / 4));
        let lasts = lasts.min(plan.duration.minus(at));
        Fault::of_client(at, client, ClientFault::StopInside { nth }).lasting(lasts)
    });
    stops.collect()
}
