//! The commands `explore` and `merge`.

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;

use super::{CliError, Drawn, Form, InLane, Out, Threads, say, seeds, shard};
use crate::study::campaign::{AfterFailure, Campaign, Shard};
use crate::study::part::Part;

/// Run many seeds on all cores.
#[derive(Debug, Args)]
pub(super) struct Explore {
    /// The range of seeds.
    #[arg(long, value_parser = seeds, default_value = "0..1000")]
    seeds: Range<u64>,
    #[command(flatten)]
    lane: InLane,
    #[command(flatten)]
    drawn: Drawn,
    #[command(flatten)]
    threads: Threads,
    /// Run only part I of N of the seeds, with I from 0.
    #[arg(long, value_parser = shard, default_value = "0/1")]
    shard: Shard,
    /// Continue with the other seeds after a failure.
    #[arg(long)]
    keep_going: bool,
    /// Print only the trace hash of each run, one line per seed, whatever its verdict. Builds that print the same
    /// hashes behave in the same way.
    #[arg(long, conflicts_with_all = ["keep_going", "json", "out"])]
    hashes: bool,
    /// Write the history of every run to this folder, for other checkers, with names such as redlock-seed-42.jsonl.
    #[arg(long, value_name = "DIR", conflicts_with = "hashes")]
    history: Option<PathBuf>,
    #[command(flatten)]
    out: Out,
    #[command(flatten)]
    form: Form,
}

impl Explore {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let generator = self.drawn.generator(self.lane);
        generator.check()?;
        quorlock_sim_plan::check(&generator.plan(self.seeds.start))?;
        let campaign = Campaign {
            generator,
            seeds: self.seeds,
            shard: self.shard,
            jobs: self.threads.count(),
            after_failure: if self.keep_going {
                AfterFailure::GoOn
            } else {
                AfterFailure::Stop
            },
            out: Some(self.out.out),
            histories: self.history,
        };
        if self.hashes {
            for (seed, trace) in campaign.traces() {
                say(&format!("{seed} {trace:016x}"));
            }
            return Ok(0);
        }
        tell(&Part::run(&campaign)?, self.form)
    }
}

/// Add up the results that the shards of a campaign printed with --json. Shards of different campaigns or builds, one that
/// is given twice, and a missing one are refused.
#[derive(Debug, Args)]
pub(super) struct Merge {
    /// The outputs of `explore --json`, one file per shard.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
}

impl Merge {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let mut parts = Vec::new();
        for file in &self.files {
            let wrong = |error: String| CliError::Other(format!("{}: {error}", file.display()));
            let text = std::fs::read_to_string(file).map_err(|e| wrong(e.to_string()))?;
            parts.push(Part::read(&text).map_err(|e| wrong(e.to_string()))?);
        }
        tell(&Part::merge(parts)?, self.form)
    }
}

fn tell(part: &Part, form: Form) -> Result<u8, CliError> {
    let summary = &part.summary;
    if form.json {
        say(&part.text());
        return Ok(summary.exit_code());
    }
    say(&format!(
        "{} runs: {} holds, {} commands, {} refusals",
        summary.runs, summary.holds, summary.commands, summary.refused
    ));
    for (kind, (drawn, effective)) in &summary.faults {
        say(&format!(
            "  {kind}: {drawn} faults, {effective} of them did something"
        ));
    }
    for (property, runs) in &summary.violated {
        say(&format!("{property} violated in {runs} runs"));
    }
    if let Some(why) = summary.vacuity() {
        say(&format!("vacuous: {why}"));
    }
    if summary.violated.is_empty() {
        say("every property holds");
    }
    if let Some(file) = summary.files.first() {
        say(&format!("quorlock-sim replay {}", file.display()));
    }
    Ok(summary.exit_code())
}
