//! What threads do with the seeds that they take.

use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ordered::Ordered;
use super::{Extent, Runs, RunsError, WithRun};
use crate::simulation::run;
use crate::study::results::{Recorder, ResultsError, Row};
use crate::study::time_limit::TimeLimit;

/// Some seeds of a cell.
pub(super) struct Piece {
    /// The index of the cell.
    pub(super) cell: usize,
    /// The numbers of the seeds in the shard.
    pub(super) nths: Range<u64>,
}

/// What the threads share.
pub(super) struct Work<'a, 'r> {
    runs: &'a Runs<'a>,
    with_run: WithRun<'a>,
    limit: TimeLimit,
    deadline: Option<Instant>,
    is_stopped: AtomicBool,
    rows: Mutex<Rows<'a, 'r>>,
}

struct Rows<'a, 'r> {
    ordered: Ordered<'a>,
    recorder: &'r mut Option<Recorder>,
    trouble: Option<RunsError>,
}

/// How often rows are written to their file. A killed process loses what it had since then, which must be less than a second.
const BETWEEN_FLUSHES: Duration = Duration::from_millis(500);

impl<'a, 'r> Work<'a, 'r> {
    #[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
    pub(super) fn new(
        runs: &'a Runs<'a>,
        with_run: WithRun<'a>,
        ordered: Ordered<'a>,
        recorder: &'r mut Option<Recorder>,
    ) -> Self {
        Work {
            runs,
            with_run,
            limit: TimeLimit::new(),
            deadline: runs
                .within
                .and_then(|within| Instant::now().checked_add(within)),
            is_stopped: AtomicBool::new(false),
            rows: Mutex::new(Rows {
                ordered,
                recorder,
                trouble: None,
            }),
        }
    }

    /// Runs those seeds of a piece that are still needed.
    pub(super) fn run(&self, piece: &Piece) {
        for nth in piece.nths.clone() {
            if self.is_stopped() || !self.rows().ordered.needs(piece.cell, nth) {
                continue;
            }
            if let Err(error) = self.run_one(piece.cell, nth) {
                self.fail(error);
            }
        }
    }

    fn run_one(&self, index: usize, nth: u64) -> Result<(), RunsError> {
        let Some(cell) = self.runs.cells.get(index) else {
            return Ok(());
        };
        let seed = self.runs.shard.seed(&cell.seeds, nth);
        let ended = self
            .limit
            .with(&cell.name, seed, || run(&Rc::new((cell.plan)(seed))));
        // Files are written before the row: a run whose row is there is not run again.
        (self.with_run)(&ended)?;
        let row = Row::of(&cell.name, &ended, cell.measure);
        let mut rows = self.rows();
        if let Some(recorder) = rows.recorder.as_mut() {
            recorder.add(&row);
        }
        rows.ordered.push(index, nth, row);
        Ok(())
    }

    /// Writes rows to their file until the sender is dropped.
    pub(super) fn flush_until(&self, is_dropped: Receiver<()>) {
        while is_dropped.recv_timeout(BETWEEN_FLUSHES) == Err(RecvTimeoutError::Timeout) {
            let flushed = match self.rows().recorder.as_mut() {
                Some(recorder) => recorder.flush(),
                None => return,
            };
            if let Err(error) = flushed {
                self.fail(error.into());
            }
        }
    }

    /// Returns the number of seeds that need no run any more.
    pub(super) fn settled(&self) -> u64 {
        self.rows().ordered.settled()
    }

    /// Ends the results.
    pub(super) fn end(self) -> Result<Extent, RunsError> {
        let rows = self
            .rows
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let Rows {
            mut ordered,
            recorder,
            trouble,
        } = rows;
        let is_complete = ordered.end();
        if let Some(recorder) = recorder {
            finish(recorder, &ordered)?;
        }
        match (trouble, is_complete) {
            (Some(trouble), _) => Err(trouble),
            (None, true) => Ok(Extent::Complete),
            (None, false) => Ok(Extent::Partial),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
    fn is_stopped(&self) -> bool {
        let is_late = self
            .deadline
            .is_some_and(|deadline| deadline <= Instant::now());
        is_late || self.is_stopped.load(Ordering::Relaxed)
    }

    fn fail(&self, error: RunsError) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.rows().trouble.get_or_insert(error);
    }

    fn rows(&self) -> MutexGuard<'_, Rows<'a, 'r>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the rows that are asked for, and removes the others.
fn finish(recorder: &mut Recorder, ordered: &Ordered<'_>) -> Result<(), ResultsError> {
    match ordered.has_surplus() {
        true => recorder.retain(|row| ordered.is_asked(row)),
        false => recorder.flush(),
    }
}
