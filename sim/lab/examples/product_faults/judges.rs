//! The judges that may notice a fault.

use std::fmt;
use std::ops::Range;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use quorlock_sim_plan::Lane;
use serde_json::Value;

use crate::Failure;
use crate::tree::{CHOSEN, Planted};

/// A judge: what is run with a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Judge {
    /// Seeds of a lock in a lane, with faults inside its assumptions.
    Campaign { lock: &'static str, lane: Lane },
    /// The scenarios with their expected verdicts.
    Catalog,
    /// The unit tests of the crates in which faults are planted.
    Units,
    /// A test under a scheduler that chooses how threads interleave.
    Threads { test: &'static str },
}

/// A judge that noticed a fault, and what it found.
pub(crate) struct Noticed {
    judge: Judge,
    what: String,
}

/// The catalog, or a test, that takes longer than this counts as endless. A campaign that takes longer only runs on a
/// slow machine: the campaign itself stops a run that does not end, and names its seed.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// The locks, in the order in which their campaigns run, first with few seeds and then with more.
const LOCKS: [&str; 3] = ["redlock", "single", "multi"];

/// Returns the lane whose campaigns execute a file.
pub(crate) fn lane_of(file: &str) -> Lane {
    match file.starts_with("crates/quorlock-redis/") {
        true => Lane::Turmoil,
        false => Lane::Fast,
    }
}

/// Returns the number of seeds of a campaign. Over sockets a run takes far longer.
fn seeds_in(lane: Lane, effort: Effort) -> u64 {
    match lane {
        Lane::Fast => effort.seeds,
        Lane::Turmoil => effort.seeds / 10,
    }
}

/// How much work judges do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The number of seeds of each campaign.
    pub(crate) seeds: u64,
    /// The number of threads of campaigns; `None` for one per core.
    pub(crate) jobs: Option<usize>,
    /// Whether the catalog and the tests are run as well.
    pub(crate) are_all_asked: bool,
    /// Whether rows that are there are continued, and not replaced.
    pub(crate) is_resumed: bool,
}

/// One judge, with a part of its seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    judge: Judge,
    seeds: Range<u64>,
}

/// Returns the questions about a fault that these lanes execute, in order: first the one whose judge noticed it last.
pub(crate) fn questions(last: Option<&str>, lanes: &[Lane], effort: Effort) -> Vec<Question> {
    let mut questions = Vec::new();
    for lane in lanes {
        let all = seeds_in(*lane, effort);
        for seeds in [0..all / 100, all / 100..all / 10, all / 10..all] {
            questions.extend(LOCKS.map(|lock| Question {
                judge: Judge::Campaign { lock, lane: *lane },
                seeds: seeds.clone(),
            }));
        }
    }
    questions.retain(|question| !question.seeds.is_empty());
    if effort.are_all_asked {
        let whole = [Judge::Catalog, Judge::Units].map(|judge| Question { judge, seeds: 0..0 });
        questions.extend(whole);
    }
    if let Some(last) = last {
        if let Some((test, _)) = last
            .strip_prefix("threads ")
            .and_then(|text| text.split_once(':'))
        {
            let judge = Judge::Threads {
                test: test.to_owned().leak(),
            };
            questions.insert(0, Question { judge, seeds: 0..0 });
        }
        let known = questions.iter().map(|question| question.judge);
        let judge = known
            .clone()
            .find(|judge| last.starts_with(&format!("{judge}:")));
        let seed = last
            .rsplit_once("at seed ")
            .and_then(|(_, seed)| seed.parse::<u64>().ok());
        let seeds = match (judge, seed) {
            // A campaign without a seed is one that did not end.
            (Some(Judge::Campaign { .. }), None) | (None, _) => None,
            (_, seed) => Some(0..seed.map_or(0, |seed| seed.saturating_add(1))),
        };
        if let Some((judge, seeds)) = judge.zip(seeds) {
            questions.insert(0, Question { judge, seeds });
        }
    }
    questions.dedup();
    questions
}

