//! Runs tasks, one at a time, in the order in which they were woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use crate::world::client::Who;
use crate::world::slab::Key;
use crate::world::task::{Bell, Part, Polled, Task, Work, make_ready, next_ready};
use crate::world::{World, with};

/// Polls every task that was woken, until none is.
pub(crate) fn run_ready() {
    while let Some(key) = next_ready() {
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

    /// The work of a task whose turn it is, unless its process is paused: then it waits for the end of that.
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
