//! Compares Quorlock with other libraries, on the same machine. The libraries take turns.
//!
//! Each measurement starts its own servers, and one program or several for one library. The libraries take turns in
//! random order. Quorlock takes part twice: the difference between its two figures is the noise of the machine.

mod bar;
mod driver;
mod peer;
mod report;
mod servers;
mod work;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use rand::seq::SliceRandom as _;

use crate::bar::Results;
use crate::peer::Peer;
use crate::work::{Amount, Figures, Kind, Work};

type Failure = Box<dyn std::error::Error>;

/// Measure Quorlock beside rslock, rlock, redsync, Redisson and node-redlock on real servers, in turn.
#[derive(Debug, Parser)]
#[command(
    name = "tests/peers/run.sh",
    after_help = "Examples:
  tests/peers/run.sh                                   all measurements, in about half an hour
  tests/peers/run.sh --quick callers                   those with \"callers\" in their names, in minutes
  tests/peers/run.sh --peer quorlock --peer control --peer rslock callers

Exit codes: 0 measured, whether or not targets are met; 1 not measured; 2 wrong arguments."
)]
struct Arguments {
    /// Measure only the work whose name contains one of these words [default: all]
    work: Vec<String>,
    /// Take fewer and shorter turns; the figures are noisier
    #[arg(long)]
    quick: bool,
    /// Measure only this library; may be given several times [default: all]
    #[arg(long = "peer")]
    peers: Vec<Peer>,
    /// List the work without measuring it
    #[arg(long)]
    list: bool,
    /// Print one line of JSON for each target and each figure
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.list {
        for work in work::ALL {
            println!("{:14} {}", work.name, work.about);
        }
        return Ok(());
    }
    let is_wanted = |work: &Work| {
        let mut words = arguments.work.iter();
        arguments.work.is_empty() || words.any(|word| work.name.contains(word.as_str()))
    };
    let chosen: Vec<_> = work::ALL.into_iter().filter(is_wanted).collect();
    if chosen.is_empty() {
        return Err("no work has one of these words in its name: see --list".into());
    }
    let results = measure(&chosen, arguments)?;
    report::print(&results, arguments.json);
    Ok(())
}

fn measure(chosen: &[Work], arguments: &Arguments) -> Result<Results, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let mut results = Results::new();
    let bar = ProgressBar::new(0);
    bar.set_style(ProgressStyle::with_template(
        "{bar:30} {pos}/{len} {msg} {elapsed}",
    )?);
    for work in chosen {
        let turns = turns(*work, arguments.quick);
        let mut peers: Vec<_> = Peer::ALL
            .into_iter()
            .filter(|peer| arguments.peers.is_empty() || arguments.peers.contains(peer))
            .filter(|peer| work.works_on(*peer))
            .collect();
        bar.inc_length(turns * peers.len() as u64);
        let mut taken: BTreeMap<Peer, Vec<Figures>> = BTreeMap::new();
        for _ in 0..turns {
            let mut order = peers.clone();
            order.shuffle(&mut rand::rng());
            for peer in order {
                bar.set_message(format!("{}, {peer}", work.name));
                bar.inc(1);
                match once(*work, peer, arguments.quick, &folder) {
                    Ok(figures) => taken.entry(peer).or_default().push(figures),
                    // The other libraries are still measured.
                    Err(error) => {
                        bar.suspend(|| eprintln!("left out of {}: {error}", work.name));
                        peers.retain(|other| *other != peer);
                        taken.remove(&peer);
                    }
                }
            }
        }
        let medians = taken
            .into_iter()
            .map(|(peer, turns)| (peer, medians(&turns)));
        results.insert(work.name, medians.collect());
        bar.suspend(|| eprintln!("measured: {}", work.name));
    }
    bar.finish_and_clear();
    Ok(results)
}

fn turns(work: Work, is_quick: bool) -> u64 {
    match (work.kind, is_quick) {
        (Kind::Keep, _) | (Kind::Holds, true) => 1,
        (Kind::Holds, false) => 3,
        (Kind::Pairs | Kind::Acquire, true) => 3,
        (Kind::Pairs | Kind::Acquire, false) => 7,
    }
}

fn once(work: Work, peer: Peer, is_quick: bool, folder: &Path) -> Result<Figures, Failure> {
    let seconds = match (work.kind, is_quick) {
        (Kind::Holds, true) => 5,
        (Kind::Holds, false) => 10,
        (_, true) => 1,
        (_, false) => 2,
    };
    let (locks, kept) = if is_quick { (2_000, 20) } else { (10_000, 60) };
    let amount = Amount {
        millis: seconds * 1000,
        locks,
        kept: Duration::from_secs(kept),
    };
    work.measure(peer, amount, folder)
}

/// Returns the median of each figure over the turns.
fn medians(turns: &[Figures]) -> Figures {
    let mut all: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for figures in turns {
        for (name, value) in figures {
            all.entry(name).or_default().push(*value);
        }
    }
    let median = |(name, mut values): (_, Vec<f64>)| (name, work::quantile(&mut values, 0.5));
    all.into_iter().map(median).collect()
}
