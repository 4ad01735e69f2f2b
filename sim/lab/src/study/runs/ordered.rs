//! The rows of each cell in the order of its seeds, whatever the order in which runs end.

use std::collections::BTreeMap;

use super::{Runs, TakeRow};
use crate::study::results::Row;

/// Passes rows on in the order of their seeds, up to the last row of each cell.
pub(super) struct Ordered<'a> {
    runs: &'a Runs<'a>,
    progress: Vec<Progress>,
    indices: BTreeMap<&'a str, usize>,
    take: TakeRow<'a>,
    /// The number of rows that were pushed and are not asked for.
    surplus: u64,
}

/// How far a cell has come.
#[derive(Default)]
struct Progress {
    /// The number of seeds of the shard.
    len: u64,
    /// The number of rows that were passed on.
    next: u64,
    /// Rows behind one that is missing.
    held: BTreeMap<u64, Row>,
    /// The smallest number of a row that is known to be the last of its cell.
    last: Option<u64>,
}

impl Progress {
    /// Whether a row was passed on behind which none is asked for.
    fn is_over(&self) -> bool {
        self.last.is_some_and(|last| last < self.next)
    }

    fn is_complete(&self) -> bool {
        self.is_over() || self.next == self.len
    }
}

impl<'a> Ordered<'a> {
    pub(super) fn new(runs: &'a Runs<'a>, take: TakeRow<'a>) -> Self {
        let lens = runs.cells.iter().map(|cell| runs.shard.len(&cell.seeds));
        let progress = lens.map(|len| Progress {
            len,
            ..Progress::default()
        });
        let cells = runs.cells.iter().enumerate();
        Ordered {
            runs,
            progress: progress.collect(),
            indices: cells
                .map(|(index, cell)| (cell.name.as_str(), index))
                .collect(),
            take,
            surplus: 0,
        }
    }

    /// Returns whether the run of a seed is still needed.
    pub(super) fn needs(&self, cell: usize, nth: u64) -> bool {
        self.progress.get(cell).is_some_and(|progress| {
            let is_behind = progress.last.is_some_and(|last| last < nth);
            !is_behind && progress.next <= nth && !progress.held.contains_key(&nth)
        })
    }

    /// Adds a row that was read from results.
    pub(super) fn push_read(&mut self, row: Row) -> Result<(), String> {
        match self.place(&row) {
            Some((cell, nth)) => {
                self.push(cell, nth, row);
                Ok(())
            }
            None => Err(format!(
                "seed {} of {:?} is not asked for",
                row.seed, row.cell
            )),
        }
    }

    /// Adds a row. Passes on what follows without a gap.
    pub(super) fn push(&mut self, cell: usize, nth: u64, row: Row) {
        if !self.needs(cell, nth) {
            self.surplus += 1;
            return;
        }
        let is_last = self
            .runs
            .cells
            .get(cell)
            .and_then(|cell| cell.is_last.as_ref());
        let Some(progress) = self.progress.get_mut(cell) else {
            return;
        };
        if is_last.is_some_and(|is_last| is_last(&row)) {
            progress.last = Some(nth);
            // Later runs had begun before this one ended.
            self.surplus += progress.held.split_off(&nth).len() as u64;
        }
        progress.held.insert(nth, row);
        while let Some(row) = progress.held.remove(&progress.next) {
            progress.next += 1;
            (self.take)(cell, row);
        }
    }

    /// Returns whether rows were pushed that are not asked for.
    pub(super) fn has_surplus(&self) -> bool {
        0 < self.surplus
    }

    /// Returns whether a row that was pushed is asked for.
    pub(super) fn is_asked(&self, row: &Row) -> bool {
        self.place(row).is_some_and(|(cell, nth)| {
            let last = self.progress.get(cell).and_then(|progress| progress.last);
            last.is_none_or(|last| nth <= last)
        })
    }

    /// Returns the number of seeds that need no run any more.
    pub(super) fn settled(&self) -> u64 {
        let settled = self
            .progress
            .iter()
            .map(|progress| match progress.is_over() {
                true => progress.len,
                false => progress.next + progress.held.len() as u64,
            });
        settled.sum()
    }

    /// Passes on the rows behind gaps. Returns whether there was none.
    pub(super) fn end(&mut self) -> bool {
        let is_complete = self.progress.iter().all(Progress::is_complete);
        for (cell, progress) in self.progress.iter_mut().enumerate() {
            for row in std::mem::take(&mut progress.held).into_values() {
                (self.take)(cell, row);
            }
        }
        is_complete
    }

    fn place(&self, row: &Row) -> Option<(usize, u64)> {
        let index = *self.indices.get(row.cell.as_str())?;
        let seeds = &self.runs.cells.get(index)?.seeds;
        Some((index, self.runs.shard.nth(seeds, row.seed)?))
    }
}
