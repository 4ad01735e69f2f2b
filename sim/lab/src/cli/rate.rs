//! The command `rate`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::recorded::Sharded;
use super::{CliError, Form, say, say_json};
use crate::study::law::{Law, Split};
use crate::study::rate::{Count, Deployment, Estimate, Found, Part, Search};
use crate::study::results::Shard;
use crate::study::runs::{Extent, Session};

/// Estimate how often the lock of a deployment breaks, with bounds: the expected number of violations in a horizon, from short
/// runs around the faults that its file says can happen. The same runs say how long faults keep clients from the lock.
///
/// The bounds hold with a probability of 95 %, and count everything that was not run as violated. The exit code is 0 if they are
/// as narrow as asked for, 4 if the time or the runs were over first, and 2 if the plan breaks without any fault.
#[derive(Debug, Args)]
pub(super) struct Rate {
    /// A deployment in TOML: `horizon`, `[plan]`, and a `[[process]]` for each way in which faults strike.
    file: PathBuf,
    /// The name of a lock of the file, if it has several.
    #[arg(long, value_name = "NAME")]
    lock: Option<String>,
    /// End when half of the distance of the bounds is at most this part of the rate.
    #[arg(long, default_value_t = ENOUGH, value_parser = relative_error)]
    relative_error: f64,
    /// End before more runs than this.
    #[arg(long, default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Count violations in this many long runs instead, in which faults strike by the law, to check the estimate. It needs
    /// rates at which violations are not rare.
    #[arg(long, value_name = "RUNS", conflicts_with_all = ["relative_error", "shard"])]
    count: Option<u64>,
    /// Run the seeds that the hash of a commit chooses, instead of those from 0, which development uses.
    #[arg(long, value_name = "HASH", value_parser = super::study::first_seed, default_value = "0")]
    commit: u64,
    #[command(flatten)]
    sharded: Sharded,
    #[command(flatten)]
    form: Form,
}

/// The relative error that is enough by default.
pub(super) const ENOUGH: f64 = 0.3;

/// The output with `--json`.
#[derive(Serialize)]
struct RatePrinted<'a> {
    command: &'static str,
    /// Whether the bounds are as narrow as asked for.
    is_complete: bool,
    horizon: String,
    property: String,
    #[serde(flatten)]
    estimate: &'a Estimate,
}

impl Rate {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let text = std::fs::read_to_string(&self.file);
        let text =
            text.map_err(|error| CliError::Other(format!("{}: {error}", self.file.display())))?;
        let deployment = Deployment::of_lock(&self.file, &text, self.lock.as_deref())?;
        let shard = self.sharded.shard();
        let split = Split {
            runs: self.runs,
            relative_error: self.relative_error,
        };
        let law = Law::Rate {
            deployment: text,
            lock: self.lock.clone(),
            first_seed: self.commit,
            split: (shard != Shard::WHOLE).then_some(split),
        };
        if let Some(runs) = self.count {
            return self.count(&deployment, &law, runs);
        }
        let search = Search {
            deployment: &deployment,
            jobs: self.sharded.recorded().jobs(),
            relative_error: self.relative_error,
            within: self.sharded.recorded().within(),
            most_runs: self.runs,
            first_seed: self.commit,
            shard,
        };
        let target = self
            .sharded
            .recorded()
            .target(|flags| search.manifest(&law, flags));
        let mut session = Session::open(target)?;
        match search.run(&mut session)? {
            Found::Estimate(estimate) => {
                let is_complete = estimate.is_within(self.relative_error);
                session.end(if is_complete {
                    Extent::Complete
                } else {
                    Extent::Partial
                })?;
                tell(&deployment, &estimate, is_complete, self.form)?;
                Ok(if is_complete { 0 } else { 4 })
            }
            Found::BreaksAlone(seed) => {
                session.end(Extent::Partial)?;
                Ok(tell_alone(&deployment, seed))
            }
            Found::Shard(extent) => {
                session.end(extent)?;
                say(&format!(
                    "shard {shard} has ended: `quorlock-sim merge` adds up all of them"
                ));
                Ok(if extent == Extent::Complete { 0 } else { 4 })
            }
        }
    }

    fn count(&self, deployment: &Deployment, law: &Law, runs: u64) -> Result<u8, CliError> {
        let count = Count {
            deployment,
            runs,
            jobs: self.sharded.recorded().jobs(),
        };
        let target = self
            .sharded
            .recorded()
            .target(|flags| count.manifest(law, flags));
        let mut session = Session::open(target)?;
        let counted = count.run(&mut session)?;
        session.end(Extent::Complete)?;
        if self.form.json {
            say_json(&counted)?;
        } else {
            say(&format!(
                "{} was violated {} times in {:.0} s: {} times in {} (95 %: {} to {})",
                deployment.property,
                counted.violations,
                counted.seconds,
                digits(counted.rate),
                horizon(deployment),
                digits(counted.lower),
                digits(counted.upper)
            ));
        }
        Ok(0)
    }
}

