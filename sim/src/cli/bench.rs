//! `bench`.

use std::rc::Rc;
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use super::{Form, Trouble, say, say_json};
use crate::plan::Plan;
use crate::simulation::run;
use crate::span::Span;
use crate::swarm::{Faults, Swarm};

/// How fast this machine is, on one core.
#[derive(Debug, Args)]
pub(super) struct Bench {
    /// For how many seconds each part is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    #[command(flatten)]
    form: Form,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Figures {
    /// On the reference workload, without faults, with every checker.
    commands_per_second: u64,
    /// Seconds of virtual time, likewise.
    simulated_seconds_per_second: u64,
    /// Standard runs with all faults, RedLock.
    runs_per_second: u64,
}

impl Bench {
    pub(super) fn run(self) -> Result<u8, Trouble> {
        let (runs, figures) = self.reference();
        let all = self.all_faults();
        let figures = Figures {
            runs_per_second: all,
            ..figures
        };
        if self.form.json {
            say_json(&figures)?;
        } else {
            say(&format!(
                "reference workload ({runs} runs of 10 s, no faults, checkers on):"
            ));
            say(&format!(
                "  {} node commands per second",
                figures.commands_per_second
            ));
            say(&format!(
                "  {} simulated seconds per second",
                figures.simulated_seconds_per_second
            ));
            say("standard runs (2 s, all faults):");
            say(&format!("  {} runs per second", figures.runs_per_second));
        }
        Ok(0)
    }

    fn reference(&self) -> (u64, Figures) {
        let (mut commands, mut simulated) = (0, 0.0);
        let (runs, took) = self.measure(|seed| {
            let plan = Plan {
                seed,
                duration: Span::secs(10),
                ..Plan::default()
            };
            let ended = run(&Rc::new(plan));
            commands += ended.counters.commands;
            simulated += ended.lasted.as_duration().as_secs_f64();
        });
        let figures = Figures {
            commands_per_second: per_second(commands as f64, took),
            simulated_seconds_per_second: per_second(simulated, took),
            runs_per_second: 0,
        };
        (runs, figures)
    }

    fn all_faults(&self) -> u64 {
        let swarm = Swarm {
            faults: Faults::All,
            ..Swarm::default()
        };
        let (runs, took) = self.measure(|seed| {
            let ended = run(&Rc::new(swarm.plan(seed)));
            drop(ended);
        });
        per_second(runs as f64, took)
    }

    /// Does something seed after seed until the time is over: how often, and how many seconds it took.
    #[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
    fn measure(&self, mut once: impl FnMut(u64)) -> (u64, f64) {
        once(0);
        let began = Instant::now();
        let mut seed = 0;
        while began.elapsed().as_secs() < self.seconds {
            seed += 1;
            once(seed);
        }
        (seed, began.elapsed().as_secs_f64())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate that is printed"
)]
fn per_second(amount: f64, seconds: f64) -> u64 {
    (amount / seconds) as u64
}
