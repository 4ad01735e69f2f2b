//! The file of a study.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::DeValue;

use super::axis::{Axis, Setting};
use super::cell::CellPlans;
use super::points::{Filling, Space};
use crate::plan_file::document::{self, DocumentPart, Misfit};
use crate::plan_file::{Misreading, PlanFileError, Position, place};
use crate::study::lock_changes::{items, with_changes};
use quorlock_sim_plan::property::Property;

/// A study: a plan whose numbers are varied or drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct Experiment {
    /// What is studied, in a line.
    pub title: String,
    /// The property that counts.
    pub property: Property,
    /// The largest number of runs of a cell.
    pub runs: u64,
    /// A cell ends when half of the distance of its bounds is at most this. `None` if it has all of its runs.
    pub half_width: Option<f64>,
    /// What is varied.
    pub axes: Vec<Axis>,
    /// The settings of each point, one for each axis.
    pub points: Vec<Vec<Setting>>,
    /// The locks. At least one.
    pub locks: Vec<Contender>,
    /// The pictures.
    pub pictures: Vec<PictureKind>,
    path: PathBuf,
    text: String,
}

/// A lock of a study.
#[derive(Clone, PartialEq, Debug)]
pub struct Contender {
    /// Its name.
    pub name: String,
    /// What is expected of it.
    pub expect: Expected,
}

/// What is expected of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// A share, which may be zero: nothing is wrong, whatever it is.
    #[default]
    Rate,
    /// The property holds in all runs.
    Holds,
}

/// What a picture shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureKind {
    /// The share over the first axis, with its bounds. Each lock is a line for each setting of the other axes.
    Curve,
    /// The share over two axes, a panel for each lock.
    HeatMap,
    /// The share of runs that have not broken yet, over time.
    Survival,
    /// The share over the number of requests for each hold.
    Cost,
    /// The share of each cell, one below the other.
    Forest,
}

impl PictureKind {
    /// Returns the name of the kind, as in the file of a study.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PictureKind::Curve => "curve",
            PictureKind::HeatMap => "heat-map",
            PictureKind::Survival => "survival",
            PictureKind::Cost => "cost",
            PictureKind::Forest => "forest",
        }
    }

    /// Returns the picture of a study whose file names none.
    fn usual(axes: &[Axis]) -> Self {
        match axes.len() {
            0 => PictureKind::Forest,
            1 => PictureKind::Curve,
            _ => PictureKind::HeatMap,
        }
    }
}

/// An error of a study.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The file cannot be read, or has no study.
    #[error(transparent)]
    File(#[from] PlanFileError),
    /// The plans of a cell cannot be run.
    #[error("{}: {cell}: {why}", place(path, *at))]
    Cell {
        /// The file.
        path: PathBuf,
        /// The place in the file, if it sets the wrong field.
        at: Option<Position>,
        /// The cell.
        cell: String,
        /// The reason.
        why: String,
    },
}

/// The keys of the file besides its tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    title: String,
    #[serde(default)]
    property: Option<Property>,
    #[serde(default)]
    runs: Option<u64>,
    #[serde(default)]
    half_width: Option<f64>,
    #[serde(default)]
    expect: Expected,
    #[serde(default)]
    pictures: Option<Vec<PictureKind>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockHeader {
    name: String,
    #[serde(default)]
    expect: Option<Expected>,
}

/// The number of runs of a cell if the file does not set one.
const RUNS: u64 = 1_000;

