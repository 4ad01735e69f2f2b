//! Runs tasks, one at a time, in the order in which they were woken.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::world::client::Who;
use crate::world::slab::Key;
use crate::world::{World, with};

type Work = Pin<Box<dyn Future<Output = ()>>>;

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
    work: Option<Box<Polled>>,
}

/// What polling a task takes.
struct Polled {
    work: Work,
    bell: Arc<Bell>,
    waker: Waker,
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
struct Bell {
    key: Key<Task>,
    has_rung: AtomicBool,
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

#[inline]
pub(crate) fn is_anything_ready() -> bool {
    READY.with_borrow(|ready| !ready.is_empty())
}

pub(crate) fn forget_ready() {
    READY.with_borrow_mut(|ready| ready.clear());
}

/// Polls every task that was woken, until none is.
pub(crate) fn run_ready() {
    while let Some(key) = READY.with_borrow_mut(|ready| ready.pop_front()) {
        let Some(mut task) = with(|world| world.take_work(key)) else {
            continue;
        };
        task.bell.has_rung.store(false, Ordering::Relaxed);
        let mut cx = Context::from_waker(&task.waker);
        let ended = match task.work.as_mut().poll(&mut cx) {
            Poll::Pending => with(|world| world.put_back(key, task)),
            Poll::Ready(()) => {
                with(|world| world.tasks.remove(key));
                Some(task)
            }
        };
        drop(ended);
    }
}

impl World {
    pub(crate) fn spawn(&mut self, who: Who, part: Part, work: Work) {
        let key = self.tasks.insert(Task {
            client: who.client,
            part,
            work: None,
        });
        let bell = Arc::new(Bell {
            key,
            has_rung: AtomicBool::new(true),
        });
        let waker = Waker::from(bell.clone());
        if let Some(task) = self.tasks.get_mut(key) {
            task.work = Some(Box::new(Polled { work, bell, waker }));
        }
        make_ready(key);
    }

    /// The work of a task that is to be polled now, unless its process is paused: then it waits for the end of that.
    fn take_work(&mut self, key: Key<Task>) -> Option<Box<Polled>> {
        let task = self.tasks.get_mut(key)?;
        let client = self.clients.get_mut(usize::from(task.client))?;
        if self.now < client.paused_until {
            client.parked.push(key);
            return None;
        }
        task.work.take()
    }

    /// Gives the work back for later, or returns it if its process has ended meanwhile.
    fn put_back(&mut self, key: Key<Task>, work: Box<Polled>) -> Option<Box<Polled>> {
        match self.tasks.get_mut(key) {
            Some(task) => {
                task.work = Some(work);
                None
            }
            None => Some(work),
        }
    }
}
