//! The main loop of a run, from its beginning to its end.

mod begin;
pub mod clients;
mod end;
mod faults;
pub mod network;
pub mod nodes;
mod record;
pub mod stop;

use std::rc::Rc;

use crate::engine::clients::executor::{self, run_ready};
use crate::engine::clients::{endless, timers, writes};
use crate::engine::faults::Deferred;
use crate::engine::network::{calls, connections, deadlines, subscriptions};
use crate::engine::nodes::{arrivals, dead_claims, elections, failover, migration, replicas, wait};
use crate::history::History;
use crate::world::callback::Job;
use crate::world::event::Event;
use crate::world::id::{ClientId, first};
use crate::world::medium::Medium;
use crate::world::subscription::Tell;
use crate::world::task::{Program, Task, TaskKind, forget_ready, is_anything_ready, make_ready};
use crate::world::{Counters, World, with};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::time::SimTime;

/// The results of a run.
#[derive(Debug)]
pub struct Ended {
    /// A hash of everything that happened.
    pub trace: u64,
    /// What happened.
    pub history: History,
    /// How many times each fault of the plan had an effect.
    pub effects: Vec<u32>,
    /// The numbers of events, requests and answers.
    pub counters: Counters,
    /// The length of the run in true time.
    pub lasted: SimTime,
}

/// Runs a plan that has been checked.
pub fn run(plan: &Rc<Plan>, medium: &dyn Medium, program: Program) -> Ended {
    with(|world| {
        begin::begin(world, plan, medium);
        world.program = Some(program);
    });
    let mut driver = medium.driver(plan);
    if driver.is_some() {
        with(|world| world.push(0, Event::Step));
    }
    for client in first(plan.clients) {
        start(client);
    }
    loop {
        run_ready();
        match with(next) {
            // `GoesOn` belongs to a step that is stopped. No step is stopped in this loop.
            Next::Ready | Next::GoesOn => {}
            Next::Tell(tell) => tell.now(),
            Next::Job(job) => job.now(),
            Next::Resume(client) => resume(client),
            Next::Boot(client) => start(client),
            Next::Drop(tasks) => drop(tasks),
            Next::Step => {
                if let Some(driver) = &mut driver {
                    let next = driver.step();
                    with(|world| world.push(world.now() + next, Event::Step));
                }
            }
            Next::End => break,
        }
    }
    let program = with(|world| world.program.clone());
    program.expect("BUG: a run without a program").end();
    let lasted = with(|world| SimTime::nanos(world.now()));
    for client in first(plan.clients) {
        let tasks = with(|world| clients::kill(world, client));
        drop(tasks);
    }
    let rest = with(end::clear);
    drop(rest);
    drop(driver);
    let servers = with(|world| std::mem::take(&mut world.servers));
    drop(servers);
    forget_ready();
    let program = with(|world| world.program.take());
    drop(program);
    with(|world| Ended {
        trace: world.trace(),
        history: std::mem::take(&mut world.history),
        effects: faults::effects(world),
        counters: world.counters,
        lasted,
    })
}

/// Starts a process of a client. This runs code of the user, so the world is not borrowed.
fn start(client: ClientId) {
    let (who, program) = with(|world| {
        let who = clients::boot(world, client);
        let program = world.program.clone();
        (who, program.expect("BUG: a run without a program"))
    });
    let work = program.start(who);
    with(|world| executor::spawn(world, who, TaskKind::Main, work));
}

/// Resumes a paused client: delivers the messages that it missed, then makes its tasks ready.
fn resume(client: ClientId) {
    let missed = with(|world| world.client(client).take_missed());
    for mail in missed.mail {
        if let Some(tell) = with(|world| subscriptions::open(world, mail)) {
            tell.now();
        }
    }
    missed.tasks.into_iter().for_each(make_ready);
}

