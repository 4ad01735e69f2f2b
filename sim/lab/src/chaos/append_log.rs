//! The append-only file of a server, from which a power cut removes the latest writes.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use super::clock;

/// The lengths of a server's append-only file, each with the time of its reading.
#[derive(Debug, Default)]
pub(super) struct AppendLog {
    lengths: VecDeque<(u64, u64)>,
}

impl AppendLog {
    /// Records the current length of the file in this folder, if there is one.
    pub(super) fn look(&mut self, dir: &Path) {
        if let Some(length) = length(dir) {
            self.lengths.push_back((clock::now(), length));
        }
        // The readings of half a minute, one every 20 ms.
        while 1_500 < self.lengths.len() {
            self.lengths.pop_front();
        }
    }

    /// Removes what was written after a point in time. The server must be down.
    pub(super) fn cut(&mut self, dir: &Path, until: u64) -> io::Result<()> {
        let kept = self.lengths.iter().rev().find(|(at, _)| *at <= until);
        let kept = kept.map_or(0, |(_, length)| *length);
        if let Some(path) = file(dir) {
            let file = std::fs::OpenOptions::new().write(true).open(path)?;
            let length = file.metadata()?.len();
            file.set_len(length.min(kept))?;
        }
        // What survives this power cut also survives the next one.
        self.lengths.clear();
        self.lengths.push_back((0, length(dir).unwrap_or(0)));
        Ok(())
    }
}

fn length(dir: &Path) -> Option<u64> {
    Some(file(dir)?.metadata().ok()?.len())
}

/// Returns the path of the append-only file. Before Redis 7 there is a single file.
fn file(dir: &Path) -> Option<PathBuf> {
    let is_incremental = |path: &Path| {
        path.extension().is_some_and(|end| end == "aof")
            && path.to_string_lossy().contains(".incr.")
    };
    let files = std::fs::read_dir(dir.join("appendonlydir"));
    let files = files
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| file.path());
    let last = files.filter(|path| is_incremental(path)).max();
    last.or_else(|| Some(dir.join("appendonly.aof")).filter(|path| path.exists()))
}
