//! One operation that Python asks for, and the thread that waits for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::engine::EngineState;
use crate::failure;
use crate::mutex::locked;
use crate::own::Own;
use crate::port::{Finish, Port};
use crate::threads;

type Work = Pin<Box<dyn Future<Output = Finish> + Send>>;

/// The main thread looks for signals this often while it waits: Ctrl-C interrupts it, and no other thread.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(50);

/// An operation. It begins when it is run or started, once.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Call(Own<CallState>);

struct CallState {
    engine: Arc<EngineState>,
    /// `None` once it has begun.
    work: Mutex<Option<Work>>,
    task: OnceLock<AbortHandle>,
}

impl Call {
    /// `work` runs on the thread of the engine, and its output on a thread of Python.
    pub(crate) fn new<F, T>(engine: &Arc<EngineState>, work: F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
        T: FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static,
    {
        let work: Work = Box::pin(async move { Box::new(work.await) as Finish });
        Call(Own::new(CallState {
            engine: engine.clone(),
            work: Mutex::new(Some(work)),
            task: OnceLock::new(),
        }))
    }
}

impl CallState {
    fn begin(&self, deliver: impl FnOnce(Finish) + Send + 'static) -> PyResult<()> {
        let work = locked(&self.work).take();
        let work = work.ok_or_else(failure::begun)?;
        let task = self.engine.spawn(async move { deliver(work.await) });
        let _ = self.task.set(task);
        Ok(())
    }

    fn cancel(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

#[pymethods]
impl Call {
    /// Runs the operation, and waits for it without the interpreter. The main thread can be interrupted, which cancels it.
    #[pyo3(signature = (into=None))]
    pub(crate) fn run(
        &self,
        py: Python<'_>,
        into: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (call, is_main) = (self.0.get()?, threads::is_main(py)?);
        let (sender, receiver) = sync_channel(1);
        // A receiver is not shared between threads, and one that is detached counts as another one.
        let receiver = Mutex::new(receiver);
        call.begin(move |finish| {
            let _ = sender.send(finish);
        })?;
        let result = loop {
            match py.detach(|| received(&locked(&receiver), is_main)) {
                Ok(finish) => break finish(py)?,
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| call.cancel())?
                }
                // The engine has been stopped.
                Err(RecvTimeoutError::Disconnected) => return Err(failure::closed(py)),
            }
        };
        // Not in Python, where an interrupt could come between: the lock would be held by a frame of the traceback.
        match into {
            Some(into) if !result.is_none(py) => Ok(into.call1((result,))?.unbind()),
            _ => Ok(result),
        }
    }

    /// Starts the operation. The port gets its result under this key.
    fn start(&self, port: &Port, key: u64) -> PyResult<()> {
        let (call, port) = (self.0.get()?, port.state()?.clone());
        call.begin(move |finish| port.push(key, finish))
    }

    /// Cancels the operation. What it is granted all the same is released.
    fn cancel(&self) -> PyResult<()> {
        self.0.get()?.cancel();
        Ok(())
    }
}

fn received(receiver: &Receiver<Finish>, is_main: bool) -> Result<Finish, RecvTimeoutError> {
    match is_main {
        true => receiver.recv_timeout(LOOK_FOR_SIGNALS),
        false => receiver.recv().map_err(RecvTimeoutError::from),
    }
}
