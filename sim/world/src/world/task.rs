//! Tasks, and the queue of the tasks that were woken.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::world::id::{ClientId, ProcessId};
use crate::world::slab::Key;

/// The future of a task.
pub type Work = Pin<Box<dyn Future<Output = ()>>>;

/// The work of each client process from start to end, and a check after all processes have ended.
#[derive(Clone)]
pub struct Program {
    start: Rc<dyn Fn(ProcessId) -> Work>,
    end: Rc<dyn Fn()>,
}

impl Program {
    /// Creates the work of each process.
    pub fn new(program: impl Fn(ProcessId) -> Work + 'static) -> Self {
        Program {
            start: Rc::new(program),
            end: Rc::new(|| {}),
        }
    }

    /// Adds a check that runs when no client works any more and nothing is in flight.
    pub fn ending(self, end: impl Fn() + 'static) -> Self {
        Program {
            end: Rc::new(end),
            ..self
        }
    }

    /// Starts a process. Must be called while the world is not borrowed, because it runs code of the user.
    pub fn start(&self, who: ProcessId) -> Work {
        (self.start)(who)
    }

    /// Runs the check at the end of the run. Must be called while the world is not borrowed, like [`start`](Self::start).
    pub fn end(&self) {
        (self.end)();
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Program")
    }
}

/// The queue is never dropped, because a waker may still use it at the end of a thread.
type Ready = ManuallyDrop<VecDeque<Key<Task>>>;

thread_local! {
    static READY: RefCell<Ready> = const { RefCell::new(ManuallyDrop::new(VecDeque::new())) };
}

/// A task of a client process.
pub struct Task {
    client: ClientId,
    part: TaskKind,
    /// The future and its waker, or `None` while the task is polled.
    work: Option<Box<Polled>>,
}

impl Task {
    pub(crate) fn new(client: ClientId, part: TaskKind) -> Self {
        Task {
            client,
            part,
            work: None,
        }
    }

    pub(crate) fn client(&self) -> ClientId {
        self.client
    }

    pub(crate) fn part(&self) -> TaskKind {
        self.part
    }

    pub(crate) fn take_work(&mut self) -> Option<Box<Polled>> {
        self.work.take()
    }

    pub(crate) fn put_work(&mut self, work: Box<Polled>) {
        self.work = Some(work);
    }
}

/// A task's future with its waker.
pub(crate) struct Polled {
    work: Work,
    bell: Arc<TaskWaker>,
    waker: Waker,
}

impl Polled {
    /// Creates the work of a task, which counts as woken already.
    pub(crate) fn new(key: Key<Task>, work: Work) -> Self {
        let bell = Arc::new(TaskWaker {
            key,
            has_rung: AtomicBool::new(true),
        });
        let waker = Waker::from(bell.clone());
        Polled { work, bell, waker }
    }

    /// Polls the work until it is pending or finished.
    pub(crate) fn poll(&mut self) -> Poll<()> {
        self.bell.has_rung.store(false, Ordering::Relaxed);
        let mut cx = Context::from_waker(&self.waker);
        self.work.as_mut().poll(&mut cx)
    }
}

/// The part of the process that a task belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskKind {
    /// Code of the user.
    Main,
    /// Background work of the product.
    Background,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task({:?} of client {})", self.part, self.client)
    }
}

/// Wakes one task. It only queues the key of the task, so it may be called while the world is borrowed.
struct TaskWaker {
    key: Key<Task>,
    has_rung: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A load and a store instead of a swap, because there is no other thread.
        if !self.has_rung.load(Ordering::Relaxed) {
            self.has_rung.store(true, Ordering::Relaxed);
            make_ready(self.key);
        }
    }
}

/// Stores the waker of this context. Usually it is stored already, and nothing is done.
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

/// Takes the task that was woken first.
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
