//! The clients. Each one is a separate process that runs this program, or the program of another library.

use std::io;
use std::time::Duration;

use tempfile::TempDir;

use super::clock;
use super::other_library::{OtherClients, is_other};
use quorlock_testbed::guardian::{Guardian, state_of};
use rustix::process::Signal;

use super::blocking::blocking;
use super::preload::{Preload, ProcessClocks};
use quorlock_sim_plan::fault::{ClientFault, Suspended};
use quorlock_sim_world::history::Process;

/// The reason why clocks cannot be changed where the library of clocks is missing.
pub(super) const NO_LIBRARY: &str = "clocks of processes: no library could be compiled";

/// The place of one client, in which one process after another runs.
#[derive(Debug)]
pub(super) struct ClientSlot {
    process: Process,
    /// The port of the server to which the client reports.
    report_port: u16,
    running: Option<Guardian>,
    /// The other library, if the client is one of its clients.
    other: Option<OtherClients>,
    /// The clocks of the client's machine, if the run can change them.
    clocks: Option<ProcessClocks>,
    dir: TempDir,
}

impl ClientSlot {
    pub(super) fn start(
        client: u16,
        report_port: u16,
        preload: Option<&Preload>,
        beside: Option<&OtherClients>,
    ) -> io::Result<ClientSlot> {
        let process = Process {
            client,
            restarts: 0,
        };
        let dir = tempfile::Builder::new()
            .prefix("quorlock-chaos-")
            .tempdir()?;
        let other = beside.filter(|_| is_other(client)).cloned();
        let preload = preload.filter(|_| other.is_none());
        let clocks = preload.map(|preload| preload.install(dir.path()));
        let mut slot = ClientSlot {
            process,
            report_port,
            running: None,
            other,
            clocks: clocks.transpose()?,
            dir,
        };
        slot.launch()?;
        Ok(slot)
    }

    fn launch(&mut self) -> io::Result<()> {
        let Process { client, restarts } = self.process;
        let mut command = match &self.other {
            Some(other) => other.command.to_vec(),
            None => {
                let program = std::env::current_exe()?.display().to_string();
                vec![program, "chaos-client".to_owned()]
            }
        };
        command.push(self.report_port.to_string());
        command.extend([client.to_string(), restarts.to_string()]);
        if let Some(other) = &self.other {
            command.push(other.names.suffix().to_owned());
        }
        let variables = self.clocks.as_ref().map(ProcessClocks::variables);
        let variables = variables.unwrap_or_default();
        self.running = Some(Guardian::start(self.dir.path(), &command, &variables)?);
        Ok(())
    }

    /// Returns whether the client is the other library's.
    pub(super) fn is_other(&self) -> bool {
        self.other.is_some()
    }

    /// Returns the id of the running process.
    pub(super) fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Guardian::pid)
    }

    /// Stops the process at an arbitrary instruction.
    pub(super) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes the process.
    pub(super) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(running) = &self.running {
            running.signal(signal);
        }
    }

    /// Returns the clocks of the client's machine, if the run can change them.
    pub(super) fn clocks(&mut self) -> Option<&mut ProcessClocks> {
        self.clocks.as_mut()
    }

    /// Returns the reason why the clocks of the client's machine cannot be changed, if they cannot.
    pub(super) fn lacks_clocks(&self) -> &'static str {
        match self.other {
            Some(_) => "clocks of a JVM: the library of clocks is not loaded into it",
            None => NO_LIBRARY,
        }
    }

    /// Returns the reason why a fault cannot strike the client, if it cannot: the fault sets clocks.
    pub(super) fn lacks(&self, fault: ClientFault) -> Option<&'static str> {
        (fault.kind().sets_clock() && self.clocks.is_none()).then(|| self.lacks_clocks())
    }

    /// Suspends the client's machine: stops the process, and lets its clocks stand still meanwhile. Returns `None` if
    /// the run cannot change its clocks.
    pub(super) async fn suspend(
        &mut self,
        lasts: Duration,
        clock: Suspended,
    ) -> Option<io::Result<()>> {
        let clocks = self.clocks.as_mut()?;
        let running = self.running.as_ref()?;
        running.signal(Signal::STOP);
        let bound = Duration::from_secs(1);
        let is_stopped = async || state_of(running.pid()).filter(|state| *state == 'T');
        clock::wait_for(bound, is_stopped).await;
        // The first thread has stopped. Another one may still be on its way out of a system call.
        clock::sleep(Duration::from_millis(5)).await;
        let from = clock::now();
        clock::sleep(lasts).await;
        let span = Duration::from_nanos(clock::now().saturating_sub(from));
        let set = clocks.suspend(span, clock);
        running.signal(Signal::CONT);
        Some(set)
    }

    /// Kills the process.
    pub(super) async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            blocking(move || running.kill()).await;
        }
    }

    /// Starts the client again, as a new process.
    pub(super) async fn restart(&mut self) -> io::Result<()> {
        self.kill().await;
        self.process.restarts += 1;
        self.launch()
    }

    /// Returns what the processes of the client wrote to standard error. It should be empty.
    pub(super) fn output(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("output")).unwrap_or_default()
    }
}
