//! One run, from beginning to end.

mod calls;
mod clients;
mod connections;
mod executor;
mod nodes;
mod record;
mod replication;
mod statements;
pub(crate) mod stop;
mod subscriptions;
mod timers;
mod trouble;
mod turn;
mod writes;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use crate::engine::executor::run_ready;
use crate::engine::trouble::Aftermath;
use crate::history::{History, Leftover};
use crate::plan::fault::{Fault, Kind};
use crate::plan::time::Span;
use crate::plan::{Lane, Plan};
use crate::turmoil::{Network, STEP, Sockets};
use crate::world::client::{ClientState, Who};
use crate::world::event::What;
use crate::world::link::Link;
use crate::world::node::{NodeState, Role};
use crate::world::specification::server::Specification;
use crate::world::store::Store;
use crate::world::subscription::Tell;
use crate::world::task::{Part, Task, forget_ready, is_anything_ready, make_ready};
use crate::world::{Counters, World, with};

/// What a process of a client does, from its start to its end.
pub(crate) type Main<'a> = dyn Fn(Who) -> Pin<Box<dyn Future<Output = ()>>> + 'a;

/// What is left of a run.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) trace: u64,
    pub(crate) history: History,
    pub(crate) effects: Vec<u32>,
    pub(crate) counters: Counters,
    pub(crate) lasted: Span,
}

/// How often it is looked whether everything has come to rest.
const REST: u64 = 50_000_000;

/// Runs a plan that was checked.
pub(crate) fn run(plan: &Rc<Plan>, main: &Main<'_>) -> Ended {
    with(|world| world.begin(plan));
    let mut network = (plan.lane == Lane::Turmoil).then(|| {
        with(|world| world.push(0, What::Step));
        Network::new(plan)
    });
    for client in 0..plan.clients {
        start(client, main);
    }
    loop {
        run_ready();
        match with(World::next) {
            // What goes on is in the middle of a step of its own.
            Next::Ready | Next::GoesOn => {}
            Next::Tell(tell) => tell.now(),
            Next::Resume(client) => resume(client),
            Next::Boot(client) => start(client, main),
            Next::Drop(tasks) => drop(tasks),
            Next::Step => {
                network.iter_mut().for_each(Network::step);
                with(|world| world.push(world.now + STEP, What::Step));
            }
            Next::End => break,
        }
    }
    let lasted = with(|world| Span::nanos(world.now));
    for client in 0..plan.clients {
        let tasks = with(|world| world.kill_client(client));
        drop(tasks);
    }
    let rest = with(World::clear);
    drop(rest);
    drop(network);
    let servers = with(|world| std::mem::take(&mut world.servers));
    drop(servers);
    forget_ready();
    with(|world| Ended {
        trace: world.trace,
        history: std::mem::take(&mut world.history),
        effects: std::mem::take(&mut world.effects),
        counters: world.counters,
        lasted,
    })
}

/// Starts a client: as a user would, outside the world.
fn start(client: u16, main: &Main<'_>) {
    let who = with(|world| world.boot(client));
    let work = main(who);
    with(|world| world.spawn(who, Part::Main, work));
}

/// A client goes on: it hears what it has missed, then its tasks run.
fn resume(client: u16) {
    let (mail, parked) = with(|world| {
        let state = world.client(client);
        (
            std::mem::take(&mut state.mail),
            std::mem::take(&mut state.parked),
        )
    });
    for letter in mail {
        if let Some(tell) = with(|world| world.open(letter)) {
            tell.now();
        }
    }
    parked.into_iter().for_each(make_ready);
}

/// What is to be done next, outside the world.
enum Next {
    Ready,
    Tell(Tell),
    Resume(u16),
    Boot(u16),
    Drop(Vec<Task>),
    GoesOn,
    Step,
    End,
}

impl World {
    fn begin(&mut self, plan: &Rc<Plan>) {
        forget_ready();
        self.run = self.run.wrapping_add(1);
        self.now = 0;
        self.plan = Rc::clone(plan);
        self.trace = plan.seed;
        self.events.clear();
        self.counters = Counters::default();
        self.history.clear();
        self.statements.clear();
        self.active.clear();
        self.promoted.clear();
        self.store = Store::new(plan.seed);
        self.effects.clear();
        self.effects.resize(plan.faults.len(), 0);
        self.stopped_at = None;
        self.is_stopped = false;
        let seats = plan.nodes.count;
        self.clients = (0..plan.clients)
            .map(|client| ClientState::new(plan.seed, client))
            .collect();
        self.nodes.clear();
        for _ in 0..seats {
            self.nodes.push(NodeState::new(Role::Primary));
        }
        // What a replica has is seen by nobody unless it is promoted or recorded.
        let is_failover = |fault: &Fault| fault.kind() == Kind::Failover;
        let are_replicas_seen = self.recording.is_some()
            || plan.nodes.wait.is_some()
            || plan.nodes.min_replicas.is_some()
            || plan.faults.iter().any(is_failover);
        for seat in 0..seats {
            for _ in 0..plan.nodes.replicas {
                let id = u16::try_from(self.nodes.len()).unwrap_or(u16::MAX);
                self.nodes.push(NodeState::new(Role::ReplicaOf(seat)));
                if are_replicas_seen {
                    self.node(seat).replicas.push((id, 0));
                }
            }
        }
        let (least, most) = (plan.network.least.as_nanos(), plan.network.most.as_nanos());
        let links = usize::from(plan.clients) * self.nodes.len();
        self.links = (0..links)
            .map(|index| Link::new(plan.seed, index as u64, least, most))
            .collect();
        self.routes = (0..plan.clients).flat_map(|_| 0..seats).collect();
        self.history.healed = plan.heals_at().as_nanos();
        self.history.progress_due = plan.heals_at().plus(plan.progress_bound()).as_nanos();
        self.schedule_faults();
        let stop = if plan.faults.is_empty() {
            plan.duration
        } else {
            plan.duration.max(Span::nanos(self.history.progress_due))
        };
        // A run that ends before does not show that it would not have come.
        self.history.demands_progress = self.history.progress_due <= stop.as_nanos();
        self.push(stop.as_nanos(), What::Stop);
        self.servers = match plan.lane {
            Lane::Fast => Box::new(Specification::new(plan, self.nodes.len())),
            Lane::Turmoil => Box::new(Sockets::new(plan, self.nodes.len())),
        };
        self.ripen_nodes();
    }

