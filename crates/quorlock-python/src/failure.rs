//! Errors of the library, as exceptions of `quorlock.errors`.

use std::io;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use quorlock::errors::{HandOverProblem, NodeReport, TicketError};
use quorlock::operate::ForceReleaseError;
use quorlock::{
    AcquireError, ConfigError, ConfirmError, ConnectError, ErrorKind, Lost, ReleaseError,
};

/// The parts of an exception that Python will raise: its class, what a caller can do about it, and which case of the class it is.
struct Failure {
    class: &'static str,
    kind: &'static str,
    case: &'static str,
    message: String,
    /// One line for each node that failed.
    nodes: Vec<String>,
}

impl Failure {
    fn new(class: &'static str, kind: &'static str, case: &'static str, message: String) -> Self {
        Failure {
            class,
            kind,
            case,
            message,
            nodes: Vec::new(),
        }
    }

    fn of(mut self, nodes: &[NodeReport]) -> Self {
        self.nodes = nodes.iter().map(ToString::to_string).collect();
        self
    }

    fn raise(self, py: Python<'_>) -> PyErr {
        let made = || {
            let class = py.import("quorlock.errors")?.getattr(self.class)?;
            let details = PyDict::new(py);
            details.set_item("kind", self.kind)?;
            details.set_item("case", self.case)?;
            details.set_item("nodes", self.nodes)?;
            class.call((self.message,), Some(&details))
        };
        made().map_or_else(|error| error, PyErr::from_value)
    }
}

/// The error of an acquisition.
pub(crate) fn acquire(py: Python<'_>, error: &AcquireError) -> PyErr {
    let kind = match error.kind() {
        ErrorKind::Busy => "busy",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Closed => return closed(py),
        _ => "misconfigured",
    };
    let case = match error {
        AcquireError::Contended { .. } => "contended",
        AcquireError::NoQuorum { .. } => "no_quorum",
        AcquireError::Refused { .. } => "refused",
        AcquireError::TooSlow { .. } => "too_slow",
        AcquireError::OtherMode { .. } => "other_mode",
        AcquireError::Overlap { .. } => "overlap",
        AcquireError::Upgrade { .. } => "upgrade",
        AcquireError::TooManyEntries { .. } => "too_many_entries",
        AcquireError::Config(error) => return config(py, error),
        _ => "other",
    };
    let failure = Failure::new("AcquireError", kind, case, error.to_string());
    match error {
        AcquireError::NoQuorum { nodes, .. } | AcquireError::Refused { nodes, .. } => {
            failure.of(nodes).raise(py)
        }
        _ => failure.raise(py),
    }
}

/// The error of a release.
pub(crate) fn release(py: Python<'_>, error: &ReleaseError) -> PyErr {
    let text = error.to_string();
    match error {
        ReleaseError::Unconfirmed { nodes, .. } => {
            let failure = Failure::new("ReleaseError", "unavailable", "unconfirmed", text);
            failure.of(nodes).raise(py)
        }
        _ => Failure::new("ReleaseError", "lost", "not_held", text).raise(py),
    }
}

/// The error of an extension or a re-entry.
pub(crate) fn confirm(py: Python<'_>, error: &ConfirmError) -> PyErr {
    let text = error.to_string();
    match error {
        ConfirmError::Lost { lost, .. } => {
            Failure::new("LostError", "lost", how(*lost), text).raise(py)
        }
        ConfirmError::Unconfirmed { nodes, .. } => {
            let failure = Failure::new("ConfirmError", "unavailable", "unconfirmed", text);
            failure.of(nodes).raise(py)
        }
        ConfirmError::Config(error) => config(py, error),
        _ => Failure::new("ConfirmError", "misconfigured", "too_many_entries", text).raise(py),
    }
}

/// The error of a hand-over. The guard holds the lock as before, unless it is lost.
pub(crate) fn hand_over(py: Python<'_>, problem: HandOverProblem, message: String) -> PyErr {
    let case = match problem {
        HandOverProblem::Lost(lost) => {
            return Failure::new("LostError", "lost", how(lost), message).raise(py);
        }
        HandOverProblem::Shared => "shared",
        HandOverProblem::Reads => "reads",
        HandOverProblem::SeveralClients => "several_clients",
        _ => "other",
    };
    Failure::new("HandOverError", "misconfigured", case, message).raise(py)
}

/// The error of a text that is no ticket.
pub(crate) fn ticket(py: Python<'_>, error: &TicketError) -> PyErr {
    Failure::new("ConfigError", "misconfigured", "ticket", error.to_string()).raise(py)
}

