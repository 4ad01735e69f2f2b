//! The command `bench`.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use clap::Args;
use serde::Serialize;

use super::stopwatch::{Rate, Took, Watch};
use super::{CliError, Form, say, say_json, seeds};
use crate::simulation::run;
use crate::study::campaign::{AfterFailure, Campaign};
use crate::study::runs::Runs;
use quorlock_sim_plan::generator::{FaultChoice, PlanGenerator};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{AssertedRestarts, Lane, Plan, Remedies};

/// Measure how fast this machine runs simulations, on one core and on all cores.
#[derive(Debug, Args)]
pub(super) struct Bench {
    /// How long to measure each part, in seconds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Run a campaign over these seeds, without output: one of the processes that are measured.
    #[arg(long, hide = true, value_parser = seeds)]
    part: Option<Range<u64>>,
    #[command(flatten)]
    form: Form,
}

/// The results of the measurement.
#[derive(Debug, Serialize)]
struct Figures {
    reference: Reference,
    with_remedies: Reference,
    /// The reference workload in the lane turmoil.
    turmoil: Reference,
    standard: Standard,
    scaling: Scaling,
}

/// The reference workload on one core, without faults and with every checker. It runs either with the published
/// algorithm (no trust in nodes, no clock margin) or with the product's remedies beyond it.
#[derive(Debug, Serialize)]
struct Reference {
    runs: u64,
    commands: Rate,
    simulated_seconds: Rate,
}

/// Standard runs of RedLock with all faults, on one core.
#[derive(Debug, Serialize)]
struct Standard {
    runs: Rate,
}

/// Standard runs as a campaign on one core, as a campaign on all cores, and as one process per core. The three are
/// measured in turn.
#[derive(Debug, Serialize)]
struct Scaling {
    cores: usize,
    on_one: Rate,
    on_all: Rate,
    /// The rate of separate processes, for comparison. They share nothing but the machine. They take time to start,
    /// and they do not share the remaining work at the end.
    as_processes: Rate,
    /// The rate of all cores, as a fraction of the rate of one core times the number of cores.
    of_linear: f64,
    /// The rate of a campaign on all cores, as a fraction of the rate of the processes.
    of_processes: f64,
    /// Runs per second of processor time on all cores, as a fraction of those on one core. The load of other programs
    /// does not lower it.
    of_linear_by_cpu: Option<f64>,
}

const NO_REMEDIES: Remedies = Remedies {
    watch_claims: false,
    trust: false,
    restarts: AssertedRestarts::MayForget,
    margin: Some(SimTime::ZERO),
};

/// The number of runs that each core does per turn.
const TURN: u64 = 256;

impl Bench {
    pub(super) fn run(self) -> Result<u8, CliError> {
        if let Some(seeds) = self.part {
            campaign(1, seeds);
            return Ok(0);
        }
        let figures = Figures {
            reference: self.reference(Lane::Fast, NO_REMEDIES),
            with_remedies: self.reference(Lane::Fast, Remedies::default()),
            turmoil: self.reference(Lane::Turmoil, NO_REMEDIES),
            standard: self.standard(),
            scaling: self.scaling()?,
        };
        if self.form.json {
            say_json(&figures)?;
        } else {
            figures.tell();
        }
        Ok(0)
    }

    fn reference(&self, lane: Lane, remedies: Remedies) -> Reference {
        let (mut commands, mut simulated) = (0, 0.0);
        let (runs, took) = self.measure(|seed| {
            let plan = Plan {
                seed,
                lane,
                duration: SimTime::secs(10),
                remedies,
                ..Plan::default()
            };
            let ended = run(&Rc::new(plan));
            commands += ended.counters.commands;
            simulated += ended.lasted.as_duration().as_secs_f64();
        });
        Reference {
            runs,
            commands: took.rate(commands as f64),
            simulated_seconds: took.rate(simulated),
        }
    }

    fn standard(&self) -> Standard {
        let generator = generator();
        let (runs, took) = self.measure(|seed| {
            let ended = run(&Rc::new(generator.plan(seed)));
            drop(ended);
        });
        Standard {
            runs: took.rate(runs as f64),
        }
    }

