//! A command whose processes and folders can be distinguished from all others.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The parent folder of all processes of one command. Each process works in its own folder below it, which identifies
/// the process as long as it lives, even if the folder was removed. Its environment would not, because a server
/// overwrites it.
pub(super) struct Marked {
    folders: TempDir,
}

impl Marked {
    pub(super) fn new() -> Self {
        Marked {
            folders: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock-sim"));
        command
            .args(arguments)
            .env("TMPDIR", self.folders.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns the processes that the command has started, without zombies.
    pub(super) fn processes(&self) -> Vec<PathBuf> {
        let all = std::fs::read_dir("/proc").expect("there is /proc");
        let all = all.flatten().map(|entry| entry.path());
        all.filter(|process| self.is_ours(process)).collect()
    }

    fn is_ours(&self, process: &Path) -> bool {
        // A zombie has no working folder.
        let works_in = std::fs::read_link(process.join("cwd"));
        works_in.is_ok_and(|folder| folder.starts_with(self.folders.path()))
    }

    /// Returns whether one of the processes is stopped.
    pub(super) fn has_stopped(&self) -> bool {
        self.processes().iter().any(|process| {
            let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('T'))
        })
    }

    /// Returns the number of folders.
    pub(super) fn folders(&self) -> usize {
        std::fs::read_dir(self.folders.path())
            .expect("a folder")
            .count()
    }
}
