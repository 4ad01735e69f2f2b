//! Runs tasks, one at a time, in the order in which they were woken.

use std::task::Poll;

use crate::world::id::Who;
use crate::world::slab::Key;
use crate::world::task::{Part, Polled, Task, Work, make_ready, next_ready};
use crate::world::{World, with};

/// Polls every task that was woken, until none is.
pub(crate) fn run_ready() {
    while let Some(key) = next_ready() {
        let Some(mut work) = with(|world| take_work(world, key)) else {
            continue;
        };
        let ended = match work.poll() {
            Poll::Pending => with(|world| put_back(world, key, work)),
            Poll::Ready(()) => {
                with(|world| world.tasks.remove(key));
                Some(work)
            }
        };
        drop(ended);
    }
}

pub(crate) fn spawn(world: &mut World, who: Who, part: Part, work: Work) {
    let key = world.tasks.insert(Task::new(who.client, part));
    if let Some(task) = world.tasks.get_mut(key) {
        task.put_work(Box::new(Polled::new(key, work)));
    }
    make_ready(key);
}

/// The work of a task whose turn it is, unless its process is paused: then it waits for the end of that.
fn take_work(world: &mut World, key: Key<Task>) -> Option<Box<Polled>> {
    let now = world.now();
    let task = world.tasks.get_mut(key)?;
    let client = world.clients.get_mut(task.client())?;
    if now < client.paused_until() {
        client.miss_task(key);
        return None;
    }
    task.take_work()
}

/// Gives the work back for later, or returns it if its process has ended meanwhile.
fn put_back(world: &mut World, key: Key<Task>, work: Box<Polled>) -> Option<Box<Polled>> {
    match world.tasks.get_mut(key) {
        Some(task) => {
            task.put_work(work);
            None
        }
        None => Some(work),
    }
}
