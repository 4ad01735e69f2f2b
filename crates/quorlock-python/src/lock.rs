//! What can be acquired: locks and permits of semaphores.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quorlock::{AcquireError, Guard, Semaphore};

use crate::arguments::Span;
use crate::call::Call;
use crate::engine::ClientState;
use crate::failure;
use crate::held::Grant;
use crate::own::Own;

/// The mode of a lock.
pub(crate) enum Mode {
    Plain,
    Fair,
    Read,
    Write,
}

impl Mode {
    pub(crate) fn parse(mode: &str) -> PyResult<Self> {
        match mode {
            "plain" => Ok(Mode::Plain),
            "fair" => Ok(Mode::Fair),
            "read" => Ok(Mode::Read),
            "write" => Ok(Mode::Write),
            other => Err(PyValueError::new_err(format!(
                "{other:?} is no mode of a lock"
            ))),
        }
    }
}

/// The terms on which something is acquired, in the order of Python's tuple.
pub(crate) struct Terms(
    /// How long an acquisition waits.
    Option<Span>,
    /// A fixed lease.
    Option<Span>,
    /// A lease that is renewed.
    Option<Span>,
    /// How long it stays locked from its grant on.
    Option<Span>,
);

impl<'py> FromPyObject<'_, 'py> for Terms {
    type Error = PyErr;

    fn extract(terms: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let at = |index: usize, name: &str| {
            let span = terms.get_item(index)?.extract();
            span.map_err(|error| failure::of_argument(terms.py(), name, &error))
        };
        let (wait, lease) = (at(0, "wait")?, at(1, "lease")?);
        Ok(Terms(
            wait,
            lease,
            at(2, "watchdog_lease")?,
            at(3, "at_least")?,
        ))
    }
}

/// One lock, several together, or a semaphore.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Lock(Own<(Arc<ClientState>, Wanted)>);

#[derive(Clone)]
enum Wanted {
    Lock(quorlock::Lock),
    Permit(Semaphore),
}

impl Lock {
    pub(crate) fn of_lock(client: &Arc<ClientState>, lock: quorlock::Lock, terms: &Terms) -> Self {
        let Terms(wait, lease, renewed, least) = terms;
        let lock = wait.iter().fold(lock, |lock, span| lock.wait(span.0));
        let lock = lease.iter().fold(lock, |lock, span| lock.lease(span.0));
        let lock = renewed
            .iter()
            .fold(lock, |lock, span| lock.watchdog_lease(span.0));
        let lock = least.iter().fold(lock, |lock, span| lock.at_least(span.0));
        Lock(Own::new((client.clone(), Wanted::Lock(lock))))
    }

    pub(crate) fn of_semaphore(
        client: &Arc<ClientState>,
        semaphore: Semaphore,
        terms: &Terms,
    ) -> Self {
        let Terms(wait, lease, renewed, least) = terms;
        let one = wait.iter().fold(semaphore, |one, span| one.wait(span.0));
        let one = lease.iter().fold(one, |one, span| one.lease(span.0));
        let one = renewed
            .iter()
            .fold(one, |one, span| one.watchdog_lease(span.0));
        let one = least.iter().fold(one, |one, span| one.at_least(span.0));
        Lock(Own::new((client.clone(), Wanted::Permit(one))))
    }
}

#[pymethods]
impl Lock {
    /// Acquires it. The result is a `Grant`.
    fn acquire(&self) -> PyResult<Call> {
        let (client, wanted) = self.0.get()?;
        let (holder, wanted) = (client.clone(), wanted.clone());
        Ok(Call::new(&client.engine, async move {
            let acquired = match wanted {
                Wanted::Lock(lock) => lock.acquire().await,
                Wanted::Permit(semaphore) => semaphore.acquire().await,
            };
            move |py: Python<'_>| granted(py, holder, acquired.map(Some))
        }))
    }

    /// Tries to acquire it. The result is a `Grant`, or `None` if others hold it.
    fn try_acquire(&self) -> PyResult<Call> {
        let (client, wanted) = self.0.get()?;
        let (holder, wanted) = (client.clone(), wanted.clone());
        Ok(Call::new(&client.engine, async move {
            let tried = match wanted {
                Wanted::Lock(lock) => lock.try_acquire().await,
                Wanted::Permit(semaphore) => semaphore.try_acquire().await,
            };
            move |py: Python<'_>| granted(py, holder, tried)
        }))
    }

    /// Returns a lock that takes other locks together with this one. Settings are those of this one.
    fn and_(&self, others: Vec<Bound<'_, Lock>>) -> PyResult<Lock> {
        let (client, wanted) = self.0.get()?;
        let mut locks = Vec::new();
        for other in &others {
            locks.push(other.get().lock()?.clone());
        }
        match wanted {
            Wanted::Lock(lock) => {
                let lock = lock.clone().and(locks);
                Ok(Lock(Own::new((client.clone(), Wanted::Lock(lock)))))
            }
            Wanted::Permit(_) => Err(not_together()),
        }
    }
}

impl Lock {
    fn lock(&self) -> PyResult<&quorlock::Lock> {
        match &self.0.get()?.1 {
            Wanted::Lock(lock) => Ok(lock),
            Wanted::Permit(_) => Err(not_together()),
        }
    }
}

fn not_together() -> PyErr {
    PyValueError::new_err("a semaphore cannot be taken together with locks")
}

/// Returns what was granted, as a `Grant` or `None`.
pub(crate) fn granted(
    py: Python<'_>,
    client: Arc<ClientState>,
    acquired: Result<Option<Guard>, AcquireError>,
) -> PyResult<Py<PyAny>> {
    match acquired {
        Ok(Some(guard)) => Ok(Py::new(py, Grant::new(client, guard))?.into_any()),
        Ok(None) => Ok(py.None()),
        Err(error) => Err(failure::acquire(py, &error)),
    }
}
