//! The file of a deployment: a plan, and the processes by which faults strike it.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeValue};

use super::length::Length;
use super::process::{Each, Process, rate};
use crate::plan_file::document::{self, DocumentPart, Misfit};
use crate::plan_file::{self, Misreading, PlanFileError};
use crate::study::lock_changes::{items, with_changes};
use crate::study::results::Row;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::fault::Fault;
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;

/// A deployment: a plan, and the processes by which faults strike it.
#[derive(Clone, PartialEq, Debug)]
pub struct Deployment {
    /// The time whose violations are expected.
    pub horizon: SimTime,
    /// The property that counts.
    pub property: Property,
    /// The plan. Its own faults, such as the rates of clocks, are there in every run.
    pub plan: Plan,
    /// The processes.
    pub processes: Vec<Process>,
    /// The largest number of strikes of a cluster that is run.
    pub largest: usize,
    /// The longest fault that is run.
    pub longest: SimTime,
    /// Two strikes that are less than this apart are of one cluster.
    pub window: SimTime,
}

/// The keys of the file besides the plan and the processes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    horizon: SimTime,
    #[serde(default)]
    property: Option<Property>,
    #[serde(default)]
    largest: Option<usize>,
    #[serde(default)]
    longest: Option<SimTime>,
    #[serde(default)]
    window: Option<SimTime>,
}

/// The keys of a process that a fault does not have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessHeader {
    each: Spanned<Each>,
    rate: Spanned<String>,
    #[serde(default)]
    law: Option<Arrivals>,
    #[serde(default)]
    common: Option<Spanned<f64>>,
    /// Where the figures are from. It is only for readers.
    #[serde(default, rename = "source")]
    _source: Option<String>,
}

const PROCESS_KEYS: [&str; 5] = ["each", "rate", "law", "common", "source"];

/// The keys under which files write the length of a fault.
const LENGTHS: [&str; 3] = ["lasts", "restart_after", "rejoin_after"];

/// The law of the times at which faults strike.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Arrivals {
    /// The times between strikes are exponential: a Poisson process.
    Exponential,
}

/// A small deployment.
const SMALL: &str = "\
horizon = \"1y\"
[plan]
lock = \"single\"
nodes = { count = 1, persistence = \"memory\" }
[[process]]
kind = \"crash-node\"
each = \"node\"
rate = \"1/30d\"
restart_after = \"5s\"
";

/// The largest clusters that are run by default.
const LARGEST: usize = 3;

impl Deployment {
    /// Reads a deployment from a file.
    ///
    /// # Errors
    /// Returns [`PlanFileError`] with the file and the place in it.
    pub fn read(path: &Path) -> Result<Self, PlanFileError> {
        let text = std::fs::read_to_string(path).map_err(|error| PlanFileError::Io {
            path: path.to_owned(),
            error,
        })?;
        Deployment::parse(path, &text)
    }

    /// Reads a deployment from the text of a file.
    ///
    /// # Errors
    /// Returns the same errors as [`Deployment::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, PlanFileError> {
        Deployment::of_lock(path, text, None)
    }

    /// Reads a deployment from the text of a file with several locks, each a `[[lock]]` with a `name` and what is different for it.
    /// Without a name, the file has at most one.
    ///
    /// # Errors
    /// Returns the same errors as [`Deployment::read`], also for a name that the file lacks.
    pub fn of_lock(path: &Path, text: &str, lock: Option<&str>) -> Result<Self, PlanFileError> {
        let reading = Reading { path, text };
        let mut table = document::parse(text).map_err(|error| reading.wrong(error))?;
        if table.is_empty() {
            return Err(PlanFileError::Empty {
                path: path.to_owned(),
                example: SMALL,
            });
        }
        let parts = items(text, table.remove("lock")).map_err(|misfit| reading.misfit(misfit))?;
        if let Some(part) = chosen(text, parts, lock).map_err(|misfit| reading.misfit(misfit))? {
            table = with_changes(table, part).map_err(|misfit| reading.misfit(misfit))?;
        }
        Deployment::of(path, text, table)
    }

    /// Reads a deployment from a table of a file.
    pub(in crate::study) fn of(
        path: &Path,
        text: &str,
        mut table: DocumentPart<'_>,
    ) -> Result<Self, PlanFileError> {
        let reading = Reading { path, text };
        let plan = reading.plan(table.remove("plan"))?;
        let processes = table.remove("process");
        let parts = reading.processes(processes)?;
        let parts = parts.into_iter().map(|part| reading.process(part, &plan));
        let processes = parts.collect::<Result<Vec<Process>, _>>()?;
        let header: Header =
            document::read_whole(text, table).map_err(|error| reading.wrong(error))?;
        let longest = header.longest.unwrap_or_else(|| longest(&plan, &processes));
        let window = header
            .window
            .unwrap_or_else(|| influence(&plan).plus(longest));
        Ok(Deployment {
            horizon: header.horizon,
            property: header.property.unwrap_or(Property::Exclusion),
            largest: header.largest.unwrap_or(LARGEST).max(1),
            longest,
            window,
            plan,
            processes,
        })
    }

    /// Returns whether a run broke the property.
    pub(super) fn is_broken(&self, row: &Row) -> bool {
        row.violated.contains_key(&self.property)
    }

    /// Returns a strike of a process: its faults, one for each of the targets.
    pub(super) fn strike(
        &self,
        process: &Process,
        targets: &[u16],
        at: SimTime,
        lasts: SimTime,
    ) -> Vec<Fault> {
        let faults = targets.iter().map(|target| process.at(*target, at, lasts));
        let faults = faults.map(|mut fault| {
            fault.strike_all(self.plan.clients, self.plan.nodes.count);
            fault
        });
        faults.collect()
    }
}

