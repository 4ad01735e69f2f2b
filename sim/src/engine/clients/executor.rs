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
        let Some(mut task) = with(|world| take_work(world, key)) else {
            continue;
        };
        task.bell.has_rung.store(false, Ordering::Relaxed);
        let mut cx = Context::from_waker(&task.waker);
        let ended = match task.work.as_mut().poll(&mut cx) {
            Poll::Pending => with(|world| put_back(world, key, task)),
            Poll::Ready(()) => {
                with(|world| world.tasks.remove(key));
                Some(task)
            }
        };
        drop(ended);
    }
}

pub(crate) fn spawn(world: &mut World, who: Who, part: Part, work: Work) {
    let key = world.tasks.insert(Task {
        client: who.client,
        part,
        work: None,
    });
    let bell = Arc::new(Bell {
        key,
        has_rung: AtomicBool::new(true),
    });
    let waker = Waker::from(bell.clone());
    if let Some(task) = world.tasks.get_mut(key) {
        task.work = Some(Box::new(Polled { work, bell, waker }));
    }
    make_ready(key);
}

/// The work of a task whose turn it is, unless its process is paused: then it waits for the end of that.
fn take_work(world: &mut World, key: Key<Task>) -> Option<Box<Polled>> {
    let task = world.tasks.get_mut(key)?;
    let client = world.clients.get_mut(usize::from(task.client))?;
    if world.now < client.paused_until {
        client.parked.push(key);
        return None;
    }
    task.work.take()
}

/// Gives the work back for later, or returns it if its process has ended meanwhile.
fn put_back(world: &mut World, key: Key<Task>, work: Box<Polled>) -> Option<Box<Polled>> {
    match world.tasks.get_mut(key) {
        Some(task) => {
            task.work = Some(work);
            None
        }
        None => Some(work),
    }
}