/// A small study.
const SMALL: &str = "\
title = \"Double holds when a server forgets everything\"
[plan]
lock = \"single\"
nodes = { count = 1 }
[[plan.faults]]
kind = \"flush\"
at = { draw = \"uniform(0s, 2s)\" }
node = 0
";

/// The name of the lock of a study that has only one.
const ONLY: &str = "the lock";

impl Experiment {
    /// Reads a study from a file.
    ///
    /// # Errors
    /// Returns [`StudyError`] with the file and the place in it.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        let text = std::fs::read_to_string(path).map_err(|error| PlanFileError::Io {
            path: path.to_owned(),
            error,
        })?;
        Experiment::parse(path, &text)
    }

    /// Reads a study from the text of a file, and checks the plans of all cells.
    ///
    /// # Errors
    /// Returns the same errors as [`Experiment::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, StudyError> {
        let syntax = |error| PlanFileError::Syntax {
            path: path.to_owned(),
            error,
        };
        let misfit = |misfit: Misfit| syntax(misfit.in_text(text));
        let mut table = document::parse(text).map_err(syntax)?;
        if table.is_empty() {
            return Err(StudyError::File(PlanFileError::Empty {
                path: path.to_owned(),
                example: SMALL,
            }));
        }
        let space = space(&mut table).map_err(misfit)?;
        let mut locks = Vec::new();
        for part in items(text, table.remove("lock")).map_err(misfit)? {
            locks.push(lock(text, part).map_err(syntax)?);
        }
        for key in ["plan", "process"] {
            table.remove(key);
        }
        let header: Header = document::read_whole(text, table).map_err(syntax)?;
        if locks.is_empty() {
            locks.push((ONLY.to_owned(), None));
        }
        let locks = locks.into_iter().map(|(name, expect)| Contender {
            name,
            expect: expect.unwrap_or(header.expect),
        });
        let usual = || vec![PictureKind::usual(&space.axes)];
        let pictures = header.pictures.unwrap_or_else(usual);
        let study = Experiment {
            title: header.title,
            property: header.property.unwrap_or(Property::Exclusion),
            runs: header.runs.unwrap_or(RUNS).max(1),
            half_width: header.half_width,
            axes: space.axes,
            points: space.points,
            locks: locks.collect(),
            pictures,
            path: path.to_owned(),
            text: text.to_owned(),
        };
        study.cells()?;
        Ok(study)
    }

    /// Returns the text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the name of the file without its ending.
    #[must_use]
    pub fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// Returns the name of the cell of a point and a lock.
    #[must_use]
    pub fn cell_name(&self, point: usize, lock: usize) -> String {
        let settings = self.points.get(point).into_iter().flatten();
        let settings = self.axes.iter().zip(settings);
        let mut words: Vec<String> = settings
            .map(|(axis, setting)| format!("{} = {}", axis.name, setting.text))
            .collect();
        words.extend(self.locks.get(lock).map(|lock| lock.name.clone()));
        words.join(", ")
    }

    /// Reads the cells: each lock at each point.
    pub(super) fn cells(&self) -> Result<Vec<CellPlans<'_>>, StudyError> {
        let syntax = |error| PlanFileError::Syntax {
            path: self.path.clone(),
            error,
        };
        let mut table = document::parse(&self.text).map_err(syntax)?;
        let parts = items(&self.text, table.remove("lock"))
            .map_err(|misfit| syntax(misfit.in_text(&self.text)))?;
        let mut document = DocumentPart::new();
        for key in ["plan", "process"] {
            document.extend(table.remove_entry(key));
        }
        let mut bases = Vec::new();
        for part in parts {
            let changed = with_changes(document.clone(), part);
            bases.push(changed.map_err(|misfit| syntax(misfit.in_text(&self.text)))?);
        }
        if bases.is_empty() {
            bases.push(document);
        }
        let mut cells = Vec::new();
        for (point, settings) in self.points.iter().enumerate() {
            for (lock, base) in bases.iter().enumerate() {
                let varied = self.axes.iter().zip(settings);
                let read = CellPlans::read((point, lock), &self.text, base.clone(), varied);
                cells.push(read.map_err(|misfit| StudyError::Cell {
                    path: self.path.clone(),
                    at: misfit.at,
                    cell: self.cell_name(point, lock),
                    why: misfit.why,
                })?);
            }
        }
        Ok(cells)
    }
}

/// The tables of what is varied. A study has one of them.
const SPACES: [&str; 3] = ["grid", "sobol", "latin-hypercube"];

/// Takes what is varied. Without it, there is one point.
fn space(table: &mut DocumentPart<'_>) -> Result<Space, Misfit> {
    let mut found: Option<Space> = None;
    for key in SPACES {
        let Some(value) = table.remove(key) else {
            continue;
        };
        let span = value.span();
        let DeValue::Table(axes) = value.into_inner() else {
            return Err(Misfit::new(span, format!("{key}: write a table")));
        };
        let read = match key {
            "grid" => Space::grid(&axes, &span)?,
            "sobol" => Space::filled(&axes, &span, Filling::Sobol)?,
            _ => Space::filled(&axes, &span, Filling::LatinHypercube)?,
        };
        if found.replace(read).is_some() {
            let why = "a study has one of grid, sobol and latin-hypercube";
            return Err(Misfit::new(span, why));
        }
    }
    Ok(found.unwrap_or(Space {
        axes: Vec::new(),
        points: vec![Vec::new()],
    }))
}

/// Reads the name of a lock, and what is expected of it.
fn lock(text: &str, mut part: DocumentPart<'_>) -> Result<(String, Option<Expected>), Misreading> {
    for key in ["plan", "process"] {
        part.remove(key);
    }
    let header: LockHeader = document::read_whole(text, part)?;
    Ok((header.name, header.expect))
}
