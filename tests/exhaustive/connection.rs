//! For how long a connection shows which process its server is.
//!
//! One node, which one of two servers is at a time: the primary. Client A has a connection to the first server. It has
//! asked that server which process it is, and does not ask again with each acquire: each of them looks only at the
//! node's marker. Client B asks with each request, and watches a process before it counts, by the machines of the core.
//! Both must never rely on the node's vote at the same time.
//!
//! A step is one of these: A sends a request, the server executes it, A receives the reply; B probes or acquires; the
//! replica receives what the primary has written; the two change places, so that writes which the replica has not
//! received are lost; the former primary is synchronized, as a whole or, if it has no other writes, by the missing ones; the
//! database of the primary is swapped with an empty one; a tick passes. A server whose data is replaced as a whole says so
//! on its connections, before any later reply.
//!
//! Two servers that both consider themselves the primary are not part of this: no server knows that it was replaced,
//! whether or not it is asked.

mod search;

use std::time::Duration;

use quorlock_core::fencing::{Fence, Token};
use quorlock_core::lease::Lease;
use quorlock_core::longest_lease::LongestLease;
use quorlock_core::marker::{Act, Check, ConfirmedMarker, MarkerState, Nonce, Process, Restarts};
use quorlock_core::message::{Access, Acquire, AcquireReply, Reply, Request, Retention};
use quorlock_core::name::Name;
use quorlock_core::node::Node;
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::time::{Time, WallMillis};
use quorlock_core::trust::{Counts, Probe, Trust};

const TICK: Duration = Duration::from_secs(1);
/// A lease, which is the longest one, in ticks.
const LEASE: u32 = 3;
/// The process that the first server is at the beginning.
const FIRST: Process = Process(1);
/// How many requests A sends: one that only asks for the process, and an acquire.
const ASKS: u8 = 2;
/// The discovery of a state in which A relies on a reply that did not show the process.
pub(crate) const SPARED: &str = "spared";
/// The discovery of a state in which B relies on another process than the first.
pub(crate) const WATCHED: &str = "watched";

/// What A does not do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LeftOut {
    Nothing,
    /// It asks for the process again after a longest lease, less the drift.
    AskingAgain,
    /// It dates what the server has shown from the sending of the request.
    DatingFromSending,
    /// It believes no reply that comes when the process has to be asked for again. (That it did not have to be when the
    /// request was sent is not enough: the request may be executed much later.)
    JudgingReplies,
    /// It believes no reply behind the message that all data was replaced.
    Hearing,
    /// It looks at the marker with each acquire.
    Marker,
}

/// The rule that is left out, and the bound of the search.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) without: LeftOut,
    /// The number of ticks after which time ends.
    pub(crate) ticks: u8,
    name: Name,
    lease: Lease,
    /// What B knows about leases.
    longest: LongestLease,
    /// The marker that A trusts.
    trusted: ConfirmedMarker,
}

impl Checked {
    pub(crate) fn new(without: LeftOut, ticks: u8) -> Self {
        let longest = LongestLease::new(TICK * LEASE, false, 1);
        Checked {
            without,
            ticks,
            name: Name::new("lock").expect("it is a name"),
            lease: Lease::new(TICK * LEASE).expect("it is long enough"),
            trusted: ConfirmedMarker {
                process: FIRST,
                nonce: Nonce::new(0),
                figures: longest.confirmed(),
            },
            longest,
        }
    }

    fn acquire(&self, client: u128, check: Option<Check>) -> Request {
        Request::Acquire(Acquire {
            access: Access::Plain,
            name: self.name.clone(),
            owner: OwnerId {
                client: ClientId::from_random(client),
                number: 1,
            },
            count: 1,
            lease: self.lease,
            fence: Fence::Carry(Token(1)),
            retention: Retention::Forever,
            keep: None,
            after: None,
            replaces: None,
            continues: None,
            check,
        })
    }
}

