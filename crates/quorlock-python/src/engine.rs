//! The thread of this process that drives all clients.

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::future::join_all;
use pyo3::prelude::*;
use quorlock::Locks;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::failure;
use crate::log::{self, Level};
use crate::mutex::locked;
use crate::own::Own;
use crate::port::{Port, PortState};

/// The longest time for which an interpreter that exits waits for nodes.
const LONGEST_EXIT: Duration = Duration::from_secs(5);

/// What the thread and the objects of Python share.
pub(crate) struct EngineState {
    handle: Handle,
    /// Every client that was made, to close those that are still used when the interpreter exits.
    clients: Mutex<Vec<Weak<ClientState>>>,
    end: Mutex<End>,
    pub(crate) level: Level,
}

/// How the thread is ended, until it is.
struct End {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A client, which lives for as long as any object that was made of it.
pub(crate) struct ClientState {
    pub(crate) locks: Locks,
    pub(crate) engine: Arc<EngineState>,
}

impl EngineState {
    fn start(records: Arc<PortState>) -> io::Result<Arc<Self>> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (handle, level) = (runtime.handle().clone(), Level::default());
        let dispatch = log::dispatch(records, level.clone());
        let thread = thread::Builder::new().name("quorlock".to_owned());
        let thread = thread.spawn(move || {
            // Of this thread alone: a subscriber of the process would be used by a child, too.
            let _logs = tracing::dispatcher::set_default(&dispatch);
            let _ = runtime.block_on(stopped);
            // The clients are closed by now. What is left waits for nodes that do not answer.
            runtime.shutdown_background();
        })?;
        Ok(Arc::new(EngineState {
            handle,
            clients: Mutex::default(),
            end: Mutex::new(End {
                stop: Some(stop),
                thread: Some(thread),
            }),
            level,
        }))
    }

    /// Runs a future on the thread.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.handle.spawn(work).abort_handle()
    }

    /// Makes a client of this engine.
    pub(crate) fn adopt(self: &Arc<Self>, locks: Locks) -> Arc<ClientState> {
        let client = Arc::new(ClientState {
            locks,
            engine: self.clone(),
        });
        let mut clients = locked(&self.clients);
        clients.retain(|client| 0 < client.strong_count());
        clients.push(Arc::downgrade(&client));
        client
    }

    /// Closes all clients, which releases what they hold, and ends the thread.
    fn stop(&self) {
        let clients: Vec<_> = {
            let clients = locked(&self.clients);
            clients.iter().filter_map(Weak::upgrade).collect()
        };
        let (closed, all) = std::sync::mpsc::sync_channel(1);
        self.spawn(async move {
            join_all(clients.iter().map(|client| client.locks.close())).await;
            let _ = closed.send(());
        });
        // An error means that the thread has ended already, or that nodes do not answer. What is still claimed there ends with its lease.
        let _ = all.recv_timeout(LONGEST_EXIT);
        let thread = {
            let mut end = locked(&self.end);
            end.stop = None;
            end.thread.take()
        };
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

/// The thread of this process that drives all clients.
#[pyclass(frozen, module = "quorlock._native")]
pub(crate) struct Engine(Own<Arc<EngineState>>);

impl Engine {
    pub(crate) fn state(&self) -> PyResult<&Arc<EngineState>> {
        self.0.get()
    }
}

#[pymethods]
impl Engine {
    /// Starts the thread. Log records arrive at this port, with the key 0.
    #[new]
    fn new(records: &Port) -> PyResult<Self> {
        let engine = EngineState::start(records.state()?.clone());
        let engine = engine.map_err(|error| failure::no_thread(&error))?;
        Ok(Engine(Own::new(engine)))
    }

    /// Sets the level of Python's `logging` from which on events are recorded.
    fn set_level(&self, level: u32) -> PyResult<()> {
        self.state()?.level.set(level);
        Ok(())
    }

    /// Closes all clients, which releases what they hold, and ends the thread.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.state()?;
        py.detach(|| engine.stop());
        Ok(())
    }
}
