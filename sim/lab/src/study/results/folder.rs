//! A folder of results: written while the runs go on, and read again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{Manifest, Row, frames};

/// The name of the file of rows.
const ROWS: &str = "rows.jsonl.zst";
/// The name of the file of the manifest.
const MANIFEST: &str = "manifest.json";

/// The error when results cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A file has something else than results.
    #[error("{path}: not results of this simulator: {reason}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The folder has results, and the command does not continue them.
    #[error("{path}: this folder has results: continue them with --resume, or name another folder")]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// There is nothing to continue.
    #[error("{path}: this folder has no results to continue: leave out --resume")]
    Nothing {
        /// The folder.
        path: PathBuf,
    },
    /// The results in the folder are of other runs.
    #[error(
        "{path}: these results are of other runs: their {what} is {theirs}, and it would be {ours}"
    )]
    Other {
        /// The folder.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// The value in the folder.
        theirs: String,
        /// The value of the command.
        ours: String,
    },
}

/// Results that are being written.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    manifest: Manifest,
    file: File,
    lines: Vec<u8>,
    began: Instant,
    earlier_seconds: f64,
}

/// Results that were written, maybe not to their end.
#[derive(Debug)]
pub struct Stored {
    /// The folder.
    pub folder: PathBuf,
    /// What ran.
    pub manifest: Manifest,
    frames: Vec<u8>,
}

impl Recorder {
    /// Begins results in a folder, which is created if needed.
    ///
    /// # Errors
    /// Returns [`ResultsError::Exists`] if it has results, and [`ResultsError::Io`].
    pub fn begin(folder: &Path, manifest: Manifest) -> Result<Self, ResultsError> {
        let path = folder.to_owned();
        if folder.join(MANIFEST).exists() {
            return Err(ResultsError::Exists { path });
        }
        let created = fs::create_dir_all(folder).and_then(|()| File::create(folder.join(ROWS)));
        let file = created.map_err(|error| ResultsError::Io { path, error })?;
        Recorder::on(folder, manifest, file, 0.0)
    }

    /// Continues results. Calls `take` with each row that is there.
    ///
    /// # Errors
    /// Returns [`ResultsError::Other`] if these would be other runs, and every error of reading.
    pub fn resume(
        folder: &Path,
        manifest: Manifest,
        mut take: impl FnMut(Row) -> Result<(), String>,
    ) -> Result<Self, ResultsError> {
        let path = folder.to_owned();
        if !folder.join(MANIFEST).exists() {
            return Err(ResultsError::Nothing { path });
        }
        let stored = Stored::read(folder)?;
        let (ours, theirs) = (manifest.common(), stored.manifest.common());
        let mut pairs = ours.into_iter().zip(theirs.into_values());
        if let Some(((what, ours), theirs)) = pairs.find(|((_, ours), theirs)| ours != theirs) {
            return Err(ResultsError::Other {
                path,
                what,
                theirs,
                ours,
            });
        }
        if stored.manifest.shard != manifest.shard {
            return Err(ResultsError::Other {
                path,
                what: "shard",
                theirs: stored.manifest.shard.to_string(),
                ours: manifest.shard.to_string(),
            });
        }
        let mut rows = 0;
        let len = stored.rows(|row| {
            rows += 1;
            take(row)
        })?;
        let path = folder.join(ROWS);
        let opened = OpenOptions::new().append(true).open(&path);
        // What a killed process left of its last frame would hide the frames behind it.
        let cut = opened.and_then(|file| file.set_len(len as u64).map(|()| file));
        let file = cut.map_err(|error| ResultsError::Io { path, error })?;
        let seconds = stored.manifest.wall_seconds;
        Recorder::on(folder, Manifest { rows, ..manifest }, file, seconds)
    }

    #[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
    fn on(
        folder: &Path,
        manifest: Manifest,
        file: File,
        earlier_seconds: f64,
    ) -> Result<Self, ResultsError> {
        let mut recorder = Recorder {
            folder: folder.to_owned(),
            manifest,
            file,
            lines: Vec::new(),
            began: Instant::now(),
            earlier_seconds,
        };
        recorder.manifest.is_complete = false;
        recorder.write_manifest()?;
        Ok(recorder)
    }

    /// Adds a row. It is in the file after the next [`Recorder::flush`].
    pub fn add(&mut self, row: &Row) {
        self.lines.extend(row.line().into_bytes());
        self.manifest.rows += 1;
    }

