//! The clients: each a process, this very program started once more.

use std::io;

use tempfile::TempDir;

use super::guardian::{Folder, Guardian};
use crate::history::Process;

/// The place of one client: its process comes and goes.
#[derive(Debug)]
pub(super) struct Seat {
    process: Process,
    /// Where it reports.
    desk: u16,
    running: Option<Guardian>,
    dir: TempDir,
}

impl Seat {
    pub(super) fn start(client: u16, desk: u16) -> io::Result<Seat> {
        let process = Process {
            client,
            restarts: 0,
        };
        let mut seat = Seat {
            process,
            desk,
            running: None,
            dir: tempfile::Builder::new()
                .prefix("quorlock-chaos-")
                .tempdir()?,
        };
        seat.launch()?;
        Ok(seat)
    }

    fn launch(&mut self) -> io::Result<()> {
        let program = std::env::current_exe()?.display().to_string();
        let Process { client, restarts } = self.process;
        let command = [
            program,
            "chaos-client".to_owned(),
            self.desk.to_string(),
            client.to_string(),
            restarts.to_string(),
        ];
        self.running = Some(Guardian::start(self.dir.path(), &command, &[])?);
        Ok(())
    }

    /// Stops the process between two instructions.
    pub(super) fn pause(&self) {
        self.running.iter().for_each(Guardian::pause);
    }

    /// Lets it go on.
    pub(super) fn resume(&self) {
        self.running.iter().for_each(Guardian::resume);
    }

    /// Ends it where it stands.
    pub(super) async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
            running.end(Folder::Kept).await;
        }
    }

    /// Starts it once more, as a new process.
    pub(super) async fn restart(&mut self) -> io::Result<()> {
        self.kill().await;
        self.process.restarts += 1;
        self.launch()
    }

    /// Ends it for good, and removes its folder.
    pub(super) async fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.end(Folder::Removed).await;
        }
    }

    /// What its processes wrote to standard error, which should be nothing.
    pub(super) fn output(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("output")).unwrap_or_default()
    }
}
