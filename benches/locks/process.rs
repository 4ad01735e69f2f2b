//! A process that works with one library.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::contestant::Contestant;
use crate::driver::program::Failure;
use crate::driver::program::Job;

/// The longest time for which a process may print nothing. The longest work without a line acquires many locks.
const SILENCE: Duration = Duration::from_secs(180);

/// A running process. It is killed when this value is dropped.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    /// The lines that the process prints, which a separate thread reads.
    output: Receiver<String>,
}

impl Process {
    /// Starts a process, which connects and warms up.
    pub(crate) fn start(contestant: Contestant, job: &Job) -> Result<Self, Failure> {
        let mut child = contestant
            .program()
            .and_then(|mut program| {
                let program = program.arg(serde_json::to_string(job)?);
                program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
            })
            .map_err(|error| {
                format!(
                    "its program: {error} (benches/peers/run.sh builds those of other libraries)"
                )
            })?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let printed = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let (lines, output) = channel();
        std::thread::spawn(move || {
            for line in printed.lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Process {
            child,
            input,
            output,
        })
    }

    /// Lets the process continue.
    pub(crate) fn go(&mut self) -> Result<(), Failure> {
        Ok(self.input.write_all(b"go\n")?)
    }

    /// Waits for a word. Libraries of the JVM log other lines.
    pub(crate) fn expect(&mut self, word: &str) -> Result<(), Failure> {
        while self.line()?.trim() != word {}
        Ok(())
    }

    /// Returns the result of a turn.
    pub(crate) fn result(&mut self) -> Result<Value, Failure> {
        loop {
            let line = self.line()?;
            if line.starts_with('{') {
                return Ok(serde_json::from_str(&line)?);
            }
        }
    }

    fn line(&mut self) -> Result<String, Failure> {
        self.output.recv_timeout(SILENCE).map_err(|error| {
            format!("it ended before its time, or printed nothing for three minutes ({error})")
                .into()
        })
    }

    /// Returns the resident memory of the process, in bytes.
    pub(crate) fn resident_bytes(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        Ok(kib.ok_or("no VmRSS")?.parse::<f64>()? * 1024.0)
    }

    /// Returns the user and system time of the process so far, in seconds.
    pub(crate) fn processor_seconds(&self) -> Result<f64, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program, in parentheses, may have spaces.
        let (_, fields) = stat.rsplit_once(')').ok_or("no name in stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks = ticks.map(str::parse::<f64>).sum::<Result<f64, _>>()?;
        Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