/// Returns what is different for a lock. `None` is the only one.
fn chosen<'a>(
    text: &str,
    parts: Vec<DocumentPart<'a>>,
    lock: Option<&str>,
) -> Result<Option<DocumentPart<'a>>, Misfit> {
    let name = |part: &DocumentPart<'a>| {
        let name = part.get("name").and_then(|name| name.get_ref().as_str());
        name.unwrap_or_default().to_owned()
    };
    let first = parts.first().and_then(|part| part.get("name"));
    let first = first.map(Spanned::span).unwrap_or_default();
    let named: Vec<_> = parts.into_iter().map(|part| (name(&part), part)).collect();
    let is_chosen = |name: &str| lock.is_none_or(|lock| lock == name);
    let names: Vec<String> = named.iter().map(|(name, _)| format!("{name:?}")).collect();
    let mut found = named.into_iter().filter(|(name, _)| is_chosen(name));
    match (found.next(), found.next(), lock) {
        (Some((_, part)), None, _) => Ok(Some(part)),
        (None, _, None) => Ok(None),
        (None, _, Some(_)) if names.is_empty() => {
            let why = "there is no [[lock]]: leave out --lock";
            Err(Misfit::missing(text, why))
        }
        _ => {
            let why = format!("choose one of its locks with --lock: {}", names.join(", "));
            Err(Misfit::new(first, why))
        }
    }
}

/// Returns the longest length that every process can have, or a few leases if one has no bound.
fn longest(plan: &Plan, processes: &[Process]) -> SimTime {
    let few = SimTime::nanos(4 * plan.longest_lease().as_nanos());
    let bounds = processes
        .iter()
        .map(|process| process.length.bound().unwrap_or(few));
    bounds.max().unwrap_or_default()
}

/// Returns for how long a fault that has ended can have an effect: until the claims that it left have expired, by clocks that
/// step by the margin; until a restarted node has been watched for as long, twice, because a client may begin late; and until
/// a call and a pause between two tries are over.
fn influence(plan: &Plan) -> SimTime {
    let claim = plan.longest_lease().plus(plan.clock_margin());
    let waits = plan.network.call_timeout.plus(plan.workload.backoff_cap);
    claim.plus(claim).plus(claim).plus(waits).plus(waits)
}

#[derive(Clone, Copy)]
struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
}

impl<'a> Reading<'a> {
    fn wrong(self, error: Misreading) -> PlanFileError {
        PlanFileError::Syntax {
            path: self.path.to_owned(),
            error,
        }
    }

    fn misfit(self, misfit: Misfit) -> PlanFileError {
        self.wrong(misfit.in_text(self.text))
    }

    /// Reads and checks the plan.
    fn plan(self, part: Option<Spanned<DeValue<'a>>>) -> Result<Plan, PlanFileError> {
        let why = "there is no table [plan], which may be empty: add it below";
        let part = part.ok_or_else(|| self.misfit(Misfit::missing(self.text, why)))?;
        let span = part.span();
        let DeValue::Table(part) = part.into_inner() else {
            return Err(self.misfit(Misfit::new(span, "write a table, [plan]")));
        };
        plan_file::checked(self.path, self.text, Spanned::new(span, part))
    }

