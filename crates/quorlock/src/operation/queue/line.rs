//! The waiters in a queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::error::AcquireError;
use crate::mutex::Mutex;
use crate::shared::hold::Hold;

/// The waiters in order; the first one polls the attempt. A waiter is usually alone, and then needs no allocation.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) first: Option<Arc<Waiter>>,
    pub(super) rest: VecDeque<Arc<Waiter>>,
}

/// The place of one waiter in a queue.
#[derive(Debug, Default)]
pub(crate) struct Waiter(Mutex<QueuedWaiter>);

#[derive(Debug, Default)]
struct QueuedWaiter {
    waker: Option<Waker>,
    standing: WaiterStatus,
}

/// The state of a waiter.
#[derive(Debug, Default)]
pub(super) enum WaiterStatus {
    #[default]
    InLine,
    /// The waiter shares the lock with the first waiter, which has won it.
    LetIn,
    /// The waiter has this hold, if it is there in time.
    Given(Arc<Hold>),
    /// The waiter was the first, was woken and was not polled in time.
    PassedOver,
    /// The waiter fails with the first waiter's error, which applies to all.
    Failed(AcquireError),
}

impl Line {
    pub(super) fn is_first(&self, waiter: &Arc<Waiter>) -> bool {
        self.first.as_ref().is_some_and(|f| Arc::ptr_eq(f, waiter))
    }

    pub(super) fn push(&mut self, waiter: Arc<Waiter>) {
        match &self.first {
            None => self.first = Some(waiter),
            Some(_) => self.rest.push_back(waiter),
        }
    }

    /// Removes a waiter. Returns whether the next one must be woken: it was the first, or had left the line before.
    pub(super) fn remove(&mut self, waiter: &Arc<Waiter>) -> bool {
        if self.is_first(waiter) {
            self.first = self.rest.pop_front();
            return true;
        }
        let before = self.rest.len();
        self.rest.retain(|other| !Arc::ptr_eq(other, waiter));
        self.rest.len() == before
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Waiter>> {
        self.first.iter().chain(&self.rest)
    }
}

impl Waiter {
    /// Registers the task, which is woken when the waiter may have become the first waiter or the client was closed.
    /// Returns the status, which gives the reason if the waiter is no longer in line.
    pub(super) fn register(&self, cx: &Context<'_>) -> WaiterStatus {
        let mut waiting = self.0.lock();
        match &mut waiting.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        std::mem::take(&mut waiting.standing)
    }

    /// Takes the hold that was given to a waiter which leaves.
    pub(crate) fn take_given(&self) -> Option<Arc<Hold>> {
        match std::mem::take(&mut self.0.lock().standing) {
            WaiterStatus::Given(hold) => Some(hold),
            _ => None,
        }
    }

    pub(super) fn dismiss(&self, standing: WaiterStatus) {
        self.set_aside(standing);
        self.wake();
    }

    /// Takes the waiter out of line for this reason, without waking its task.
    pub(super) fn set_aside(&self, standing: WaiterStatus) {
        self.0.lock().standing = standing;
    }

    pub(super) fn wake(&self) {
        let waker = self.0.lock().waker.clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
