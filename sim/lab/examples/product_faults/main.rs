//! Plants one-line faults in the product, one at a time, and reports what notices each.
//!
//! The list is `sim/lab/product-faults.toml`. All faults are planted in one worktree, each enabled by a number that the
//! program reads when it starts, so that one build serves all. Each fault runs against the campaigns, the catalog of
//! scenarios and the tests, until one of them fails.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what it finds is what it is run for"
)]

mod judges;
mod list;
mod splice;
mod tree;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use judges::{Effort, Noticed, lane_of, questions};
use list::Fault;
use quorlock_sim_lab::study::results::Shard;
use quorlock_sim_plan::Lane;
use tree::{Planted, Tree};

/// Plant one-line faults in the product, one at a time, and report what notices each.
///
/// The list is sim/lab/product-faults.toml. Faults are planted in the commit that is checked out.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  cargo run --release -p quorlock-sim-lab --example product_faults
  cargo run --release -p quorlock-sim-lab --example product_faults -- --record
  cargo run --release -p quorlock-sim-lab --example product_faults -- --shard 0/8 --resume
  cargo run --release -p quorlock-sim-lab --example product_faults -- no-drift silent-release --keep-going")]
struct Arguments {
    /// Plant only the faults with these names; by default, all
    names: Vec<String>,
    /// List the faults without planting them
    #[arg(long)]
    list: bool,
    /// The number of seeds of each campaign; of those over sockets a tenth of it
    #[arg(long, default_value = "20000")]
    seeds: u64,
    /// The number of threads of campaigns; by default, one per core
    #[arg(long)]
    jobs: Option<usize>,
    /// Continue after the first judge that notices a fault, and report all
    #[arg(long)]
    keep_going: bool,
    /// Plant nothing, to check that no judge notices anything
    #[arg(long, conflicts_with = "names")]
    control: bool,
    /// Run only campaigns
    #[arg(long)]
    campaigns_only: bool,
    /// Write what noticed each fault to the list, and to the page about campaigns
    #[arg(long, conflicts_with = "control")]
    record: bool,
    /// Continue the rows of a command that was interrupted, with the same flags: what has ended is not run again
    #[arg(long)]
    resume: bool,
    /// Plant only part I of N of the faults, with I from 0, for example on several machines
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "0/1")]
    shard: Shard,
    /// The folder for the build, a line per fault (results.tsv), and the rows of the campaigns and the catalog (results)
    #[arg(long, default_value = "target/product-faults")]
    folder: PathBuf,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Runs everything. Returns whether each fault was noticed, or is excused.
fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let faults = list::read()?;
    let mut chosen = list::choose(&faults, &arguments.names)?;
    let Shard { index, of } = arguments.shard;
    let mut numbers = 0..;
    chosen.retain(|_| numbers.next().is_some_and(|number| number % of == index));
    if arguments.list {
        for fault in chosen {
            println!("{:40} {}", fault.name, fault.what);
        }
        return Ok(true);
    }
    let tree = Tree::new(&arguments.folder)?;
    let planted = tree.plant(&faults)?;
    if arguments.control {
        let lanes = [Lane::Fast, Lane::Turmoil];
        let noticed = judge(None, None, &lanes, &planted, arguments)?;
        noticed.iter().for_each(|noticed| println!("{noticed}"));
        return Ok(noticed.is_empty());
    }
    let mut results = std::fs::File::create(arguments.folder.join("results.tsv"))?;
    let bar = ProgressBar::new(chosen.len() as u64);
    bar.set_style(ProgressStyle::with_template(
        "{bar:30} {pos}/{len} {msg} {elapsed}",
    )?);
    let mut is_noticed = true;
    let mut recorded = BTreeMap::new();
    for (number, fault) in faults.iter().enumerate() {
        if !chosen.iter().any(|one| one.name == fault.name) {
            continue;
        }
        bar.set_message(fault.name.clone());
        let began = started();
        let planted_here = Some((number, fault.name.as_str()));
        let lanes = [lane_of(&fault.file)];
        let last = fault.noticed.as_deref();
        let noticed = judge(planted_here, last, &lanes, &planted, arguments)?;
        let line = line(fault, &noticed, began.elapsed().as_secs());
        bar.suspend(|| println!("{line}"));
        writeln!(results, "{line}")?;
        if let Some(first) = noticed.first() {
            recorded.insert(fault.name.clone(), first.to_string());
        }
        is_noticed &= !noticed.is_empty() || fault.harmless.is_some();
        bar.inc(1);
    }
    bar.finish_and_clear();
    if arguments.record {
        list::record(&recorded)?;
    }
    Ok(is_noticed)
}

/// Runs one judge after another on a fault, or on the unchanged product.
fn judge(
    fault: Option<(usize, &str)>,
    last: Option<&str>,
    lanes: &[Lane],
    planted: &Planted<'_>,
    arguments: &Arguments,
) -> Result<Vec<Noticed>, Failure> {
    let effort = Effort {
        seeds: arguments.seeds,
        jobs: arguments.jobs,
        are_all_asked: !arguments.campaigns_only,
        is_resumed: arguments.resume,
    };
    let mut noticed = Vec::new();
    for question in questions(last, lanes, effort) {
        if let Some(found) = question.ask(planted, fault, effort)? {
            noticed.push(found);
            if !arguments.keep_going {
                break;
            }
        }
    }
    Ok(noticed)
}

/// Parses a shard, `I/N`.
fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/');
    let read = parts.and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    match read {
        Some((index, of)) if index < of => Ok(Shard { index, of }),
        _ => Err("write I/N with I from 0 to N-1, for example 0/8".to_owned()),
    }
}

fn line(fault: &Fault, noticed: &[Noticed], seconds: u64) -> String {
    let by = if noticed.is_empty() {
        match &fault.harmless {
            Some(why) => format!("harmless: {why}"),
            None => "NOT NOTICED".to_owned(),
        }
    } else {
        let all: Vec<_> = noticed.iter().map(ToString::to_string).collect();
        all.join("; ")
    };
    format!("{}\t{by}\t{seconds} s", fault.name)
}

#[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
fn started() -> Instant {
    Instant::now()
}
