//! The clients. Each one is a separate process that runs this program.

use std::io;

use tempfile::TempDir;

use super::guardian::{Folder, Guardian};
use crate::history::Process;

/// The place of one client, in which one process after another runs.
#[derive(Debug)]
pub(super) struct ClientSlot {
    process: Process,
    /// The port of the server to which the client reports.
    report_port: u16,
    running: Option<Guardian>,
    dir: TempDir,
}

impl ClientSlot {
    pub(super) fn start(client: u16, report_port: u16) -> io::Result<ClientSlot> {
        let process = Process {
            client,
            restarts: 0,
        };
        let mut slot = ClientSlot {
            process,
            report_port,
            running: None,
            dir: tempfile::Builder::new()
                .prefix("quorlock-chaos-")
                .tempdir()?,
        };
        slot.launch()?;
        Ok(slot)
    }

    fn launch(&mut self) -> io::Result<()> {
        let program = std::env::current_exe()?.display().to_string();
        let Process { client, restarts } = self.process;
        let command = [
            program,
            "chaos-client".to_owned(),
            self.report_port.to_string(),
            client.to_string(),
            restarts.to_string(),
        ];
        self.running = Some(Guardian::start(self.dir.path(), &command, &[])?);
        Ok(())
    }

    /// Stops the process at an arbitrary instruction.
    pub(super) fn pause(&self) {
        self.running.iter().for_each(Guardian::pause);
    }

    /// Resumes the process.
    pub(super) fn resume(&self) {
        self.running.iter().for_each(Guardian::resume);
    }

    /// Kills the process.
    pub(super) async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
            running.end(Folder::Kept).await;
        }
    }

    /// Starts the client again, as a new process.
    pub(super) async fn restart(&mut self) -> io::Result<()> {
        self.kill().await;
        self.process.restarts += 1;
        self.launch()
    }

    /// Ends the process for good, and removes its folder.
    pub(super) async fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.end(Folder::Removed).await;
        }
    }

    /// Returns what the processes of the client wrote to standard error. It should be empty.
    pub(super) fn output(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("output")).unwrap_or_default()
    }
}
