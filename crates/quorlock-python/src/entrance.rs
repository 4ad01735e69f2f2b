//! The `with` statement of a lock.

use std::collections::BTreeMap;
use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::held::Held;
use crate::mutex::locked;
use crate::threads;

/// A lock that is acquired by `with`. One object can be entered by several threads, and more than once by each.
///
/// It is native because Ctrl-C interrupts Python between two steps. If it came in code of Python that has the guard, such as an
/// `__enter__` after the grant or an `__exit__` before the release, the traceback would refer to that code and to the guard: the lock
/// would be held and renewed for as long as something keeps the traceback. Python starts a block without looking for signals after a
/// native `__enter__`.
#[pyclass(frozen, subclass, module = "quorlock._native")]
#[derive(Default)]
pub(crate) struct Entrance {
    /// The guards of each thread, by its id in Python.
    entered: Mutex<BTreeMap<u64, Vec<Py<PyAny>>>>,
}

#[pymethods]
impl Entrance {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyAny>>) -> Self {
        Entrance::default()
    }

    /// Acquires the lock, and remembers the guard for the end of the block.
    fn __enter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let thread = threads::current(py)?;
        let guard = slf.call_method0(intern!(py, "acquire"))?.unbind();
        let mut entered = locked(&slf.get().entered);
        entered.entry(thread).or_default().push(guard.clone_ref(py));
        Ok(guard)
    }

    /// Ends the block of the guard that this thread acquired last.
    #[pyo3(signature = (kind, *_error))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let thread = threads::current(py)?;
        let guard = {
            let mut entered = locked(&self.entered);
            let guard = entered.get_mut(&thread).and_then(Vec::pop);
            if entered.get(&thread).is_some_and(Vec::is_empty) {
                entered.remove(&thread);
            }
            guard
        };
        match guard {
            Some(guard) => guard
                .cast_bound::<Held>(py)?
                .get()
                .leave(py, !kind.is_none()),
            None => Ok(()),
        }
    }
}
