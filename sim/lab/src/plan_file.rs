//! Reads and writes plans in TOML.

pub(crate) mod document;
mod shorthand;

use std::fs;
use std::path::{Path, PathBuf};

use quorlock_sim::report::Picture;
use quorlock_sim_plan::{Plan, PlanError};
use toml::Spanned;
use toml::de::DeValue;

use document::DocumentPart;
pub use document::{Misreading, Position};
use shorthand::spell_out;

/// The error of a plan in a file.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file contains no plan.
    #[error("{path}:{}: {error}", error.at)]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The place in the file, and the reason.
        error: Misreading,
    },
    /// The file is empty.
    #[error("{path}: the file is empty; this is a small one:\n\n{example}")]
    Empty {
        /// The file.
        path: PathBuf,
        /// What may be in it.
        example: &'static str,
    },
    /// The plan cannot be written.
    #[error("{0}")]
    Write(#[from] toml::ser::Error),
    /// The plan of the file cannot be run.
    #[error("{}: {error}", place(path, *at))]
    InFile {
        /// The file.
        path: PathBuf,
        /// The place in the file, if the file sets the wrong field.
        at: Option<Position>,
        /// The error.
        error: PlanError,
    },
}

/// Formats a file name, with a place in the file if there is one.
pub(crate) fn place(path: &Path, at: Option<Position>) -> String {
    match at {
        Some(at) => format!("{}:{at}", path.display()),
        None => path.display().to_string(),
    }
}

/// Reads and checks a plan from a file.
///
/// # Errors
/// Returns [`PlanFileError`] with the file and the place in it.
pub fn read(path: &Path) -> Result<Plan, PlanFileError> {
    let io = |error| PlanFileError::Io {
        path: path.to_owned(),
        error,
    };
    let text = fs::read_to_string(path).map_err(io)?;
    parse(path, &text)
}

/// Reads and checks a plan from the text of a file.
///
/// # Errors
/// Returns the same errors as [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Plan, PlanFileError> {
    let syntax = |error| PlanFileError::Syntax {
        path: path.to_owned(),
        error,
    };
    let table = document::parse(text).map_err(syntax)?;
    checked(path, text, Spanned::new(0..0, table))
}

/// Reads a plan from a table of a file, and checks it.
///
/// # Errors
/// Returns the same errors as [`read`].
pub(crate) fn checked(
    path: &Path,
    text: &str,
    table: Spanned<DocumentPart<'_>>,
) -> Result<Plan, PlanFileError> {
    let read = plan_of(text, table);
    let (plan, table) = read.map_err(|error| PlanFileError::Syntax {
        path: path.to_owned(),
        error,
    })?;
    quorlock_sim_plan::check(&plan).map_err(|error| PlanFileError::InFile {
        path: path.to_owned(),
        at: error
            .field()
            .and_then(|field| document::locate(text, &table, &field)),
        error,
    })?;
    Ok(plan)
}

/// Reads what a picture of the run shows, if the file states it.
///
/// # Errors
/// Returns [`PlanFileError`] with the file and the place in it.
pub fn picture(path: &Path, text: &str) -> Result<Option<Picture>, PlanFileError> {
    let syntax = |error| PlanFileError::Syntax {
        path: path.to_owned(),
        error,
    };
    let mut table = document::parse(text).map_err(syntax)?;
    let Some(picture) = table.remove("picture") else {
        return Ok(None);
    };
    let span = picture.span();
    let DeValue::Table(picture) = picture.into_inner() else {
        return Ok(None);
    };
    document::read(text, Spanned::new(span, picture))
        .map(Some)
        .map_err(syntax)
}

/// Returns the plan of a table, before it is checked. Also returns the table with all shorthand expanded.
pub(crate) fn plan_of<'a>(
    text: &str,
    mut table: Spanned<DocumentPart<'a>>,
) -> Result<(Plan, DocumentPart<'a>), Misreading> {
    spell_out(table.get_mut()).map_err(|misfit| misfit.in_text(text))?;
    let mut plan: Plan = document::read(text, table.clone())?;
    let (clients, nodes) = (plan.clients, plan.nodes.count);
    for fault in &mut plan.faults {
        fault.strike_all(clients, nodes);
    }
    Ok((plan, table.into_inner()))
}

/// Writes a plan as TOML.
///
/// # Errors
/// Returns [`PlanFileError::Write`] if the plan cannot be written.
pub fn write(plan: &Plan) -> Result<String, PlanFileError> {
    Ok(toml::to_string(plan)?)
}
