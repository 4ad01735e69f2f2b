//! Two clients and three nodes. The machines of the core take one event at a time, in every order.
//!
//! A step is one of these: a request is executed and answered, a request is lost, a client checks its round, a client
//! releases, time advances by a tick, or a fault happens. What a client does between two steps takes no time. A paused
//! client takes no step while time passes. A client whose round is pending may check it again.
//!
//! No client takes over a claim whose claim version does not change. Three rules keep the world small, and no outcome is
//! lost by them: untouched nodes are alike, so one stands for all; the run begins with the first request; and it ends when
//! one of the two clients can never hold anything again.

mod search;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::claim_version::ClockMargin;
use quorlock_core::fencing::{Fence, Token};
use quorlock_core::lease::Lease;
use quorlock_core::message::{Access, Acquire, Mode, Release, Reply, Request, Retention};
use quorlock_core::name::Name;
use quorlock_core::node::Node;
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::quorum::{MemberId, Members, Threshold};
use quorlock_core::renewal::{Renewal, Status};
use quorlock_core::round::{Answer, Loss, Order, Outcome, Round};
use quorlock_core::time::{Time, WallMillis};

use crate::variant::{LEASE, Variant};

pub(crate) const NODES: usize = 3;
pub(crate) const CLIENTS: usize = 2;
const TICK: Duration = Duration::from_secs(1);
/// The discovery of a state in which a client requests the lock while the other one holds it, and is granted some of the
/// members that it needs.
pub(crate) const CONTENTION: &str = "contention";

/// The variant that is checked, and the bounds of the search.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) variant: Variant,
    /// The number of ticks after which time ends.
    pub(crate) ticks: u8,
    /// How many rounds a client may begin.
    pub(crate) rounds: u8,
    members: Arc<Members>,
    ids: Vec<MemberId>,
    name: Name,
    lease: Lease,
}

impl Checked {
    pub(crate) fn new(variant: Variant, ticks: u8, rounds: u8) -> Self {
        let members = Arc::new(Members::new([Threshold::majority(NODES)]));
        Checked {
            variant,
            ticks,
            rounds,
            ids: members.all().collect(),
            members,
            name: Name::new("lock").expect("it is a name"),
            lease: Lease::new(TICK * u32::from(LEASE)).expect("it is long enough"),
        }
    }
}

