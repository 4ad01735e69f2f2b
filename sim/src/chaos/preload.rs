//! Wall clocks of servers that a run can change. They use a small library that is compiled when a run needs it and is
//! loaded into the server.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::clock;

/// The source of the library. It reads the wall clock only by system calls. Looking up the real function with `dlsym`
/// at start may allocate, and an allocator that reads the clock would then wait for itself.
const SOURCE: &str = include_str!("preload.c");

/// The compiled library.
#[derive(Debug)]
pub(super) struct Preload {
    library: Vec<u8>,
}

impl Preload {
    /// Compiles the library.
    pub(super) fn compile() -> Result<Preload, String> {
        let folder = tempfile::Builder::new().prefix("quorlock-chaos-").tempdir();
        let dir = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let source = dir.path().join("preload.c");
        std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
        let compiled = dir.path().join("preload.so");
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&compiled)
            .arg(&source)
            .output();
        let output = output.map_err(|error| format!("there is no compiler `cc`: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`cc` does not compile the clock: {said}"));
        }
        let library = std::fs::read(compiled).map_err(|error| error.to_string())?;
        Ok(Preload { library })
    }

    /// Copies the library into the folder of a server, and creates the file of the clock. Both are removed with that
    /// folder.
    pub(super) fn install(&self, folder: &Path) -> io::Result<NodeClock> {
        std::fs::write(folder.join("preload.so"), &self.library)?;
        let clock = NodeClock {
            folder: folder.to_path_buf(),
            offset: 0,
            rate_ppm: 0,
            since: clock::now(),
        };
        clock.write()?;
        Ok(clock)
    }
}

/// The wall clock of one server.
#[derive(Debug)]
pub(super) struct NodeClock {
    folder: PathBuf,
    /// How far the clock is ahead at `since`, in nanoseconds.
    offset: i64,
    rate_ppm: i64,
    /// When the rate took effect, on the clock of the machine.
    since: u64,
}

impl NodeClock {
    /// Returns the environment variables that the server needs.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        vec![
            ("LD_PRELOAD".to_owned(), path("preload.so")),
            ("QUORLOCK_CLOCK".to_owned(), path("clock")),
        ]
    }

    /// Steps the clock forwards or backwards.
    pub(super) fn step(&mut self, by: i64) -> io::Result<()> {
        self.settle();
        self.offset = self.offset.saturating_add(by);
        self.write()
    }

    /// Changes the rate of the clock from now on.
    pub(super) fn run_at(&mut self, rate_ppm: i32) -> io::Result<()> {
        self.settle();
        self.rate_ppm = i64::from(rate_ppm);
        self.write()
    }

    /// Adds what the rate has contributed so far to the offset.
    fn settle(&mut self) {
        let now = clock::now();
        let passed = i64::try_from(now.saturating_sub(self.since)).unwrap_or(0);
        let more = i128::from(passed) * i128::from(self.rate_ppm) / 1_000_000;
        self.offset = self.offset.saturating_add(i64::try_from(more).unwrap_or(0));
        self.since = now;
    }

    /// Writes the file. The server has mapped the file into memory, so its next reading uses the new values.
    fn write(&self) -> io::Result<()> {
        let since = i64::try_from(self.since).unwrap_or(0);
        let mut bytes = Vec::new();
        for field in [self.offset, self.rate_ppm, since] {
            bytes.extend(field.to_ne_bytes());
        }
        let path = self.folder.join("clock");
        let mut options = std::fs::OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        file.write_all_at(&bytes, 0)
    }
}
