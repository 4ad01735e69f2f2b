//! The results of many runs, in one form for all commands: a folder with the file `rows.jsonl.zst`, which has a line for
//! each run, and the file `manifest.json`, which states what ran.
//!
//! Rows are appended while the runs go on, in frames that are complete by themselves. A process that is killed loses at
//! most the rows of the last second, and its successor continues behind them. The schemas of both files are in
//! `sim/lab/schemas`.

mod folder;
mod frames;
mod manifest;
mod merge;
mod row;
mod shard;
mod tally;

pub use folder::{Recorder, ResultsError, Stored};
pub use manifest::{CellSeeds, Host, Manifest};
pub use merge::{MergeError, each_row, merge, together};
pub use row::{Effects, Row, RowVerdict};
pub use shard::Shard;
pub use tally::{Count, FaultCount, Tallies, Tally};