    /// Measures in turns, so that changes in the machine's load affect all variants equally.
    fn scaling(&self) -> Result<Scaling, CliError> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let turn = TURN * cores as u64;
        let (mut on_one, mut on_all) = (Took::default(), Took::default());
        let mut as_processes = Took::default();
        let mut runs = 0u64;
        let watch = Watch::start();
        while watch.read().wall < self.seconds as f64 {
            let seeds = runs..runs + turn;
            on_one += campaign(1, seeds.clone());
            on_all += campaign(cores, seeds.clone());
            as_processes += processes(seeds)?;
            runs += turn;
        }
        let (on_one, on_all) = (on_one.rate(runs as f64), on_all.rate(runs as f64));
        let as_processes = as_processes.rate(runs as f64);
        let by_cpu = on_all.per_cpu_second.zip(on_one.per_cpu_second);
        Ok(Scaling {
            cores,
            of_linear: on_all.per_second / (cores as f64 * on_one.per_second),
            of_processes: on_all.per_second / as_processes.per_second,
            of_linear_by_cpu: by_cpu.map(|(all, one)| all / one),
            on_one,
            on_all,
            as_processes,
        })
    }

    /// Calls `once` with seed after seed until the time is over. Returns the number of calls and their duration. The
    /// first call is not counted.
    fn measure(&self, mut once: impl FnMut(u64)) -> (u64, Took) {
        once(0);
        let watch = Watch::start();
        let mut runs = 0;
        loop {
            runs += 1;
            once(runs);
            let took = watch.read();
            if self.seconds as f64 <= took.wall {
                return (runs, took);
            }
        }
    }
}

fn generator() -> PlanGenerator {
    PlanGenerator {
        faults: FaultChoice::All,
        ..PlanGenerator::default()
    }
}

fn campaign(jobs: usize, seeds: Range<u64>) -> Took {
    let campaign = Campaign {
        generator: generator(),
        seeds,
        after_failure: AfterFailure::GoOn,
    };
    let watch = Watch::start();
    Runs::all(vec![campaign.cell()], jobs).run(&mut |_, row| drop(row));
    watch.read()
}

/// Runs these seeds at the same time in separate processes, each of which runs a campaign on one core for one turn.
fn processes(seeds: Range<u64>) -> Result<Took, CliError> {
    let failed = |why: &dyn std::fmt::Display| {
        CliError::Other(format!("a process for one core was not measured: {why}"))
    };
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let part = |begin: u64| {
        Command::new(&program)
            .args(["bench", "--part", &format!("{begin}..{}", begin + TURN)])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    };
    let watch = Watch::start();
    let parts: Vec<_> = seeds.step_by(TURN as usize).map(part).collect();
    for part in parts {
        let ended = part.and_then(|mut part: Child| part.wait());
        let ended = ended.map_err(|error| failed(&error))?;
        if !ended.success() {
            return Err(failed(&ended));
        }
    }
    Ok(Took {
        wall: watch.read().wall,
        ..Took::default()
    })
}

impl Reference {
    fn tell(&self) {
        say(&format!("  node commands: {}", self.commands));
        say(&format!("  simulated seconds: {}", self.simulated_seconds));
    }
}

impl Figures {
    fn tell(&self) {
        let Figures {
            reference,
            with_remedies,
            turmoil,
            standard,
            scaling,
        } = self;
        say("reference workload (runs of 10 s, no faults, checkers on, one core):");
        reference.tell();
        say("the same with trust in nodes and a clock margin:");
        with_remedies.tell();
        say("the reference workload in the lane turmoil:");
        turmoil.tell();
        say("standard runs (2 s, all faults, one core):");
        say(&format!("  runs: {}", standard.runs));
        say("the same as a campaign:");
        say(&format!("  runs on one core: {}", scaling.on_one));
        say(&format!(
            "  runs on {} cores: {}",
            scaling.cores, scaling.on_all
        ));
        say(&format!(
            "  runs in {} processes: {}",
            scaling.cores, scaling.as_processes
        ));
        let by_cpu = scaling.of_linear_by_cpu;
        let by_cpu =
            by_cpu.map_or_else(String::new, |part| format!(", {part:.2} by processor time"));
        say(&format!(
            "  all cores: {:.2} of linear{by_cpu}, {:.2} of what processes do that share nothing",
            scaling.of_linear, scaling.of_processes
        ));
    }
}
