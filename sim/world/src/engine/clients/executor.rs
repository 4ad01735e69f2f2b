//! The executor: runs tasks one at a time, in the order in which they were woken.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Poll;

use crate::engine::clients::endless::{self, GivenUp};
use crate::world::id::ProcessId;
use crate::world::slab::Key;
use crate::world::task::{Polled, Task, TaskKind, Work, make_ready, next_ready};
use crate::world::{World, with};

/// Polls tasks that were woken until none is left.
pub(crate) fn run_ready() {
    while let Some(key) = next_ready() {
        let Some(mut work) = with(|world| take_work(world, key)) else {
            continue;
        };
        let polled = step(&mut work);
        let ended = with(|world| {
            end_step(world, key);
            match polled {
                Poll::Pending => put_back(world, key, work),
                Poll::Ready(()) => {
                    let task = world.tasks.remove(key);
                    drop(task);
                    Some(work)
                }
            }
        });
        drop(ended);
    }
}

/// Starts a task of a process.
pub fn spawn(world: &mut World, who: ProcessId, part: TaskKind, work: Work) {
    let key = world.tasks.insert(Task::new(who.client, part));
    if let Some(task) = world.tasks.get_mut(key) {
        task.put_work(Box::new(Polled::new(key, work)));
    }
    make_ready(key);
}

/// Takes the work of a task that is ready. If the process is paused, the task stays woken until the pause ends.
fn take_work(world: &mut World, key: Key<Task>) -> Option<Box<Polled>> {
    if endless::is_given_up(world) {
        return None;
    }
    let now = world.now();
    let task = world.tasks.get_mut(key)?;
    let client = world.clients.get_mut(task.client())?;
    if world.livelock.is_too_much() {
        let process = client.process();
        endless::give_up(world, process);
        return None;
    }
    if now < client.paused_until() {
        client.miss_task(key);
        return None;
    }
    task.take_work()
}

/// Polls the work of a task. If the run was given up in it, the task counts as finished.
fn step(work: &mut Polled) -> Poll<()> {
    match catch_unwind(AssertUnwindSafe(|| work.poll())) {
        Ok(polled) => polled,
        Err(payload) if payload.is::<GivenUp>() => Poll::Ready(()),
        Err(payload) => resume_unwind(payload),
    }
}

/// Ends a step of a task. A stop that began in this step does not count for the next one.
fn end_step(world: &mut World, key: Key<Task>) {
    if !world.halt.is_armed() {
        return;
    }
    let client = world.tasks.get(key).map(Task::client);
    if let Some(state) = client.and_then(|client| world.clients.get_mut(client)) {
        state.stops().take_first();
    }
}

/// Stores the work for the next poll, or returns it if the process has ended during this poll.
fn put_back(world: &mut World, key: Key<Task>, work: Box<Polled>) -> Option<Box<Polled>> {
    match world.tasks.get_mut(key) {
        Some(task) => {
            task.put_work(work);
            None
        }
        None => Some(work),
    }
}
