//! Where results of operations arrive for an event loop, or for the thread that calls callbacks.

use std::io::{self, Read as _, Write as _};
use std::mem;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use pyo3::prelude::*;

use crate::mutex::locked;
use crate::own::Own;

/// Makes the result of an operation, attached to the interpreter. If it is dropped instead, so is what was acquired.
pub(crate) type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Results that have arrived, and a descriptor that is readable while there are any.
///
/// A descriptor wakes an event loop without the interpreter, which the thread of the engine must not wait for. Results that arrive
/// while the loop is busy share one wake-up.
pub(crate) struct PortState {
    arrived: Mutex<Arrived>,
    /// For threads that wait without an event loop.
    changed: Condvar,
    readable: UnixStream,
    bell: UnixStream,
}

#[derive(Default)]
struct Arrived {
    results: Vec<(u64, Finish)>,
    is_closed: bool,
}

impl PortState {
    fn new() -> io::Result<Self> {
        let (readable, bell) = UnixStream::pair()?;
        readable.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        Ok(PortState {
            arrived: Mutex::default(),
            changed: Condvar::new(),
            readable,
            bell,
        })
    }

    pub(crate) fn push(&self, key: u64, finish: Finish) {
        self.push_below(usize::MAX, key, finish);
    }

    /// Leaves the result out if there are as many as this already.
    pub(crate) fn push_below(&self, most: usize, key: u64, finish: Finish) {
        let mut arrived = locked(&self.arrived);
        if arrived.is_closed || most <= arrived.results.len() {
            return;
        }
        arrived.results.push((key, finish));
        if arrived.results.len() == 1 {
            self.ring();
        }
    }

    /// Rings once for all results until they are taken.
    fn ring(&self) {
        // An error means that the buffer is full, so that the other end is readable.
        let _ = (&self.bell).write(&[1]);
        self.changed.notify_all();
    }

    fn take(&self) -> Vec<(u64, Finish)> {
        let mut arrived = locked(&self.arrived);
        // An error means that it was not rung.
        let _ = (&self.readable).read(&mut [0; 8]);
        mem::take(&mut arrived.results)
    }

    /// Waits until there are results. Returns `false` when there will be none.
    fn wait(&self) -> bool {
        let arrived = locked(&self.arrived);
        let is_empty = |arrived: &mut Arrived| arrived.results.is_empty() && !arrived.is_closed;
        let arrived = self.changed.wait_while(arrived, is_empty);
        !arrived
            .unwrap_or_else(PoisonError::into_inner)
            .results
            .is_empty()
    }

    fn close(&self) {
        locked(&self.arrived).is_closed = true;
        self.ring();
    }
}

type Delivered = (u64, bool, Py<PyAny>);

/// Where results of operations arrive.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Port(Own<Arc<PortState>>);

impl Port {
    pub(crate) fn state(&self) -> PyResult<&Arc<PortState>> {
        self.0.get()
    }
}

#[pymethods]
impl Port {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Port(Own::new(Arc::new(PortState::new()?))))
    }

    /// Returns the descriptor that is readable while there are results.
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.state()?.readable.as_raw_fd())
    }

    /// Returns what has arrived: the key, whether it succeeded, and the result or the exception.
    fn drain(&self, py: Python<'_>) -> PyResult<Vec<Delivered>> {
        let results = self.state()?.take().into_iter();
        let results = results.map(|(key, finish)| match finish(py) {
            Ok(value) => (key, true, value),
            Err(error) => (key, false, error.into_value(py).into_any()),
        });
        Ok(results.collect())
    }

    /// Waits until something has arrived. Returns `False` when nothing will.
    fn wait(&self, py: Python<'_>) -> PyResult<bool> {
        let port = self.state()?;
        Ok(py.detach(|| port.wait()))
    }

    /// Accepts no more results.
    fn close(&self) -> PyResult<()> {
        self.state()?.close();
        Ok(())
    }
}
