//! The requests that wait for their turn, by the key of their record.

use std::collections::BTreeMap;

use quorlock_core::marker::Process;
use quorlock_core::message::{Reply, Request};
use quorlock_core::time::Time;
use quorlock_core::transport::TransportError;
use tokio::sync::oneshot;

use crate::store::Key;
use crate::sync::Mutex;

/// The reply to a request, and the process that executed it.
pub(crate) type Answer = Result<(Reply, Process), TransportError>;

/// A request about one record.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    /// After this time the caller does not wait for the reply, and the request is not executed any more.
    pub(crate) deadline: Time,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// The requests of one transport. While a key has a line, one task serves it.
#[derive(Debug, Default)]
pub(crate) struct Desk(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    waiting: BTreeMap<Key, BTreeMap<u64, Asked>>,
    last: u64,
}

/// The result of [`Desk::add`].
pub(crate) struct Place {
    pub(crate) number: u64,
    /// Whether the line is new, so that a task must be started to serve it.
    pub(crate) is_first: bool,
}

impl Desk {
    /// Puts a request into the line of its key.
    pub(crate) fn add(&self, key: &Key, asked: Asked) -> Place {
        let mut lines = self.0.lock();
        lines.last += 1;
        let number = lines.last;
        let is_first = !lines.waiting.contains_key(key);
        let line = lines.waiting.entry(key.clone()).or_default();
        line.insert(number, asked);
        Place { number, is_first }
    }

    /// Takes all requests that are in the line.
    pub(crate) fn take(&self, key: &Key) -> Vec<Asked> {
        let mut lines = self.0.lock();
        let line = lines.waiting.get_mut(key).map(std::mem::take);
        line.into_iter().flat_map(BTreeMap::into_values).collect()
    }

    /// Takes a request out of the line. Returns whether it was still there: it was not executed, and will not be.
    pub(crate) fn withdraw(&self, key: &Key, number: u64) -> bool {
        let mut lines = self.0.lock();
        let line = lines.waiting.get_mut(key);
        line.and_then(|line| line.remove(&number)).is_some()
    }

    /// Ends the line if no request is in it. Returns whether it has ended.
    pub(crate) fn end_if_empty(&self, key: &Key) -> bool {
        let mut lines = self.0.lock();
        let is_empty = lines.waiting.get(key).is_none_or(BTreeMap::is_empty);
        if is_empty {
            lines.waiting.remove(key);
        }
        is_empty
    }

    /// Ends the line. Its requests get no reply.
    pub(crate) fn end(&self, key: &Key) {
        let line = self.0.lock().waiting.remove(key);
        // Without the mutex: a caller may be woken.
        drop(line);
    }
}
