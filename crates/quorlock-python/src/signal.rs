//! The signal of a loss.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Either, select};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use quorlock::runtime::{Runtime as _, TokioRuntime};
use quorlock::{Lost, LostSignal};

use crate::arguments::Span;
use crate::call::Call;
use crate::engine::ClientState;
use crate::failure;
use crate::own::Own;

/// The signal of a loss. It does not hold the lock.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Signal(Own<SignalState>);

struct SignalState {
    client: Arc<ClientState>,
    lost: LostSignal,
}

impl Signal {
    pub(crate) fn new(client: Arc<ClientState>, lost: LostSignal) -> Self {
        Signal(Own::new(SignalState { client, lost }))
    }
}

#[pymethods]
impl Signal {
    /// Returns how the lock was lost, or `None`.
    fn how(&self) -> PyResult<Option<&'static str>> {
        let lost = self.0.get()?.lost.clone().now_or_never();
        Ok(lost.map(failure::how))
    }

    /// Waits until the lock is lost, but no longer than this. The result is how it was lost, or `None`.
    #[pyo3(signature = (at_most=None))]
    fn wait(&self, at_most: Option<Span>) -> PyResult<Call> {
        let state = self.0.get()?;
        let signal = state.lost.clone();
        Ok(Call::new(&state.client.engine, async move {
            let lost = match at_most {
                None => Some(signal.await),
                Some(at_most) => within(at_most.0, signal).await,
            };
            move |py: Python<'_>| lost.map(failure::how).into_py_any(py)
        }))
    }
}

/// Waits for a loss, but no longer than this.
async fn within(at_most: Duration, signal: LostSignal) -> Option<Lost> {
    let runtime = TokioRuntime::new();
    let until = runtime.now() + at_most;
    let mut timer = runtime.timer();
    let late = poll_fn(move |cx| timer.poll_until(cx, until));
    match select(signal, late).await {
        Either::Left((lost, _)) => Some(lost),
        Either::Right(_) => None,
    }
}
