//! What may notice a fault.

use std::fmt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Failure;
use crate::tree::Planted;

/// What is run with a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Judge {
    /// Seeds of a lock, with faults inside its assumptions.
    Campaign {
        lock: &'static str,
        /// Drawn from the seed without.
        workload: Option<&'static str>,
    },
    /// The scenarios with their expected verdicts.
    Catalog,
    /// The unit tests of the crates that are planted in.
    Units,
}

/// What noticed a fault.
pub(crate) struct Noticed {
    judge: Judge,
    what: String,
}

/// A campaign, or the catalog, that takes longer than this does not end.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// Tried in this order.
const JUDGES: [Judge; 12] = [
    campaign("redlock", None),
    campaign("single", None),
    campaign("multi", None),
    campaign("redlock", Some("extending")),
    campaign("redlock", Some("reentrant")),
    campaign("redlock", Some("read-write")),
    campaign("single", Some("fair")),
    campaign("redlock", Some("fenced-updates")),
    campaign("redlock", Some("leading")),
    campaign("redlock", Some("long-work")),
    Judge::Catalog,
    Judge::Units,
];

const fn campaign(lock: &'static str, workload: Option<&'static str>) -> Judge {
    Judge::Campaign { lock, workload }
}

impl Judge {
    /// All, and first the one with that name.
    pub(crate) fn all(first: Option<&str>) -> Vec<Judge> {
        let mut judges = JUDGES.to_vec();
        judges.sort_by_key(|judge| Some(judge.to_string().as_str()) != first);
        judges
    }

    /// What it noticed, if anything.
    pub(crate) fn ask(
        self,
        planted: &Planted<'_>,
        seeds: u64,
        jobs: Option<usize>,
    ) -> Result<Option<Noticed>, Failure> {
        let mut command = match self {
            Judge::Campaign { lock, workload } => {
                let mut command = Command::new(&planted.simulator);
                command.args(["explore", "--json", "--faults", "inside", "--lock", lock]);
                command.args(["--seeds", &format!("0..{seeds}"), "--out", "failures"]);
                if let Some(workload) = workload {
                    command.args(["--workload", workload]);
                }
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
                cargo.args(["--package", "quorlock-core", "--package", "quorlock"]);
                cargo
            }
        };
        if let (Some(jobs), Judge::Campaign { .. } | Judge::Catalog) = (jobs, self) {
            command.args(["--jobs", &jobs.to_string()]);
        }
        let scratch = planted.simulator.with_file_name("judged");
        std::fs::create_dir_all(&scratch)?;
        if self != Judge::Units {
            command.current_dir(&scratch);
        }
        let what = match run_within(&mut command, PATIENCE)? {
            None => Some("does not end".to_owned()),
            Some(output) if output.status.success() => None,
            Some(output) => Some(self.finding(&output)),
        };
        Ok(what.map(|what| Noticed { judge: self, what }))
    }

    /// The first thing that failed.
    fn finding(self, output: &Output) -> String {
        let text = String::from_utf8_lossy(&output.stdout);
        let found: Option<Value> = serde_json::from_str(&text).ok();
        match (self, found) {
            (Judge::Campaign { .. }, Some(found)) => {
                let first = |index: usize| found.get("first")?.get(index);
                match (first(0), first(1).and_then(Value::as_str)) {
                    (Some(seed), Some(property)) => format!("{property} at seed {seed}"),
                    _ => "fails".to_owned(),
                }
            }
            (Judge::Units, _) => {
                let lines = text.lines().filter(|line| line.starts_with("    "));
                let mut names: Vec<_> = lines.map(str::trim).collect();
                names.sort_unstable();
                names.dedup();
                format!("{} tests", names.len())
            }
            _ => "fails".to_owned(),
        }
    }
}

/// What a command prints; nothing if it does not end within that time.
#[expect(clippy::disallowed_methods, reason = "it waits for real processes")]
fn run_within(command: &mut Command, patience: Duration) -> Result<Option<Output>, Failure> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
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
        stderr: Vec::new(),
    }))
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Judge::Campaign {
                lock,
                workload: None,
            } => f.write_str(lock),
            Judge::Campaign {
                lock,
                workload: Some(workload),
            } => write!(f, "{lock} {workload}"),
            Judge::Catalog => f.write_str("catalog"),
            Judge::Units => f.write_str("units"),
        }
    }
}

impl fmt::Display for Noticed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.judge, self.what)
    }
}
