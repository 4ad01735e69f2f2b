//! Tasks, and which of them were woken, in the order in which they were.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use crate::world::slab::Key;

/// What a task does.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()>>>;

/// Never dropped, so that it is still there for what wakes a task at the end of a thread.
type Ready = ManuallyDrop<VecDeque<Key<Task>>>;

thread_local! {
    static READY: RefCell<Ready> = const { RefCell::new(ManuallyDrop::new(VecDeque::new())) };
}

/// A task of a client process.
pub(crate) struct Task {
    pub(crate) client: u16,
    pub(crate) part: Part,
    /// Not while it is polled.
    pub(crate) work: Option<Box<Polled>>,
}

/// What polling a task takes.
pub(crate) struct Polled {
    pub(crate) work: Work,
    pub(crate) bell: Arc<Bell>,
    pub(crate) waker: Waker,
}

/// Which part of the process it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// What the user wrote.
    Main,
    /// What the product runs in the background.
    Background,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Task({:?} of client {})", self.part, self.client)
    }
}

/// Wakes one task. It only notes which: nothing is touched that may be in use.
pub(crate) struct Bell {
    pub(crate) key: Key<Task>,
    pub(crate) has_rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Not one operation: there is no other thread.
        if !self.has_rung.load(Ordering::Relaxed) {
            self.has_rung.store(true, Ordering::Relaxed);
            make_ready(self.key);
        }
    }
}

/// Puts the waker of this context into its place, where mostly it is already.
#[inline]
pub(crate) fn remember(place: &mut Option<Waker>, cx: &Context<'_>) {
    let is_known = |known: &Waker| known.will_wake(cx.waker());
    if !place.as_ref().is_some_and(is_known) {
        replace(place, cx);
    }
}

#[inline(never)]
fn replace(place: &mut Option<Waker>, cx: &Context<'_>) {
    *place = Some(cx.waker().clone());
}

pub(crate) fn make_ready(key: Key<Task>) {
    READY.with_borrow_mut(|ready| ready.push_back(key));
}

/// The task that was woken first, once.
pub(crate) fn next_ready() -> Option<Key<Task>> {
    READY.with_borrow_mut(|ready| ready.pop_front())
}

#[inline]
pub(crate) fn is_anything_ready() -> bool {
    READY.with_borrow(|ready| !ready.is_empty())
}

pub(crate) fn forget_ready() {
    READY.with_borrow_mut(|ready| ready.clear());
}