/// The complete state at one moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    tick: u8,
    servers: [Server; 2],
    primary: usize,
    /// The process that began last.
    process: Process,
    a: Asking,
    b: Watching,
    failovers_left: u8,
    swaps_left: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Server {
    keys: Node,
    /// For a replica: what it has.
    data: Data,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Data {
    /// It is the primary, or has received its writes up to some moment.
    Following,
    /// It was the primary, and was not synchronized since.
    Old { has_other_writes: bool },
}

/// The client that relies on its connection to the first server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Asking {
    is_connected: bool,
    /// From when the server's statement counts that it is the trusted process.
    shown: Option<Time>,
    /// Whether the message that all data was replaced waits to be read.
    is_told: bool,
    call: Option<Call>,
    asks: u8,
    /// Until when it relies on the node's vote, and whether the reply showed no process.
    holds: Option<(Time, bool)>,
}

/// A request of A.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Call {
    sent: Time,
    shows_process: bool,
    reply: Option<Answered>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Answered {
    is_granted: bool,
    /// Whether the marker is the trusted one, and the process if it is shown.
    is_trusted: bool,
    /// Whether the message that all data was replaced came before it.
    is_behind: bool,
}

/// The client that asks for the process with each request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Watching {
    trust: Trust,
    has_asked: bool,
    /// Until when it relies on the node's vote, and on which process.
    holds: Option<(Time, Process)>,
}

/// A step of the world.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Action {
    Send,
    Execute,
    Receive,
    Probe,
    Acquire,
    Replicate,
    FailOver,
    SyncMissing,
    SyncAll,
    Swap,
    Tick,
}

impl State {
    fn first(checked: &Checked) -> Self {
        let mut keys = Node::of_process(FIRST);
        let fresh = Check {
            figures: checked.trusted.figures,
            act: Act::MarkFresh(checked.trusted.nonce),
            trusted: None,
            restarts: Restarts::MayForget,
            known: None,
        };
        keys.apply(WallMillis(0), &Request::Probe(fresh));
        let server = Server {
            keys,
            data: Data::Following,
        };
        let mut first = State {
            tick: 0,
            servers: [server.clone(), server],
            primary: 0,
            process: FIRST,
            a: Asking {
                is_connected: true,
                shown: None,
                is_told: false,
                call: None,
                asks: 0,
                holds: None,
            },
            b: Watching {
                trust: Trust::new(&checked.longest),
                has_asked: false,
                holds: None,
            },
            failovers_left: 2,
            swaps_left: 1,
        };
        // Nothing before that makes a difference.
        first.send(checked);
        first
    }

    fn now(&self) -> Time {
        Time::ZERO + TICK * u32::from(self.tick)
    }

    fn clock(&self) -> WallMillis {
        WallMillis(u64::from(self.tick) * TICK.as_millis() as u64)
    }

    fn replica(&self) -> usize {
        1 - self.primary
    }

    /// Whether both servers have the same data.
    fn is_same_data(&self) -> bool {
        let [mut one, mut other] = self.servers.clone().map(|server| server.keys);
        one.set_process(FIRST);
        other.set_process(FIRST);
        one == other
    }

    /// Whether A's connection shows the process.
    fn is_shown(&self, checked: &Checked) -> bool {
        let asks_again = checked.without != LeftOut::AskingAgain;
        let lasts = |from| !asks_again || self.now() < checked.lease.term(from);
        self.a.shown.is_some_and(lasts)
    }

    fn send(&mut self, checked: &Checked) {
        self.a.call = Some(Call {
            sent: self.now(),
            shows_process: !self.is_shown(checked),
            reply: None,
        });
        self.a.asks += 1;
    }

    fn execute(&mut self, checked: &Checked) {
        let clock = self.clock();
        let Some(call) = &mut self.a.call else {
            return;
        };
        if self.primary != 0 {
            // A replica refuses to write, and the client uses another connection.
            self.a.call = None;
            self.a.is_connected = false;
            return;
        }
        let keys = &mut self.servers[0].keys;
        let is_granted = 1 < self.a.asks && {
            let reply = keys.apply(clock, &checked.acquire(1, None)).reply;
            matches!(reply, Ok(Reply::Acquire(AcquireReply::Granted { .. })))
        };
        let marker = keys.marker(clock);
        let is_marked = marker.is_some_and(|marker| {
            (marker.process, marker.nonce, marker.state)
                == (FIRST, checked.trusted.nonce, MarkerState::Confirmed)
        });
        let is_process = !call.shows_process || keys.process() == FIRST;
        call.reply = Some(Answered {
            is_granted,
            is_trusted: is_process && (is_marked || checked.without == LeftOut::Marker),
            is_behind: std::mem::take(&mut self.a.is_told),
        });
    }