    /// Appends the rows that were added to the file.
    ///
    /// # Errors
    /// Returns [`ResultsError::Io`] if that fails.
    pub fn flush(&mut self) -> Result<(), ResultsError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let frame = frames::frame(&self.lines);
        let written = frame.and_then(|frame| self.file.write_all(&frame));
        written.map_err(|error| self.wrong(ROWS, error))?;
        self.lines.clear();
        self.write_manifest()
    }

    /// Removes rows that were added and are not asked for: runs that had begun when a failure ended the others.
    ///
    /// # Errors
    /// Returns [`ResultsError::Io`] if a file cannot be read or written.
    pub fn retain(&mut self, is_asked: impl Fn(&Row) -> bool) -> Result<(), ResultsError> {
        self.flush()?;
        let (mut lines, mut rows) = (Vec::new(), 0);
        let stored = Stored::read(&self.folder)?;
        stored.rows(|row| {
            if is_asked(&row) {
                lines.extend(row.line().into_bytes());
                rows += 1;
            }
            Ok(())
        })?;
        let frame = frames::frame(&lines).map_err(|error| self.wrong(ROWS, error))?;
        self.manifest.rows = rows;
        self.replace(ROWS, &frame)
    }

    /// Ends the results, and states whether all runs have ended.
    ///
    /// # Errors
    /// Returns [`ResultsError::Io`] if a file cannot be written.
    pub fn end(mut self, is_complete: bool) -> Result<(), ResultsError> {
        self.flush()?;
        self.manifest.is_complete = is_complete;
        self.write_manifest()
    }

    fn write_manifest(&mut self) -> Result<(), ResultsError> {
        self.manifest.wall_seconds = self.earlier_seconds + self.began.elapsed().as_secs_f64();
        let text = serde_json::to_string_pretty(&self.manifest).expect("BUG: a manifest is JSON");
        self.replace(MANIFEST, text.as_bytes())
    }

    /// Replaces a file in one step, so that a process that is killed leaves the old one or the new one.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), ResultsError> {
        let new = self.folder.join(format!("{name}.new"));
        let written = fs::write(&new, bytes);
        let replaced = written.and_then(|()| fs::rename(&new, self.folder.join(name)));
        replaced.map_err(|error| self.wrong(name, error))
    }

    fn wrong(&self, name: &str, error: io::Error) -> ResultsError {
        let path = self.folder.join(name);
        ResultsError::Io { path, error }
    }
}

impl Stored {
    /// Reads results that were written, maybe not to their end.
    ///
    /// # Errors
    /// Returns [`ResultsError::Io`] if a file cannot be read, and [`ResultsError::Foreign`] if it is something else.
    pub fn read(folder: &Path) -> Result<Self, ResultsError> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read(&path).map_err(|error| ResultsError::Io { path, error })
        };
        let manifest = serde_json::from_slice(&read(MANIFEST)?);
        let manifest = manifest.map_err(|error| ResultsError::Foreign {
            path: folder.join(MANIFEST),
            reason: error.to_string(),
        })?;
        Ok(Stored {
            folder: folder.to_owned(),
            manifest,
            frames: read(ROWS)?,
        })
    }

    /// Calls `take` with each row, in the order in which the runs ended. Returns the number of bytes of the file that
    /// are whole.
    ///
    /// # Errors
    /// Returns [`ResultsError::Foreign`] if the file has something else, or for an error of `take`.
    pub fn rows(
        &self,
        mut take: impl FnMut(Row) -> Result<(), String>,
    ) -> Result<usize, ResultsError> {
        let mut line_number = 0;
        let read = frames::read(&self.frames, |lines| {
            for line in lines.lines() {
                line_number += 1;
                let row = serde_json::from_str(line).map_err(|error| error.to_string());
                let taken = row.and_then(&mut take);
                taken.map_err(|why| io::Error::other(format!("line {line_number}: {why}")))?;
            }
            Ok(())
        });
        read.map_err(|error| ResultsError::Foreign {
            path: self.folder.join(ROWS),
            reason: error.to_string(),
        })
    }

    /// Returns the complete frames of the file of rows.
    pub(super) fn frames(&self) -> Result<&[u8], ResultsError> {
        let len = self.rows(|_| Ok(()))?;
        Ok(self.frames.get(..len).unwrap_or_default())
    }

    /// Writes results to a folder, which is created if needed.
    pub(super) fn write(
        folder: &Path,
        manifest: Manifest,
        frames: &[u8],
    ) -> Result<(), ResultsError> {
        let (rows, seconds) = (manifest.rows, manifest.wall_seconds);
        let mut recorder = Recorder::begin(folder, manifest)?;
        let written = recorder.file.write_all(frames);
        written.map_err(|error| recorder.wrong(ROWS, error))?;
        (recorder.manifest.rows, recorder.earlier_seconds) = (rows, seconds);
        recorder.manifest.is_complete = true;
        recorder.write_manifest()
    }
}
