//! Plants one-line faults in the product, one at a time, and tells what notices each.
//!
//! The list is `sim/product-faults.toml`. All of them are planted in one worktree, each behind a number that is read when a
//! program starts, and built once. Each is held against the campaigns, the catalog of scenarios and the tests, until one of
//! them fails.
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

use judges::{Effort, Noticed, questions};
use list::Fault;
use tree::{Planted, Tree};

/// Plant one-line faults in the product, one at a time, and tell what notices each.
///
/// The list is sim/product-faults.toml. The commit that is checked out is what they are planted in.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  cargo run --release -p quorlock-sim --example product_faults
  cargo run --release -p quorlock-sim --example product_faults -- --record
  cargo run --release -p quorlock-sim --example product_faults -- no-drift silent-release --keep-going")]
struct Arguments {
    /// Only those with these names; all without
    names: Vec<String>,
    /// Only tell which there are
    #[arg(long)]
    list: bool,
    /// How many seeds each campaign has
    #[arg(long, default_value = "20000")]
    seeds: u64,
    /// On how many threads campaigns run; on all cores without
    #[arg(long)]
    jobs: Option<usize>,
    /// Go on after the first that notices, and tell all
    #[arg(long)]
    keep_going: bool,
    /// Plant nothing: then nothing may be noticed
    #[arg(long, conflicts_with = "names")]
    control: bool,
    /// Leave out what is no campaign
    #[arg(long)]
    campaigns_only: bool,
    /// Write what noticed each fault into the list, and into the page of campaigns
    #[arg(long, conflicts_with = "control")]
    record: bool,
    /// Where to build, and where the results are written, a line for each fault
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

/// Whether each fault was noticed, or is excused.
fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let faults = list::read()?;
    let chosen = list::choose(&faults, &arguments.names)?;
    if arguments.list {
        for fault in chosen {
            println!("{:40} {}", fault.name, fault.what);
        }
        return Ok(true);
    }
    let tree = Tree::new(&arguments.folder)?;
    let planted = tree.plant(&faults)?;
    if arguments.control {
        let noticed = judge(None, None, &planted, arguments)?;
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
        let noticed = judge(Some(number), fault.noticed.as_deref(), &planted, arguments)?;
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

/// Asks one judge after the other about a fault, or about the product as it is.
fn judge(
    fault: Option<usize>,
    last: Option<&str>,
    planted: &Planted<'_>,
    arguments: &Arguments,
) -> Result<Vec<Noticed>, Failure> {
    let effort = Effort {
        seeds: arguments.seeds,
        jobs: arguments.jobs,
        are_all_asked: !arguments.campaigns_only,
    };
    let mut noticed = Vec::new();
    for question in questions(last, effort) {
        if let Some(found) = question.ask(planted, fault, effort)? {
            noticed.push(found);
            if !arguments.keep_going {
                break;
            }
        }
    }
    Ok(noticed)
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