/// Prints what the results of shards, or of a whole search, show. Returns the exit code.
pub(super) fn tell_found(
    deployment: &Deployment,
    found: &Found,
    relative_error: f64,
    form: Form,
) -> Result<u8, CliError> {
    match found {
        Found::Estimate(estimate) => {
            let is_complete = estimate.is_within(relative_error);
            tell(deployment, estimate, is_complete, form)?;
            Ok(if is_complete { 0 } else { 4 })
        }
        Found::BreaksAlone(seed) => Ok(tell_alone(deployment, *seed)),
        Found::Shard(_) => Ok(0),
    }
}

fn tell_alone(deployment: &Deployment, seed: u64) -> u8 {
    super::complain(&format!(
        "the plan breaks {} without any fault, with seed {seed}: its rate has no bound",
        deployment.property
    ));
    2
}

fn tell(
    deployment: &Deployment,
    estimate: &Estimate,
    is_complete: bool,
    form: Form,
) -> Result<(), CliError> {
    if form.json {
        return say_json(&RatePrinted {
            command: "rate",
            is_complete,
            horizon: horizon(deployment),
            property: deployment.property.to_string(),
            estimate,
        });
    }
    say(&format!(
        "{} is violated {} times in {} (95 %: {} to {})",
        deployment.property,
        digits(estimate.rate),
        horizon(deployment),
        digits(estimate.lower),
        digits(estimate.upper)
    ));
    let error = match estimate.relative_error {
        Some(error) => format!("{:.0} %", 100.0 * error),
        None => "unknown, because no violation was found".to_owned(),
    };
    say(&format!("relative error {error}, {} runs", estimate.runs));
    let mut strata: Vec<&Part> = estimate.strata.iter().collect();
    strata.sort_by(|one, other| other.upper.total_cmp(&one.upper));
    print_strata(&strata);
    print_serving(deployment, estimate, &strata);
    if !is_complete {
        say("the time or the runs were over before the bounds were as narrow as asked for");
    }
    Ok(())
}

/// Returns the width of the column of cut sets.
fn wide(strata: &[&Part]) -> usize {
    let names = strata.iter().map(|part| part.cut_set.len());
    names.max().unwrap_or_default().max("cut set".len())
}

/// Prints how often each stratum breaks.
fn print_strata(strata: &[&Part]) {
    let wide = wide(strata);
    let line = |name: &str, [clusters, runs, broken, rate, least, most]: [&str; 6]| {
        say(&format!(
            "  {name:<wide$} {clusters:>10} {runs:>9} {broken:>8} {rate:>10} {least:>10} {most:>10}"
        ));
    };
    line(
        "cut set",
        ["clusters", "runs", "broken", "rate", "least", "most"],
    );
    for part in strata {
        let [runs, broken] = [part.runs, part.broken].map(|count| count.to_string());
        let bounds = [part.clusters, part.rate, part.lower, part.upper].map(digits);
        let [clusters, rate, least, most] = &bounds;
        line(&part.cut_set, [clusters, &runs, &broken, rate, least, most]);
    }
}

/// Prints how the lock serves its clients.
fn print_serving(deployment: &Deployment, estimate: &Estimate, strata: &[&Part]) {
    let lost = (1.0 - estimate.availability) * deployment.horizon.as_nanos() as f64 / 1e9;
    say(&format!(
        "faults keep clients from the lock for {} s in {} (availability {:.6} %)",
        digits(lost),
        horizon(deployment),
        100.0 * estimate.availability
    ));
    let wide = wide(strata);
    let line = |name: &str, [next, outage, longest, requests]: [&str; 4]| {
        say(&format!(
            "  {name:<wide$} {next:>11} {outage:>10} {longest:>10} {requests:>16}"
        ));
    };
    line(
        "cut set",
        ["next lock/s", "outage/s", "longest/s", "requests a hold"],
    );
    let quiet = estimate.quiet.iter().map(|serving| ("no fault", serving));
    let others = strata.iter().filter_map(|part| {
        let serving = part.serving.as_ref()?;
        Some((part.cut_set.as_str(), serving))
    });
    for (name, serving) in quiet.chain(others) {
        let requests = serving.requests_a_hold.map_or_else(String::new, digits);
        let [next, outage, longest] =
            [serving.next_lock, serving.outage, serving.longest].map(digits);
        line(name, [&next, &outage, &longest, &requests]);
    }
}

/// Formats a horizon in the largest unit that it is a whole number of.
fn horizon(deployment: &Deployment) -> String {
    let seconds = deployment.horizon.as_nanos() / 1_000_000_000;
    let units = [("y", 365 * 86_400), ("d", 86_400), ("h", 3_600)];
    let fit = units
        .iter()
        .find(|(_, unit)| 0 < seconds && seconds.is_multiple_of(*unit));
    match fit {
        Some((name, unit)) => format!("{}{name}", seconds / unit),
        None => deployment.horizon.to_string(),
    }
}

/// Formats a number with three digits.
fn digits(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size @ 0.001..1_000.0 => {
            let decimals = (2.0 - size.log10().floor()).clamp(0.0, 5.0) as usize;
            format!("{number:.decimals$}")
        }
        _ => format!("{number:.2e}"),
    }
}

fn relative_error(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(error) if 0.0 < error && f64::is_finite(error) => Ok(error),
        _ => Err(format!(
            "{text:?} is not a relative error: write for example 0.3"
        )),
    }
}