    fn receive(&mut self, checked: &Checked) {
        let now = self.now();
        let Some(call) = self.a.call.take() else {
            return;
        };
        let Some(reply) = call.reply else {
            return;
        };
        if reply.is_behind && checked.without != LeftOut::Hearing {
            self.a.shown = None;
        }
        let is_judged = checked.without != LeftOut::JudgingReplies || self.a.shown.is_none();
        if is_judged && !call.shows_process && !self.is_shown(checked) {
            return;
        }
        if !reply.is_trusted {
            self.a.shown = None;
            return;
        }
        if call.shows_process {
            self.a.shown = Some(match checked.without {
                LeftOut::DatingFromSending => now,
                _ => call.sent,
            });
        }
        if reply.is_granted {
            self.a.holds = Some((checked.lease.term(call.sent), !call.shows_process));
        }
    }

    /// Executes a request of B on the primary, and returns the reply if the vote counts.
    fn ask(&mut self, request: &Request) -> Option<Reply> {
        let (now, clock) = (self.now(), self.clock());
        let reply = self.servers[self.primary].keys.apply(clock, request).reply;
        let reply = reply.ok()?;
        let (Reply::Checked(_, shown) | Reply::Probe(shown)) = reply else {
            return None;
        };
        let counts = self.b.trust.handle_shown(now, now, shown);
        (counts == Counts::Yes).then_some(reply)
    }

    /// Returns the check of a request of B.
    fn check(&mut self, checked: &Checked, confirms: Option<Nonce>) -> Check {
        // B is the only one that marks, and it marks a process once.
        let nonce = Nonce::new(self.process.0);
        let (act, figures) = match confirms {
            Some(nonce) => (Act::Confirm(nonce), checked.longest.confirmed()),
            None => (Act::Mark(nonce), checked.longest.stated()),
        };
        Check {
            figures,
            act,
            trusted: self.b.trust.trusted(),
            restarts: Restarts::MayForget,
            known: self.b.trust.known(),
        }
    }

    fn probe(&mut self, checked: &Checked) {
        let confirms = match self.b.trust.next_probe(self.now()) {
            None => return,
            Some(Probe::Check) => None,
            Some(Probe::Confirm(nonce)) => Some(nonce),
        };
        let check = self.check(checked, confirms);
        self.ask(&Request::Probe(check));
        self.b.trust.handle_end(self.now(), 0);
    }

    fn acquire(&mut self, checked: &Checked) {
        self.b.has_asked = true;
        let check = self.check(checked, None);
        let request = checked.acquire(2, Some(check));
        if let Some(Reply::Checked(AcquireReply::Granted { .. }, shown)) = self.ask(&request) {
            self.b.holds = Some((checked.lease.term(self.now()), shown.process));
        }
    }

    fn fail_over(&mut self) {
        self.failovers_left -= 1;
        let has_other_writes = !self.is_same_data();
        let former = self.primary;
        self.primary = self.replica();
        self.process = Process(self.process.0 + 1);
        self.servers[former].data = Data::Old { has_other_writes };
        self.servers[self.primary].data = Data::Following;
        self.servers[self.primary].keys.set_process(self.process);
    }

    /// The replica gets all that the primary has.
    fn follow(&mut self) {
        let replica = self.replica();
        let process = self.servers[replica].keys.process();
        let mut keys = self.servers[self.primary].keys.clone();
        keys.set_process(process);
        self.servers[replica] = Server {
            keys,
            data: Data::Following,
        };
    }

    /// Whether A can never rely on the vote again.
    fn is_done(&self) -> bool {
        let may_ask = self.a.is_connected && self.a.asks < ASKS;
        self.a.holds.is_none() && self.a.call.is_none() && !may_ask
    }

    /// Removes what no longer affects any later step.
    fn tidy(&mut self) {
        let now = self.now();
        self.a.holds.take_if(|(until, _)| *until <= now);
        self.b.holds.take_if(|(until, _)| *until <= now);
        if !self.a.is_connected {
            self.a.shown = None;
            self.a.is_told = false;
        }
    }
}
