//! Runs that follow from the rows of earlier ones, with results in one folder.

use std::collections::BTreeMap;

use super::ordered::Ordered;
use super::{Extent, Runs, RunsError, Start, TakeRow, Target};
use crate::study::results::{Recorder, Row};

/// Results to which several runs add, one after the other. It has the rows that were there in memory.
#[derive(Debug, Default)]
pub struct Session {
    recorder: Option<Recorder>,
    known: BTreeMap<(String, u64), Row>,
}

impl Session {
    /// Opens results. Without a target, nothing is recorded.
    ///
    /// # Errors
    /// Returns [`RunsError`] if results cannot be read or written.
    pub fn open(target: Option<Target<'_>>) -> Result<Self, RunsError> {
        let mut session = Session::default();
        let Some(target) = target else {
            return Ok(session);
        };
        let known = &mut session.known;
        session.recorder = Some(match target.start {
            Start::New => Recorder::begin(target.folder, target.manifest)?,
            Start::Resumed => Recorder::resume(target.folder, target.manifest, |row| {
                known.insert((row.cell.clone(), row.seed), row);
                Ok(())
            })?,
        });
        Ok(session)
    }

    /// Runs what is not there of these runs. `take` receives the rows of each cell in the order of their seeds.
    ///
    /// # Errors
    /// Returns [`RunsError`] if results cannot be written.
    pub fn run(&mut self, runs: &Runs<'_>, take: TakeRow<'_>) -> Result<Extent, RunsError> {
        let mut ordered = Ordered::new(runs, take);
        // Nothing is known of most runs.
        let cells = match self.known.is_empty() {
            true => [].as_slice(),
            false => runs.cells.as_slice(),
        };
        for cell in cells {
            for seed in cell.seeds.clone() {
                let Some(row) = self.known.remove(&(cell.name.clone(), seed)) else {
                    continue;
                };
                let pushed = ordered.push_read(row);
                pushed.expect("BUG: the cell has this seed");
            }
        }
        runs.drive(ordered, &mut self.recorder, &|_| Ok(()))
    }

    /// Ends the results.
    ///
    /// # Errors
    /// Returns [`RunsError`] if they cannot be written.
    pub fn end(self, extent: Extent) -> Result<(), RunsError> {
        match self.recorder {
            Some(recorder) => Ok(recorder.end(extent == Extent::Complete)?),
            None => Ok(()),
        }
    }
}
