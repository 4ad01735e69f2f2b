//! The thread that runs a blocking client.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, sync_channel};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::ConnectError;
use crate::locks::Locks;

/// A client on a runtime of its own, and the thread of this runtime. Dropping it closes the client and ends the thread.
pub(super) struct Driver {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts the thread and makes the client there.
    pub(super) fn start<E: Into<ConnectError>>(
        make: impl AsyncFnOnce() -> Result<Locks, E> + Send + 'static,
    ) -> Result<(Arc<Self>, Locks), ConnectError> {
        let failed = |error: io::Error| ConnectError::Thread {
            detail: error.to_string(),
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let (sender, made) = sync_channel(1);
        let live = async move || {
            let locks = make().await.map_err(E::into);
            let _ = sender.send(locks.clone());
            if let Ok(locks) = locks {
                // An error means that the driver was dropped.
                let _ = stopped.await;
                locks.close().await;
            }
        };
        let thread = thread::Builder::new().name("quorlock".to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(live());
            // A function that is told of a loss may drop the last handle, and would wait for itself.
            runtime.shutdown_background();
        });
        let driver = Driver {
            handle,
            stop: Some(stop),
            thread: Some(thread.map_err(failed)?),
        };
        let locks = received(made)?;
        Ok((Arc::new(driver), locks))
    }

    /// Runs a future on the thread of the client, and waits for its output.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let (sender, output) = sync_channel(1);
        self.spawn(async move {
            let output = work.await;
            let _ = sender.send(output);
        });
        received(output)
    }

    /// Runs a future on the thread of the client.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}

/// Waits for what the thread of the client sends.
fn received<T>(receiver: Receiver<T>) -> T {
    let output = receiver.recv();
    output.unwrap_or_else(|RecvError| panic!("BUG: a call panicked on the thread of its client"))
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}