impl Question {
    /// Runs the judge. Returns what it noticed, if anything.
    pub(crate) fn ask(
        &self,
        planted: &Planted<'_>,
        fault: Option<(usize, &str)>,
        effort: Effort,
    ) -> Result<Option<Noticed>, Failure> {
        let judge = self.judge;
        let mut command = match judge {
            Judge::Campaign { lock, lane } => {
                let mut command = Command::new(&planted.simulator);
                command.args(["explore", "--json", "--faults", "inside", "--lock", lock]);
                if lane == Lane::Turmoil {
                    command.args(["--lane", "turmoil"]);
                }
                let seeds = format!("{}..{}", self.seeds.start, self.seeds.end);
                command.args(["--seeds", &seeds, "--out", "failures"]);
                command
            }
            Judge::Catalog => {
                let mut command = Command::new(&planted.simulator);
                command.args(["scenarios", "--json"]);
                command
            }
            Judge::Units => {
                let mut cargo = planted.tree.cargo();
                cargo.args(["test", "--quiet", "--no-fail-fast", "--lib", "--tests"]);
                for package in ["quorlock-core", "quorlock", "quorlock-redis"] {
                    cargo.args(["--package", package]);
                }
                cargo
            }
            Judge::Threads { test } => {
                let mut command = Command::new(planted.tree.source().join("tests/threads.sh"));
                command.args(["--schedules", "10000", test]);
                command.env("CARGO_TARGET_DIR", planted.tree.build());
                command
            }
        };
        if let (Some(jobs), Judge::Campaign { .. } | Judge::Catalog) = (effort.jobs, judge) {
            command.args(["--jobs", &jobs.to_string()]);
        }
        let scratch = planted.tree.build().join("judged");
        std::fs::create_dir_all(&scratch)?;
        if matches!(judge, Judge::Campaign { .. } | Judge::Catalog) {
            command.current_dir(&scratch);
            let name = fault.map_or("control", |(_, name)| name);
            let rows = planted.tree.results().join(name).join(self.folder());
            if effort.is_resumed && rows.join("manifest.json").exists() {
                command.arg("--resume");
            } else if rows.exists() {
                std::fs::remove_dir_all(&rows)?;
            }
            command.arg("--results").arg(rows);
        }
        command.env_remove(CHOSEN);
        command.envs(fault.map(|(number, _)| (CHOSEN, number.to_string())));
        let what = match run_within(&mut command, &scratch.join("stderr"), PATIENCE)? {
            None => match judge {
                Judge::Campaign { .. } => {
                    eprintln!(
                        "the seeds of {judge} take more than {PATIENCE:?} here, and show nothing"
                    );
                    None
                }
                _ => Some("does not end".to_owned()),
            },
            Some(output) if output.status.success() => None,
            // Code 1 is no finding: rows of another build, or a full disk.
            Some(output)
                if output.status.code() == Some(1)
                    && matches!(judge, Judge::Campaign { .. } | Judge::Catalog) =>
            {
                return Err(String::from_utf8_lossy(&output.stderr).into());
            }
            Some(output) => judge.finding(&output),
        };
        Ok(what.map(|what| Noticed { judge, what }))
    }

    /// Returns the name of the folder of its rows.
    fn folder(&self) -> String {
        let Range { start, end } = self.seeds;
        match self.seeds.is_empty() {
            true => self.judge.to_string(),
            false => format!("{}-{start}-{end}", self.judge),
        }
    }
}

impl Judge {
    /// Returns the first failure in its output.
    fn finding(self, output: &Output) -> Option<String> {
        let text = String::from_utf8_lossy(&output.stdout);
        let found: Option<Value> = serde_json::from_str(&text).ok();
        let said = String::from_utf8_lossy(&output.stderr);
        let endless = said.split("the run of seed ").nth(1);
        if let Some(seed) = endless.and_then(|text| text.split(' ').next()) {
            return Some(format!("does not end at seed {seed}"));
        }
        let what = match (self, found) {
            (Judge::Campaign { .. }, Some(found)) => {
                let cell = found.get("cells")?.get(0)?;
                // A campaign ends with its first failure, so there is one property at most.
                let failed = cell.get("failed").and_then(Value::as_object);
                match failed.and_then(|failed| failed.iter().next()) {
                    Some((property, count)) => {
                        format!("{property} at seed {}", count.get("first_seed")?)
                    }
                    None => {
                        // With few seeds, some kinds of fault may never have an effect, but there must be holds.
                        let count = |field: &str| cell.get(field).and_then(Value::as_u64);
                        let (runs, holds) = (count("runs")?, count("holds")?);
                        if 2 * runs <= holds {
                            return None;
                        }
                        "hardly any hold".to_owned()
                    }
                }
            }
            (Judge::Threads { .. }, _) => {
                let told = format!("{text}{said}");
                let schedule = told.split("failed in schedule ").nth(1);
                let number = schedule.and_then(|told| told.split(',').next());
                format!("in schedule {}", number.unwrap_or("?"))
            }
            (Judge::Units, _) => {
                let lines = text.lines().filter(|line| line.starts_with("    "));
                let mut names: Vec<_> = lines.map(str::trim).collect();
                names.sort_unstable();
                names.dedup();
                format!("{} tests", names.len())
            }
            _ => "fails".to_owned(),
        };
        Some(what)
    }
}

/// Returns the output of a command, or `None` if it does not end within this time.
#[expect(clippy::disallowed_methods, reason = "it waits for real processes")]
fn run_within(
    command: &mut Command,
    said: &std::path::Path,
    patience: Duration,
) -> Result<Option<Output>, Failure> {
    let said_to = std::fs::File::create(said)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(said_to)
        .spawn()?;
    let until = Instant::now() + patience;
    let (done, is_done) = std::sync::mpsc::channel();
    let mut stdout = child.stdout.take().ok_or("no standard output")?;
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = std::io::Read::read_to_end(&mut stdout, &mut text);
        let _ = done.send(());
        read.map(|_| text)
    });
    if is_done
        .recv_timeout(until.saturating_duration_since(Instant::now()))
        .is_err()
    {
        end(&mut child);
        return Ok(None);
    }
    let status = child.wait()?;
    let stdout = reader.join().map_err(|_| "the reader panicked")??;
    Ok(Some(Output {
        status,
        stdout,
        stderr: std::fs::read(said)?,
    }))
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Judge::Campaign { lock, lane } => match lane {
                Lane::Fast => f.write_str(lock),
                Lane::Turmoil => write!(f, "{lock} over sockets"),
            },
            Judge::Catalog => f.write_str("catalog"),
            Judge::Units => f.write_str("units"),
            Judge::Threads { test } => write!(f, "threads {test}"),
        }
    }
}

impl fmt::Display for Noticed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.judge, self.what)
    }
}