    fn next(&mut self) -> Next {
        loop {
            if is_anything_ready() {
                return Next::Ready;
            }
            let Some(event) = self.events.pop() else {
                return Next::End;
            };
            self.now = event.at;
            self.counters.events += 1;
            self.note(event.at ^ event.what.tag() << 32);
            let next = self.happen(event.what);
            if self.recording.is_some() {
                self.record();
            }
            if let Some(next) = next {
                return next;
            }
        }
    }

    fn happen(&mut self, what: What) -> Option<Next> {
        match what {
            What::Request(call) => self.request_arrives(call),
            What::Reply(reply) => self.reply_arrives(reply),
            What::Alarm(alarm, entry) => self.alarm(alarm, entry),
            What::Deadlines(client) => self.deadlines(client),
            What::ResumeClient(client, pause) => {
                return (self.client(client).pauses == pause).then_some(Next::Resume(client));
            }
            What::BootClient(client) => {
                return self.stopped_at.is_none().then_some(Next::Boot(client));
            }
            What::Connect(client, node, epoch) => self.connect_arrives(client, node, epoch),
            What::Connected(client, node, epoch) => self.connected(client, node, epoch),
            What::Refused(client, node, epoch) | What::Reconnect(client, node, epoch) => {
                self.not_connected(client, node, epoch);
            }
            What::Closed(client, node, epoch) => self.closed(client, node, epoch),
            What::Subscribe(key, epoch) => self.subscribe_arrives(key, epoch),
            What::Resubscribe(key, epoch) => self.resubscribe(key, epoch),
            What::Live(key, epoch) => return self.live(key, epoch).map(Next::Tell),
            What::Wake(key, wake) => return self.wake(key, wake).map(Next::Tell),
            What::ResumeNode(node, pause) => self.resume_node(node, pause),
            What::RestartNode(node) => self.restart_node(node),
            What::Save(node) => self.save(node),
            What::Reroute(client, seat) => self.reroute(client, seat),
            What::Begins(fault) => match self.fault_begins(fault) {
                Aftermath::Nothing => {}
                Aftermath::Drop(tasks) => return Some(Next::Drop(tasks)),
            },
            What::Ends(fault) => self.fault_ends(fault),
            What::Replicated(waiting) => self.replicated(waiting),
            What::Write(write) => self.write_arrives(write),
            What::Written(write) => self.written(write),
            What::GoesOn => return Some(Next::GoesOn),
            What::Bury => return Some(Next::Drop(std::mem::take(&mut self.graves))),
            What::Step => return Some(Next::Step),
            What::Stop => return Some(self.stop()),
            What::End => return self.end(),
        }
        None
    }

    /// What users wrote ends here, wherever it is; what the product does in the background goes on.
    fn stop(&mut self) -> Next {
        self.stopped_at = Some(self.now);
        self.push(self.now + REST, What::End);
        let mains = self.tasks.keys(|task| task.part == Part::Main);
        let tasks = mains.into_iter().filter_map(|key| self.tasks.remove(key));
        Next::Drop(tasks.collect())
    }

    /// The end, once nothing stands and nothing is under way any more, or ought to.
    fn end(&mut self) -> Option<Next> {
        let stopped_at = self.stopped_at.unwrap_or(self.now);
        let leftovers = self.leftovers();
        let is_quiet = self.calls.iter().next().is_none() && self.servers.is_quiet();
        let is_at_rest = leftovers.is_empty() && is_quiet;
        if !is_at_rest && self.now < stopped_at + self.plan.rest_bound().as_nanos() {
            self.push(self.now + REST, What::End);
            return None;
        }
        self.history.leftovers = leftovers;
        Some(Next::End)
    }

    /// What stands on primaries.
    fn leftovers(&mut self) -> Vec<Leftover> {
        let mut leftovers = Vec::new();
        for node in 0..u16::try_from(self.nodes.len()).unwrap_or(u16::MAX) {
            if self.node(node).role != Role::Primary {
                continue;
            }
            let now = self.micros(node);
            let server = self.servers.server(node);
            for name in server.names_left(now, &self.history.names) {
                let name = self.history.name(&name);
                leftovers.push(Leftover { node, name });
            }
        }
        leftovers
    }

    /// Takes out all that may have drops of its own.
    fn clear(&mut self) -> impl Sized + use<> {
        self.events.clear();
        self.replies.drain();
        (
            self.tasks.drain(),
            self.alarms.drain(),
            self.calls.drain(),
            self.subscriptions.drain(),
            self.writes.drain(),
        )
    }
}
