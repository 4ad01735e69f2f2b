//! Candidates, leaders, and those who observe them.

use std::sync::Arc;

use futures_util::lock::Mutex;
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use quorlock::{LeaderEvent, LeaderObserver, LeaderView};

use crate::call::Call;
use crate::engine::ClientState;
use crate::failure;
use crate::own::Own;

/// A campaigning candidate.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Candidacy(Own<CandidacyState>);

struct CandidacyState {
    client: Arc<ClientState>,
    /// `None` once it has ended.
    candidacy: Arc<Mutex<Option<quorlock::Candidacy>>>,
}

impl Candidacy {
    pub(crate) fn new(client: Arc<ClientState>, candidacy: quorlock::Candidacy) -> Self {
        Candidacy(Own::new(CandidacyState {
            client,
            candidacy: Arc::new(Mutex::new(Some(candidacy))),
        }))
    }
}

#[pymethods]
impl Candidacy {
    /// Waits for the next event: `("elected", term, leadership)`, `("lost", term, how)`, `("failed", exception)`, or `None` after the
    /// last one.
    fn next(&self) -> PyResult<Call> {
        let state = self.0.get()?;
        let candidacy = state.candidacy.clone();
        Ok(Call::new(&state.client.engine, async move {
            let event = match &mut *candidacy.lock().await {
                Some(candidacy) => candidacy.next().await,
                None => None,
            };
            move |py: Python<'_>| match event {
                Some(LeaderEvent::Elected {
                    term, leadership, ..
                }) => {
                    let leadership = Leadership(Own::new(leadership));
                    ("elected", term.0, leadership).into_py_any(py)
                }
                Some(LeaderEvent::Lost { term, how, .. }) => {
                    ("lost", term.0, failure::how(how)).into_py_any(py)
                }
                Some(LeaderEvent::Failed { error, .. }) => {
                    ("failed", failure::acquire(py, &error)).into_py_any(py)
                }
                _ => Ok(py.None()),
            }
        }))
    }

    /// Ends the candidacy, and a leadership with it.
    fn resign(&self) -> PyResult<Call> {
        let state = self.0.get()?;
        let candidacy = state.candidacy.clone();
        Ok(Call::new(&state.client.engine, async move {
            let resigned = match candidacy.lock().await.take() {
                Some(candidacy) => candidacy.resign().await,
                None => Ok(()),
            };
            move |py: Python<'_>| match resigned {
                Ok(()) => Ok(py.None()),
                Err(error) => Err(failure::release(py, &error)),
            }
        }))
    }
}

/// One term of a leader.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Leadership(Own<quorlock::Leadership>);

#[pymethods]
impl Leadership {
    #[getter]
    fn term(&self) -> PyResult<u64> {
        Ok(self.0.get()?.term().0)
    }

    #[getter]
    fn owner_id(&self) -> PyResult<String> {
        Ok(self.0.get()?.owner_id().to_string())
    }

    #[getter]
    fn is_leading(&self) -> PyResult<bool> {
        Ok(self.0.get()?.is_leading())
    }

    /// Returns how many seconds the leadership stays valid without another renewal.
    #[getter]
    fn validity(&self) -> PyResult<f64> {
        Ok(self.0.get()?.validity().as_secs_f64())
    }

    fn step_down(&self) -> PyResult<()> {
        self.0.get()?.step_down();
        Ok(())
    }
}

/// An observer of the leader of a name.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Observer(Own<(Arc<ClientState>, Arc<Mutex<LeaderObserver>>)>);

impl Observer {
    pub(crate) fn new(client: Arc<ClientState>, observer: LeaderObserver) -> Self {
        Observer(Own::new((client, Arc::new(Mutex::new(observer)))))
    }
}

#[pymethods]
impl Observer {
    /// Waits until the leader changes: `(state, owner, term, nodes)`, or `None` when the client was closed.
    fn next(&self) -> PyResult<Call> {
        let (client, observer) = self.0.get()?;
        let observer = observer.clone();
        Ok(Call::new(&client.engine, async move {
            let view = observer.lock().await.next().await;
            move |py: Python<'_>| match view {
                Some(LeaderView::Led {
                    owner, term, nodes, ..
                }) => ("led", Some(owner), term.map(|term| term.0), nodes).into_py_any(py),
                Some(LeaderView::Vacant) => without_leader(py, "vacant"),
                Some(LeaderView::Undecided) => without_leader(py, "undecided"),
                Some(_) => without_leader(py, "unknown"),
                None => Ok(py.None()),
            }
        }))
    }
}

fn without_leader(py: Python<'_>, state: &str) -> PyResult<Py<PyAny>> {
    (state, None::<String>, None::<u64>, 0_usize).into_py_any(py)
}
