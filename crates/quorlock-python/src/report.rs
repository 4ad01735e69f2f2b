//! Reports about a name, as tuples.

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use quorlock::operate::{Inspection, Summary};

use crate::arguments::text;

/// `(key, state, owner, nodes, text, client)`: the key with its prefix, the summary, what people read, and the owner's client.
pub(crate) fn inspection(py: Python<'_>, inspection: &Inspection) -> PyResult<Py<PyAny>> {
    let (state, owner, nodes) = match inspection.summary() {
        Summary::Held { owner, nodes } => ("held", Some(owner), nodes),
        Summary::Read { nodes } => ("read", None, nodes),
        Summary::Queued { nodes } => ("queued", None, nodes),
        Summary::Free => ("free", None, 0),
        Summary::Obstructed => ("obstructed", None, 0),
        Summary::Undecided => ("undecided", None, 0),
        _ => ("unknown", None, 0),
    };
    let key = text(py, &inspection.name)?;
    let client = inspection.client();
    (key, state, owner, nodes, inspection.to_string(), client).into_py_any(py)
}
