//! The threads of Python.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The thread that Ctrl-C interrupts.
static MAIN: AtomicU64 = AtomicU64::new(0);

/// Says which thread Ctrl-C interrupts.
#[pyfunction]
pub(crate) fn set_main_thread(id: u64) {
    MAIN.store(id, Ordering::Relaxed);
}

/// Returns whether this is the thread that Ctrl-C interrupts.
pub(crate) fn is_main(py: Python<'_>) -> PyResult<bool> {
    Ok(current(py)? == MAIN.load(Ordering::Relaxed))
}

/// Returns the id of this thread in Python.
pub(crate) fn current(py: Python<'_>) -> PyResult<u64> {
    static GET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let get = GET.get_or_try_init(py, || {
        let threading = py.import("threading")?;
        threading.getattr("get_ident").map(Bound::unbind)
    })?;
    get.call0(py)?.extract(py)
}
