//! The command `explore`.

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;

use super::recorded::Sharded;
use super::twice::Twice;
use super::{CliError, Drawn, Form, InLane, Out, Printed, PrintedCell, say, say_json, seeds};
use crate::study::campaign::{AfterFailure, Campaign, Files, Summary};
use crate::study::results::{Row, Tally};
use crate::study::runs::Extent;

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
    sharded: Sharded,
    /// Continue with the other seeds after a failure. Without it, no seed behind the first failure counts.
    #[arg(long)]
    keep_going: bool,
    /// Print only the trace hash of each run, one line per seed, whatever its verdict. Builds that print the same
    /// hashes behave in the same way.
    #[arg(long, conflicts_with_all = ["keep_going", "json", "out", "results"])]
    hashes: bool,
    /// Write the history of every run to this folder, for other checkers, with names such as redlock-seed-42.jsonl.
    #[arg(long, value_name = "DIR", conflicts_with = "hashes")]
    history: Option<PathBuf>,
    #[command(flatten)]
    twice: Twice,
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
        let goes_on = self.keep_going || self.hashes;
        let campaign = Campaign {
            generator,
            seeds: self.seeds.clone(),
            after_failure: if goes_on {
                AfterFailure::GoOn
            } else {
                AfterFailure::Stop
            },
        };
        if self.hashes {
            return self.print_hashes(&campaign);
        }
        let mut files = Files::new(self.out.out, self.history);
        if self.sharded.is_resumed() {
            files.resume();
        }
        let mut tally = Tally::default();
        let with_run = |run: &_| {
            self.twice.check(run)?;
            Ok(files.write(run)?)
        };
        let mut take = |_, row| tally.add(&row);
        let cells = vec![campaign.cell()];
        let extent = self
            .sharded
            .run(cells, &campaign.law(), &with_run, &mut take)?;
        let summary = Summary::of(tally);
        tell(&summary, &campaign.cell().name, extent, self.form)?;
        let first = summary
            .first()
            .and_then(|(seed, _)| files.of(&campaign, seed));
        if let Some(file) = first.filter(|_| !self.form.json) {
            say(&format!("quorlock-sim replay {}", file.display()));
        }
        Ok(summary.exit_code())
    }

    fn print_hashes(&self, campaign: &Campaign) -> Result<u8, CliError> {
        let mut traces = Vec::new();
        let mut take = |_, row: Row| traces.push((row.seed, row.trace));
        let cells = vec![campaign.cell()];
        self.sharded.run(
            cells,
            &campaign.law(),
            &|run| Ok(self.twice.check(run)?),
            &mut take,
        )?;
        for (seed, trace) in traces {
            say(&format!("{seed} {trace}"));
        }
        Ok(0)
    }
}

/// Prints what the runs of a campaign show.
pub(super) fn tell(
    summary: &Summary,
    cell: &str,
    extent: Extent,
    form: Form,
) -> Result<(), CliError> {
    if form.json {
        return say_json(&Printed {
            command: "explore",
            is_complete: extent == Extent::Complete,
            cells: vec![PrintedCell {
                cell: cell.to_owned(),
                result: summary,
            }],
        });
    }
    let tally = &summary.tally;
    say(&format!(
        "{} runs: {} holds, {} commands, {} refusals",
        tally.runs, tally.holds, tally.commands, tally.refused
    ));
    for (kind, count) in &tally.faults {
        say(&format!(
            "  {kind}: {} faults, {} of them did something",
            count.drawn, count.effective
        ));
    }
    for (property, count) in &tally.failed {
        say(&format!("{property} violated in {} runs", count.runs));
    }
    if let Some(why) = &summary.vacuity {
        say(&format!("vacuous: {why}"));
    }
    if tally.failed.is_empty() {
        say("every property holds");
    }
    if extent == Extent::Partial {
        say("the time was over before all runs had ended");
    }
    Ok(())
}