    /// Returns the tables of the processes. There is at least one.
    fn processes(self, list: Option<Spanned<DeValue<'a>>>) -> Result<DeArray<'a>, PlanFileError> {
        let Some(list) = list else {
            let why = "there is no [[process]], so no fault ever strikes: add at least one below, with kind, each and rate";
            return Err(self.misfit(Misfit::missing(self.text, why)));
        };
        let span = list.span();
        match list.into_inner() {
            DeValue::Array(parts) if !parts.is_empty() => Ok(parts),
            _ => Err(self.misfit(Misfit::new(span, "write [[process]] for each process"))),
        }
    }

    fn process(self, part: Spanned<DeValue<'a>>, plan: &Plan) -> Result<Process, PlanFileError> {
        let span = part.span();
        let DeValue::Table(mut part) = part.into_inner() else {
            return Err(self.misfit(Misfit::new(span, "a process is a table: write [[process]]")));
        };
        let mut own = DocumentPart::new();
        for key in PROCESS_KEYS {
            own.extend(part.remove_entry(key));
        }
        let length = self.length(&mut part)?;
        let own: ProcessHeader = document::read(self.text, Spanned::new(span.clone(), own))
            .map_err(|error| self.wrong(error))?;
        let _: Option<Arrivals> = own.law;
        let per_second = rate(own.rate.get_ref())
            .map_err(|why| self.misfit(Misfit::new(own.rate.span(), format!("rate: {why}"))))?;
        let common = own.common.as_ref().map_or(0.0, |common| *common.get_ref());
        if !(0.0..=1.0).contains(&common) {
            let span = own.common.map_or(span, |common| common.span());
            return Err(self.misfit(Misfit::new(span, "common: a share is between 0 and 1")));
        }
        let kind = part.get("kind").map(Spanned::span);
        let fault = self.fault(&Spanned::new(span.clone(), part), &own.each)?;
        let process = Process {
            name: fault.kind().name().to_owned(),
            fault,
            each: *own.each.get_ref(),
            per_second,
            common,
            length,
        };
        self.check(kind.unwrap_or(span), &process, plan)?;
        Ok(process)
    }

    /// Takes the length of a fault from its table, and leaves one that is a span.
    fn length(self, part: &mut DocumentPart<'a>) -> Result<Length, PlanFileError> {
        for key in LENGTHS {
            let Some(value) = part.get_mut(key) else {
                continue;
            };
            let span = value.span();
            let DeValue::String(text) = value.get_mut() else {
                continue;
            };
            let length: Length = text
                .parse()
                .map_err(|error| self.misfit(Misfit::new(span, format!("{key}: {error}"))))?;
            *text = "1ms".into();
            return Ok(length);
        }
        Ok(Length::Fixed(SimTime::ZERO))
    }

    /// Reads a fault, whose time and target follow from the process.
    fn fault(
        self,
        part: &Spanned<DocumentPart<'a>>,
        each: &Spanned<Each>,
    ) -> Result<Fault, PlanFileError> {
        let own = each.get_ref();
        // Faults of links and of several nodes have lists of targets, which may be left out.
        let tried = self.fault_with(part, own.key()).or_else(|one| {
            let without = self.fault_with(part, "");
            // An error of the target that was added is none of the file.
            without.map_err(|other| {
                if one.why.contains(own.key()) {
                    other
                } else {
                    one
                }
            })
        });
        match tried {
            Ok(fault) if own.fits(&fault.what) => Ok(fault),
            Err(error) if self.fault_with(part, own.other().key()).is_err() => {
                Err(self.wrong(error))
            }
            _ => {
                let why = format!("each: this fault does not strike a {}", own.key());
                Err(self.misfit(Misfit::new(each.span(), why)))
            }
        }
    }

    /// Reads a fault at the beginning of a run, with the number of its target under this key.
    fn fault_with(self, part: &Spanned<DocumentPart<'a>>, key: &str) -> Result<Fault, Misreading> {
        let added = match key {
            "" => "at = \"0s\"",
            "node" => "at = \"0s\"\nnode = 0",
            _ => "at = \"0s\"\nclient = 0",
        };
        let place = part.span().start..part.span().start;
        let mut part = part.clone();
        for (key, value) in document::parse(added)? {
            let value = Spanned::new(place.clone(), value.into_inner());
            let key = Spanned::new(place.clone(), key.into_inner());
            part.get_mut().insert(key, value);
        }
        document::read(self.text, part)
    }

    /// Checks that the plan can be run with the fault.
    fn check(
        self,
        span: std::ops::Range<usize>,
        process: &Process,
        plan: &Plan,
    ) -> Result<(), PlanFileError> {
        let short = SimTime::millis(1);
        let lasts = process
            .length
            .bound()
            .map_or(short, |bound| bound.min(short));
        let mut fault = process.at(0, SimTime::ZERO, lasts);
        fault.strike_all(plan.clients, plan.nodes.count);
        let with = Plan {
            faults: vec![fault],
            ..plan.clone()
        };
        quorlock_sim_plan::check(&with).map_err(|error| {
            let why = format!("process {:?}: {error}", process.name);
            self.misfit(Misfit::new(span, why))
        })
    }
}
