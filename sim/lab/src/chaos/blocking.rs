//! Work that waits for processes, on other threads. The thread of a run carries the messages of all links meanwhile.

/// Runs work on another thread, which is in the network of the run, too.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