/// The next action of the loop. It is performed while the world is not borrowed.
enum Next {
    Ready,
    Tell(Tell),
    Job(Job),
    Resume(ClientId),
    Boot(ClientId),
    Drop(Vec<Task>),
    GoesOn,
    Step,
    End,
}

fn next(world: &mut World) -> Next {
    loop {
        if endless::is_given_up(world) {
            return Next::End;
        }
        if is_anything_ready() {
            return Next::Ready;
        }
        if world.livelock.is_too_much() {
            endless::give_up(world, None);
        }
        let Some(event) = world.events.pop() else {
            return Next::End;
        };
        world.advance(event.at);
        world.branch_off();
        if world.dead_claims.is_due(event.at) {
            dead_claims::look(world);
        }
        world.counters.events += 1;
        world.note(event.at ^ event.what.tag() << 32);
        let next = happen(world, event.what);
        world.keep(event.at, event.what);
        if world.recording.is_some() {
            record::everything(world);
        }
        if let Some(next) = next {
            return next;
        }
    }
}

fn happen(world: &mut World, what: Event) -> Option<Next> {
    match what {
        Event::Request(call) => arrivals::arrive(world, call),
        Event::Reply(reply) => calls::reply_arrives(world, reply),
        Event::Alarm(alarm, entry) => timers::ring(world, alarm, entry),
        Event::Deadlines(client) => deadlines::expire(world, client),
        Event::ResumeClient(client, pause) => {
            let is_last = world.client(client).is_pause(pause);
            return is_last.then_some(Next::Resume(client));
        }
        Event::BootClient(client) => {
            return world.stopped_at().is_none().then_some(Next::Boot(client));
        }
        Event::Connect(client, node, epoch) => {
            connections::connect_arrives(world, client, node, epoch)
        }
        Event::Connected(client, node, epoch) => connections::connected(world, client, node, epoch),
        Event::Refused(client, node, epoch) | Event::Reconnect(client, node, epoch) => {
            connections::not_connected(world, client, node, epoch);
        }
        Event::Seek(client, node, epoch) => connections::seek_again(world, client, node, epoch),
        Event::Reachable(key) => {
            return connections::reachable(world, key).map(Next::Tell);
        }
        Event::Closed(client, node, epoch) => connections::closed(world, client, node, epoch),
        Event::Subscribe(key, epoch) => subscriptions::arrive(world, key, epoch),
        Event::Resubscribe(key, epoch) => subscriptions::resubscribe(world, key, epoch),
        Event::Live(key, epoch) => return subscriptions::live(world, key, epoch).map(Next::Tell),
        Event::Wake(key, wake) => return subscriptions::wake(world, key, wake).map(Next::Tell),
        Event::ResumeNode(node, pause) => nodes::resume(world, node, pause),
        Event::RestartNode(node) => nodes::restart(world, node),
        Event::Save(node) => replicas::save(world, node),
        Event::Reroute(client, seat) => failover::reroute(world, client, seat),
        Event::Begins(fault) => match faults::begin(world, fault) {
            Deferred::Nothing => {}
            Deferred::Drop(tasks) => return Some(Next::Drop(tasks)),
        },
        Event::Ends(fault) => faults::end(world, fault),
        Event::Vain(fault) => faults::write_in_vain(world, fault),
        Event::Watch(seat) => elections::watch(world, seat),
        Event::Migrate(fault) => migration::go_on(world, fault),
        Event::Replicated(waiting) => wait::end(world, waiting),
        Event::Write(write) => writes::arrive(world, write),
        Event::Written(write) => writes::finish(world, write),
        Event::Job(job) => return world.jobs.remove(job).map(Next::Job),
        Event::GoesOn => return Some(Next::GoesOn),
        Event::Bury => return Some(Next::Drop(world.halt.take_graves())),
        Event::Step => return Some(Next::Step),
        Event::Stop => return end::stop(world),
        Event::End => return end::end(world),
    }
    None
}