/// The error of making a client.
pub(crate) fn connect(py: Python<'_>, error: &ConnectError) -> PyErr {
    let (kind, case) = match error {
        ConnectError::Config(error) => return config(py, error),
        ConnectError::Nodes { .. } if error.is_final() => ("misconfigured", "nodes"),
        ConnectError::Nodes { .. } => ("unavailable", "nodes"),
        ConnectError::Feature { .. } => ("misconfigured", "feature"),
        ConnectError::Thread { .. } => ("unavailable", "thread"),
        _ => ("misconfigured", "address"),
    };
    let mut failure = Failure::new("ConnectError", kind, case, error.to_string());
    if let ConnectError::Nodes { problems, .. } = error {
        failure.nodes = problems.iter().map(ToString::to_string).collect();
    }
    failure.raise(py)
}

/// The error of a release by force.
pub(crate) fn force(py: Python<'_>, error: &ForceReleaseError) -> PyErr {
    match error {
        ForceReleaseError::Config(error) => config(py, error),
        _ => {
            let text = error.to_string();
            Failure::new("ReleaseError", "unavailable", "unconfirmed", text).raise(py)
        }
    }
}

/// The error of a setting.
pub(crate) fn config(py: Python<'_>, error: &ConfigError) -> PyErr {
    setting(py, error.to_string())
}

/// The error of a setting, in these words.
pub(crate) fn setting(py: Python<'_>, message: String) -> PyErr {
    Failure::new("ConfigError", "misconfigured", "setting", message).raise(py)
}

/// Names the argument in an error of its value.
pub(crate) fn of_argument(py: Python<'_>, name: &str, error: &PyErr) -> PyErr {
    let said = format!("{name}: {}", error.value(py));
    match error.is_instance_of::<PyTypeError>(py) {
        true => PyTypeError::new_err(said),
        false => setting(py, said),
    }
}

/// The error of a span that is negative, not a number, or longer than any clock counts.
pub(crate) fn span(py: Python<'_>, seconds: f64) -> PyErr {
    setting(
        py,
        format!(
            "{seconds} s is not a span of time: it must be a number from zero on, within a hundred years"
        ),
    )
}

/// The error of a guard whose lock is lost, or was released.
pub(crate) fn lost(py: Python<'_>, lost: Lost) -> PyErr {
    Failure::new("LostError", "lost", how(lost), lost.to_string()).raise(py)
}

/// The error of an object whose client was closed.
pub(crate) fn closed(py: Python<'_>) -> PyErr {
    let message = "the client was closed, or the interpreter is exiting: make a new one".to_owned();
    Failure::new("ClosedError", "closed", "closed", message).raise(py)
}

/// The error of a guard that was released before.
pub(crate) fn over(py: Python<'_>) -> PyErr {
    let message = "the guard was released before: acquire the lock again".to_owned();
    Failure::new("ReleaseError", "lost", "released", message).raise(py)
}

/// Returns whether the end of a block raises an error of its release. After an exception of the block it is not. A guard
/// that was released in the block, and a release that continues in the background, were in order: the work was protected.
pub(crate) fn is_worth_raising(py: Python<'_>, error: &PyErr, is_raised: bool) -> PyResult<bool> {
    let family = py.import("quorlock.errors")?.getattr("QuorlockError")?;
    if !error.matches(py, family)? {
        return Ok(true);
    }
    let case: String = error.value(py).getattr("case")?.extract()?;
    Ok(!is_raised && case != "released" && case != "unconfirmed")
}

/// The error of an object that another process made.
pub(crate) fn forked() -> PyErr {
    let message = "this object was made by the parent of this process, which still uses it: connect anew in the child";
    Python::attach(|py| {
        Failure::new("ForkedError", "forked", "forked", message.to_owned()).raise(py)
    })
}

/// The error of a system that starts no thread.
pub(crate) fn no_thread(error: &io::Error) -> PyErr {
    PyRuntimeError::new_err(format!("no thread for the locks: {error}"))
}

/// The error of an operation that has begun already.
pub(crate) fn begun() -> PyErr {
    PyRuntimeError::new_err("the operation has begun already")
}

/// How a lock was lost, as a value of `quorlock.Lost`.
pub(crate) fn how(lost: Lost) -> &'static str {
    match lost {
        Lost::Expired => "expired",
        Lost::Taken => "taken",
        Lost::Unreachable => "unreachable",
        Lost::Closed => "closed",
        Lost::Released => "released",
        _ => "other",
    }
}