/// The complete state at one moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    /// The true time.
    tick: u8,
    nodes: [Server; NODES],
    clients: [Client; CLIENTS],
    /// The number of nodes that have been touched, which are the first ones.
    touched: usize,
    /// Requests in flight.
    wire: BTreeSet<Message>,
    jumps_left: u8,
    crashes_left: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Server {
    keys: Node,
    /// By how many ticks the client's clock is ahead.
    ahead: u8,
    /// When the node ended, if it is down.
    down_since: Option<u8>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Client {
    /// By how many ticks the client's clock is behind.
    behind: u8,
    /// The number of the client's latest round, from 1.
    number: u8,
    doing: Doing,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Doing {
    Nothing,
    Asking(Round),
    Holding { hold: Renewal, sent: Time },
}

/// A request of one round to one node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Message {
    what: What,
    client: usize,
    number: u8,
    node: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum What {
    Acquire,
    Release,
}

/// A step of the world.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Action {
    /// A client begins a round.
    Start(usize),
    /// A request is executed, and its reply arrives.
    Deliver(Message),
    /// A request is lost, and the client learns only that.
    Lose(Message),
    /// A client checks its round.
    Look(usize),
    /// A client releases its hold.
    GiveBack(usize),
    /// Time passes.
    Tick,
    /// Time passes, but not on the clock of the first client.
    TickUnseen,
    /// The clock of a node jumps by a lease.
    Jump(usize),
    /// A node ends.
    Crash(usize),
    /// The node starts again.
    Restart(usize),
}

impl Variant {
    /// Returns for how long a node keeps a claim beyond its lease.
    fn keep(&self) -> Option<ClockMargin> {
        let margin = TICK * u32::from(self.margin);
        (0 < self.margin).then_some(ClockMargin {
            margin_millis: margin.as_millis() as u64,
            number: 1,
        })
    }
}

fn owner(client: usize, number: u8) -> OwnerId {
    OwnerId {
        client: ClientId::from_random(client as u128),
        number: number.into(),
    }
}

impl State {
    fn client_time(&self, client: usize) -> Time {
        Time::ZERO + TICK * u32::from(self.tick - self.clients[client].behind)
    }

    fn node_time(&self, node: usize) -> WallMillis {
        let ticks = u64::from(self.tick + self.nodes[node].ahead);
        WallMillis(1_000_000 + ticks * TICK.as_millis() as u64)
    }

    /// Returns whether steps of this node are tried. Untouched nodes are alike, so one of them stands for all.
    fn is_known(&self, node: usize) -> bool {
        node <= self.touched
    }

    fn touch(&mut self, node: usize) {
        self.touched = self.touched.max(node + 1);
    }

    /// Returns whether a client can never hold anything again. If it cannot, two clients can never hold at the same
    /// time.
    fn is_done(&self, checked: &Checked, client: usize) -> bool {
        let Client { number, doing, .. } = &self.clients[client];
        let is_over = match doing {
            Doing::Nothing => true,
            Doing::Asking(round) => match round.outcome(self.client_time(client)) {
                Outcome::Lost(Loss::TooSlow) => checked.variant.round_is_checked,
                Outcome::Lost(_) => true,
                Outcome::Pending | Outcome::Won => false,
            },
            Doing::Holding { .. } => false,
        };
        is_over && *number == checked.rounds
    }

    /// Returns whether a client considers itself the holder now.
    fn believes(&self, variant: &Variant, client: usize) -> bool {
        match &self.clients[client].doing {
            Doing::Holding { hold, .. } => {
                !variant.deadline_is_checked
                    || hold.clone().status(self.client_time(client)) == Status::Held
            }
            _ => false,
        }
    }

    /// Returns whether a node has granted the round of a client.
    fn has_a_part(&self, checked: &Checked, client: usize) -> bool {
        match &self.clients[client].doing {
            Doing::Asking(round) => checked.ids.iter().any(|id| round.has_granted(*id)),
            _ => false,
        }
    }

    fn start(&mut self, checked: &Checked, client: usize) {
        let now = self.client_time(client);
        let members = checked.members.clone();
        let mut round = Round::new(now, members, checked.lease, TICK, Order::Parallel);
        let number = self.clients[client].number + 1;
        while let Some(member) = round.next_ask(now) {
            self.wire.insert(Message {
                what: What::Acquire,
                client,
                number,
                node: member.index(),
            });
        }
        self.clients[client].number = number;
        self.clients[client].doing = Doing::Asking(round);
    }

    fn deliver(&mut self, checked: &Checked, message: Message) {
        let Message {
            what,
            client,
            number,
            node,
        } = message;
        let (name, owner) = (checked.name.clone(), owner(client, number));
        let request = match what {
            What::Acquire => Request::Acquire(Acquire {
                access: Access::Plain,
                name,
                owner,
                count: 1,
                lease: checked.lease,
                fence: Fence::Carry(Token(1)),
                retention: Retention::Forever,
                keep: checked.variant.keep(),
                after: None,
                replaces: None,
                continues: None,
                check: None,
            }),
            What::Release => Request::Release(Release {
                mode: Mode::Plain,
                name,
                owner,
                count: 0,
            }),
        };
        let at = self.node_time(node);
        let applied = self.nodes[node].keys.apply(at, &request);
        if let Ok(Reply::Acquire(reply)) = applied.reply {
            self.answered(checked, message, Answer::from(reply));
        }
    }

    /// Delivers the reply to an acquire to its client, which may have given up that round.
    fn answered(&mut self, checked: &Checked, message: Message, answer: Answer) {
        let now = self.client_time(message.client);
        let member = checked.ids[message.node];
        let client = &mut self.clients[message.client];
        if client.number != message.number {
            return;
        }
        match &mut client.doing {
            Doing::Asking(round) => round.handle_answer(now, member, answer),
            Doing::Holding { hold, sent } => {
                if let Answer::Granted(_) = answer {
                    hold.handle_granted(now, member, *sent, checked.lease);
                }
            }
            Doing::Nothing => {}
        }
    }

    /// Returns the state of the round: won, given up, or pending.
    fn look(&mut self, checked: &Checked, client: usize) {
        let now = self.client_time(client);
        let Doing::Asking(round) = &mut self.clients[client].doing else {
            return;
        };
        round.handle_timeout(now);
        let is_won = match round.outcome(now) {
            Outcome::Pending => return,
            Outcome::Won => true,
            Outcome::Lost(Loss::TooSlow) => !checked.variant.round_is_checked,
            Outcome::Lost(_) => false,
        };
        if is_won {
            let sent = round.sent(checked.ids[0]).unwrap_or(Time::ZERO);
            let terms = round.terms().clone();
            let hold = Renewal::new(now, terms, checked.lease, None, Time::NEVER);
            self.clients[client].doing = Doing::Holding { hold, sent };
        } else {
            let may_hold = |id: &MemberId| round.may_hold(*id);
            let left: Vec<_> = checked.ids.iter().copied().filter(may_hold).collect();
            self.release(client, &left);
        }
    }

    fn release(&mut self, client: usize, members: &[MemberId]) {
        let number = self.clients[client].number;
        self.clients[client].doing = Doing::Nothing;
        self.wire.extend(members.iter().map(|member| Message {
            what: What::Release,
            client,
            number,
            node: member.index(),
        }));
    }

    /// Removes what no longer affects any later step, so that states that differ only in that become equal.
    fn tidy(&mut self, checked: &Checked) {
        for node in 0..NODES {
            let at = self.node_time(node);
            if self.nodes[node].keys.held(at, &checked.name).is_none() {
                self.nodes[node].keys.flush();
                self.nodes[node].ahead = 0;
            }
        }
        for client in 0..CLIENTS {
            let is_over = matches!(self.clients[client].doing, Doing::Holding { .. })
                && !self.believes(&checked.variant, client);
            if is_over {
                self.release(client, &checked.ids);
            }
        }
    }
}
