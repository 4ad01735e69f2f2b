//! The results of shards, and their sum.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Manifest, ResultsError, Row, Shard, Stored, Tallies};

/// Why results are not the shards of the same runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There are no results.
    #[error("there is nothing to merge")]
    Nothing,
    /// Results cannot be read or written.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// Two shards are not of the same runs.
    #[error(
        "{folder}: shard {shard} is of other runs: its {what} is {other}, and that of shard {first} is {one}"
    )]
    Differs {
        /// The folder of the shard that differs.
        folder: String,
        /// The shard that differs.
        shard: Shard,
        /// The shard that was read first.
        first: Shard,
        /// What differs.
        what: &'static str,
        /// The value of the first.
        one: String,
        /// The value of the other.
        other: String,
    },
    /// A shard was given twice.
    #[error("{folder}: shard {shard} is given twice")]
    Twice {
        /// The folder.
        folder: String,
        /// The shard.
        shard: Shard,
    },
    /// A shard was not run to its end.
    #[error(
        "{folder}: shard {shard} has {rows} rows and is not complete: continue it with --resume"
    )]
    Incomplete {
        /// The folder.
        folder: String,
        /// The shard.
        shard: Shard,
        /// The number of its rows.
        rows: u64,
    },
    /// Some shards were not given.
    #[error("the results are not complete: there is no shard {}", .shards.join(", "))]
    Missing {
        /// The shards.
        shards: Vec<String>,
    },
}

/// Returns the shards in their order, if they are all shards of the same runs.
///
/// # Errors
/// Returns [`MergeError`] if they are not, if one is missing, given twice or not complete: their sum would state more or
/// fewer runs than there were.
pub fn together(all: Vec<Stored>) -> Result<Vec<Stored>, MergeError> {
    let Some(first) = all.first().map(|stored| stored.manifest.clone()) else {
        return Err(MergeError::Nothing);
    };
    let mut by_index = BTreeMap::new();
    for stored in all {
        check(&first, &stored)?;
        let shard = stored.manifest.shard;
        let folder = stored.folder.display().to_string();
        if by_index.insert(shard.index, stored).is_some() {
            return Err(MergeError::Twice { folder, shard });
        }
    }
    let of = first.shard.of;
    let missing = (0..of).filter(|index| !by_index.contains_key(index));
    let shards: Vec<String> = missing
        .map(|index| Shard { index, of }.to_string())
        .collect();
    if !shards.is_empty() {
        return Err(MergeError::Missing { shards });
    }
    Ok(by_index.into_values().collect())
}

fn check(first: &Manifest, stored: &Stored) -> Result<(), MergeError> {
    let manifest = &stored.manifest;
    let folder = stored.folder.display().to_string();
    let shard = manifest.shard;
    let mut pairs = first.common().into_iter().zip(manifest.common());
    if let Some(((what, one), (_, other))) = pairs.find(|(one, other)| one != other) {
        return Err(MergeError::Differs {
            folder,
            shard,
            first: first.shard,
            what,
            one,
            other,
        });
    }
    if !manifest.is_complete {
        let rows = manifest.rows;
        return Err(MergeError::Incomplete {
            folder,
            shard,
            rows,
        });
    }
    Ok(())
}

/// Calls `take` with each row of shards, which must be [`together`], and with the index of its cell in their manifest.
///
/// # Errors
/// Returns [`ResultsError`] if a file has something else than rows of these cells.
pub fn each_row(shards: &[Stored], take: &mut dyn FnMut(usize, Row)) -> Result<(), ResultsError> {
    for stored in shards {
        let cells = stored.manifest.cells.iter().enumerate();
        let indices: BTreeMap<&str, usize> = cells
            .map(|(index, cell)| (cell.cell.as_str(), index))
            .collect();
        stored.rows(|row| {
            let cell = indices.get(row.cell.as_str());
            let cell = *cell.ok_or_else(|| format!("{:?} is no cell of the manifest", row.cell))?;
            take(cell, row);
            Ok(())
        })?;
    }
    Ok(())
}

impl Tallies {
    /// Adds up the rows of shards, which must be [`together`].
    ///
    /// # Errors
    /// Returns [`ResultsError`] if a file has something else than rows.
    pub fn read(shards: &[Stored]) -> Result<Self, ResultsError> {
        let cells = shards
            .first()
            .map_or(0, |stored| stored.manifest.cells.len());
        let mut tallies = Tallies::new(cells);
        each_row(shards, &mut |cell, row| tallies.add(cell, &row))?;
        Ok(tallies)
    }
}

/// Writes the rows of all shards, which must be [`together`], to one folder: the results that one machine would have had,
/// in another order of rows.
///
/// # Errors
/// Returns [`ResultsError`] if a file cannot be read or written.
pub fn merge(shards: &[Stored], folder: &Path) -> Result<(), ResultsError> {
    let Some(first) = shards.first() else {
        return Ok(());
    };
    let mut manifest = first.manifest.clone();
    manifest.shard = Shard::WHOLE;
    manifest.rows = shards.iter().map(|stored| stored.manifest.rows).sum();
    let seconds = shards.iter().map(|stored| stored.manifest.wall_seconds);
    manifest.wall_seconds = seconds.sum();
    let mut frames = Vec::new();
    for stored in shards {
        frames.extend_from_slice(stored.frames()?);
    }
    Stored::write(folder, manifest, &frames)
}
