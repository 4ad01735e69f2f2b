//! A program that works with one library.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::Failure;
use crate::peer::Peer;

/// The job of a program: `../rust/src/job.rs` describes the fields.
#[derive(Clone, Serialize)]
pub(crate) struct Job {
    pub(crate) peer: &'static str,
    pub(crate) work: &'static str,
    pub(crate) ports: Vec<u16>,
    pub(crate) callers: usize,
    pub(crate) millis: u64,
    pub(crate) hold_micros: u64,
    pub(crate) pause_micros: u64,
    pub(crate) locks: usize,
    pub(crate) names: String,
    pub(crate) lease_millis: u64,
}

/// The longest time for which a program may print nothing. The longest work without a line keeps locks for a minute.
const SILENCE: Duration = Duration::from_secs(180);

/// A running program. It is killed when this value is dropped.
pub(crate) struct Driver {
    peer: Peer,
    child: Child,
    input: ChildStdin,
    /// The lines that the program prints, which a separate thread reads.
    output: Receiver<String>,
}

impl Driver {
    /// Starts the program, and waits until it is connected and warmed up.
    pub(crate) fn start(peer: Peer, job: &Job, folder: &Path) -> Result<Self, Failure> {
        let job = Job {
            peer: peer.library(),
            ..job.clone()
        };
        let mut child = peer
            .program(folder)
            .arg(serde_json::to_string(&job)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{peer}: {error} (tests/peers/run.sh builds it)"))?;
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
        let mut driver = Driver {
            peer,
            child,
            input,
            output,
        };
        driver.expect("ready")?;
        Ok(driver)
    }

    /// Lets the program continue.
    pub(crate) fn go(&mut self) -> Result<(), Failure> {
        Ok(self.input.write_all(b"go\n")?)
    }

    pub(crate) fn expect(&mut self, word: &str) -> Result<(), Failure> {
        loop {
            let line = self.line()?;
            // Libraries of the JVM log to the standard output.
            if line.trim() == word {
                return Ok(());
            }
        }
    }

    /// Returns the result of the work.
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
            let ended = "its program ended before its time, or printed nothing for three minutes";
            format!("{}: {ended} ({error})", self.peer).into()
        })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
