//! Clocks of servers and clients that a run can change. They use a small library that is compiled when a run needs it
//! and is loaded into the process.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::clock;
use quorlock_sim_plan::fault::Suspended;

/// The source of the library. It reads the clocks only by system calls. Looking up the real function with `dlsym`
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

    /// Copies the library into the folder of a process, and creates the file of its clocks. Both are removed with that
    /// folder.
    pub(super) fn install(&self, folder: &Path) -> io::Result<ProcessClocks> {
        std::fs::write(folder.join("preload.so"), &self.library)?;
        let mut clocks = ProcessClocks {
            folder: folder.to_path_buf(),
            version: 0,
            ahead: Ahead::default(),
            wall_rate_ppm: 0,
            elapsed_rate_ppm: 0,
            since: clock::now(),
        };
        clocks.write()?;
        Ok(clocks)
    }
}

/// The clocks of one process, as the process reads them.
#[derive(Debug)]
pub(super) struct ProcessClocks {
    folder: PathBuf,
    /// How often the file was written.
    version: i64,
    /// How far the clocks are ahead at `since`.
    ahead: Ahead,
    /// How much faster the wall clock runs.
    wall_rate_ppm: i64,
    /// How much faster the monotonic clocks run.
    elapsed_rate_ppm: i64,
    /// When the rates took effect, on the clock of the machine.
    since: u64,
}

/// How far each clock is ahead, in nanoseconds.
#[derive(Clone, Copy, Default, Debug)]
struct Ahead {
    /// `CLOCK_REALTIME`.
    wall: i64,
    /// `CLOCK_MONOTONIC`, which does not count the time for which a machine is suspended.
    monotonic: i64,
    /// `CLOCK_BOOTTIME`, which counts it.
    boottime: i64,
}

impl ProcessClocks {
    /// Returns the environment variables that the process needs.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        vec![
            ("LD_PRELOAD".to_owned(), path("preload.so")),
            ("QUORLOCK_CLOCK".to_owned(), path("clock")),
        ]
    }

    /// Steps the wall clock forwards or backwards.
    pub(super) fn step(&mut self, by: i64) -> io::Result<()> {
        self.settle();
        self.ahead.wall = self.ahead.wall.saturating_add(by);
        self.write()
    }

    /// Changes the rate of the wall clock from now on.
    pub(super) fn run_wall_at(&mut self, rate_ppm: i32) -> io::Result<()> {
        self.settle();
        self.wall_rate_ppm = i64::from(rate_ppm);
        self.write()
    }

    /// Changes the rate of all clocks from now on.
    pub(super) fn run_at(&mut self, rate_ppm: i32) -> io::Result<()> {
        self.settle();
        self.wall_rate_ppm = i64::from(rate_ppm);
        self.elapsed_rate_ppm = i64::from(rate_ppm);
        self.write()
    }

    /// Sets the monotonic clocks back by the time for which the machine was suspended. `CLOCK_BOOTTIME` counts that
    /// time, unless the fault makes it stop, too. The process must be stopped meanwhile.
    pub(super) fn suspend(&mut self, span: Duration, clock: Suspended) -> io::Result<()> {
        self.settle();
        let span = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        self.ahead.monotonic = self.ahead.monotonic.saturating_sub(span);
        if clock == Suspended::Stops {
            self.ahead.boottime = self.ahead.boottime.saturating_sub(span);
        }
        self.write()
    }

    /// Adds what the rates have contributed so far to the offsets.
    fn settle(&mut self) {
        let now = clock::now();
        let passed = i128::from(now.saturating_sub(self.since));
        let more = |rate_ppm: i64| {
            let more = passed * i128::from(rate_ppm) / 1_000_000;
            i64::try_from(more).unwrap_or(0)
        };
        let (wall, elapsed) = (more(self.wall_rate_ppm), more(self.elapsed_rate_ppm));
        self.ahead.wall = self.ahead.wall.saturating_add(wall);
        self.ahead.monotonic = self.ahead.monotonic.saturating_add(elapsed);
        self.ahead.boottime = self.ahead.boottime.saturating_add(elapsed);
        self.since = now;
    }

    /// Writes the file. The process has mapped the file into memory, so its next reading uses the new values. A
    /// reading that began earlier is repeated: its version is another one, or odd.
    fn write(&mut self) -> io::Result<()> {
        let since = i64::try_from(self.since).unwrap_or(0);
        let fields = [
            self.ahead.wall,
            self.ahead.monotonic,
            self.ahead.boottime,
            self.wall_rate_ppm,
            self.elapsed_rate_ppm,
            since,
        ];
        let bytes: Vec<u8> = fields.into_iter().flat_map(i64::to_ne_bytes).collect();
        let mut options = std::fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let file = options.open(self.folder.join("clock"))?;
        file.write_all_at(&(self.version + 1).to_ne_bytes(), 0)?;
        file.write_all_at(&bytes, 8)?;
        self.version += 2;
        file.write_all_at(&self.version.to_ne_bytes(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READER: &str = r#"
#include <stdio.h>
#include <time.h>
int main(void) {
    clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW};
    for (int i = 0; i < 4; i++) {
        struct timespec t;
        if (clock_gettime(clocks[i], &t)) return 1;
        printf("%lld ", (long long)t.tv_sec);
    }
    return 0;
}
"#;

    /// Returns the seconds that a process with these clocks reads: of the wall clock, those since the machine was
    /// started, those that do not count suspensions, and those of the clock that nothing changes.
    fn shown(reader: &Path, clocks: &ProcessClocks) -> [i64; 4] {
        let mut command = Command::new(reader);
        let output = command.envs(clocks.variables()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let numbers = text.split_whitespace().map(|number| number.parse());
        let numbers: Result<Vec<i64>, _> = numbers.collect();
        numbers.unwrap().try_into().unwrap()
    }

    #[test]
    fn a_process_reads_the_clocks_of_its_file() {
        let Ok(preload) = Preload::compile() else {
            // The machine has no compiler: runs then say that these faults are lacking.
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let mut clocks = preload.install(folder.path()).unwrap();
        let source = folder.path().join("reader.c");
        std::fs::write(&source, READER).unwrap();
        let reader = folder.path().join("reader");
        let mut compiler = Command::new("cc");
        let compiled = compiler.arg("-o").arg(&reader).arg(&source).status();
        assert!(compiled.unwrap().success());
        let before = shown(&reader, &clocks);
        let hour = 3_600_000_000_000;
        clocks.step(hour).unwrap();
        let (short, long) = (Duration::from_secs(100), Duration::from_secs(1_000));
        clocks.suspend(short, Suspended::Counts).unwrap();
        clocks.suspend(long, Suspended::Stops).unwrap();
        let after = shown(&reader, &clocks);
        for (clock, wanted) in [3_600, -1_000, -1_100, 0].into_iter().enumerate() {
            let by = after[clock] - before[clock];
            // Some seconds pass between the readings.
            assert!((wanted..wanted + 60).contains(&by), "{before:?} {after:?}");
        }
    }
}
