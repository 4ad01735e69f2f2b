//! Every order of events in a small world in which a longer lease has just been introduced.
//!
//! Three nodes, a client A with the new setting, and a client B with the old one, which has heard nothing of the raise. A
//! tick is an old longest lease, and a new one is two. A step is one of these: a client looks at a node, or a node
//! executes a client's request and is heard; a client begins its only round; a node loses its data, once; B forgets
//! everything before its round, once; a tick passes. All replies arrive at once, because a reply that arrives later
//! shows no less. Nodes have real markers. The rules of the clients are written once more. No two clients must rely on
//! the lock at the same time. The model can leave out a rule, and then they do.

#![allow(
    clippy::indexing_slicing,
    reason = "indices are those of three nodes and two clients"
)]

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::*;
use crate::marker::{Act, Check, ConfirmedMarker, Marked, Restarts};
use crate::time::WallMillis;

const NODES: usize = 3;
const OLD: u64 = 1;
const NEW: u64 = 2;
const LAST_TICK: u64 = 2;
const AT: WallMillis = WallMillis(0);

/// The figures of all nodes at the beginning: A may write that they grant longer leases.
const NEEDED: Figures = Figures {
    granted_millis: OLD,
    needed_millis: NEW,
    watched_millis: NEW,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LeftOut {
    Nothing,
    /// Votes of nodes with a shorter watch are withdrawn when the needed one becomes longer.
    Withdrawal,
    /// A vote of a node that was watched for too short a time does not count.
    Need,
    /// A node that was watched for too short a time is watched again, and not only told the longer figures.
    NewWatch,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Claim {
    client: usize,
    expires: u64,
}

#[derive(Clone, Hash, Debug)]
struct Node {
    marked: Marked,
    nonces: u64,
    claim: Option<Claim>,
}

#[derive(Clone, Copy, Hash, Debug)]
struct Round {
    began: u64,
    asked: [bool; NODES],
    /// How long each node that voted had been watched.
    counted: [Option<u64>; NODES],
    is_won: bool,
}

#[derive(Clone, Hash, Debug)]
struct Client {
    own: u64,
    known: Option<Figures>,
    /// The longest watch that any marker has shown.
    watched: u64,
    /// The nonce that is watched on each node, and since when.
    watching: [Option<(Nonce, u64)>; NODES],
    /// Which nodes were watched for too short a time.
    is_short: [bool; NODES],
    round: Option<Round>,
    has_tried: bool,
}

#[derive(Clone, Hash, Debug)]
struct World {
    now: u64,
    losses: u32,
    has_forgotten: bool,
    nodes: [Node; NODES],
    clients: [Client; 2],
}

impl Client {
    fn new(own: u64, known: Option<Figures>) -> Self {
        Client {
            own,
            known,
            watched: 0,
            watching: [None; NODES],
            is_short: [false; NODES],
            round: None,
            has_tried: false,
        }
    }

    fn stated(&self) -> Figures {
        let known = self.known.unwrap_or(Figures::same(self.own));
        Figures {
            watched_millis: known.watched_millis.max(self.watched),
            ..known
        }
    }

    fn confirmed(&self) -> Figures {
        let stated = self.stated();
        Figures {
            watched_millis: stated.watched_millis.max(self.own),
            ..stated
        }
    }

    fn relies(&self, now: u64) -> bool {
        let round = self.round.filter(|round| round.is_won);
        round.is_some_and(|round| now < round.began + self.own)
    }

    /// The check of a request to a node. An acquire confirms nothing.
    fn check(&self, now: u64, node: usize, nonce: Nonce, is_probe: bool) -> Check {
        let confirmed = self.confirmed();
        let is_over = |since: u64| since + confirmed.watched_millis <= now;
        match self.watching[node] {
            Some((nonce, since)) if is_probe && is_over(since) => {
                check(Act::Confirm(nonce), confirmed, None)
            }
            _ if self.is_short[node] => check(Act::MarkAnew(nonce), self.stated(), None),
            _ => check(Act::Mark(nonce), self.stated(), None),
        }
    }

    /// Handles what a node shows. Returns whether its vote counts.
    fn see(&mut self, now: u64, node: usize, shown: ShownMarker, without: LeftOut) -> bool {
        let ShownMarker::Own(nonce, state, figures) = shown else {
            self.watching[node] = None;
            return false;
        };
        self.watched = self.watched.max(figures.watched_millis);
        if state == MarkerState::Confirmed {
            let before = self.known.unwrap_or(figures);
            let known = before.larger(figures);
            self.known = Some(known);
            let rises = before.needed_millis < known.needed_millis;
            if let Some(round) = self.round.as_mut().filter(|round| !round.is_won)
                && rises
                && without != LeftOut::Withdrawal
            {
                let needed = known.needed_millis;
                for vote in &mut round.counted {
                    vote.take_if(|watched| *watched < needed);
                }
            }
        }
        let needed = self.known.map_or(0, |known| known.needed_millis);
        self.is_short[node] = figures.watched_millis < needed;
        let counts = !self.is_short[node] || without == LeftOut::Need;
        if state == MarkerState::Confirmed || !counts {
            self.watching[node] = None;
        } else if self.watching[node].is_none_or(|(watched, _)| watched != nonce) {
            self.watching[node] = Some((nonce, now));
        }
        counts && state == MarkerState::Confirmed
    }
}

fn check(act: Act, figures: Figures, trusted: Option<ConfirmedMarker>) -> Check {
    Check {
        figures,
        act,
        trusted,
        restarts: Restarts::MayForget,
        known: None,
    }
}

impl Node {
    fn confirmed(figures: Figures) -> Self {
        let mut marked = Marked::default();
        marked.check(AT, check(Act::MarkFresh(Nonce::new(0)), figures, None));
        Node {
            marked,
            nonces: 1,
            claim: None,
        }
    }

    /// Executes a check, and returns what the node shows.
    fn execute(&mut self, check: Check, without: LeftOut) -> ShownMarker {
        let is_anew = matches!(check.act, Act::MarkAnew(_));
        let before = self.marked.marker(AT);
        let shown = self.marked.check(AT, check).marker;
        let after = self.marked.marker(AT);
        if before.map(|it| it.nonce) != after.map(|it| it.nonce) {
            self.nonces += 1;
        }
        if let Some(marker) = before.filter(|_| is_anew && without == LeftOut::NewWatch) {
            let figures = check.figures;
            self.marked
                .put(Some(crate::marker::Marker { figures, ..marker }));
            return ShownMarker::Own(marker.nonce, marker.state, figures);
        }
        shown
    }
}

impl World {
    fn first() -> Self {
        World {
            now: 0,
            losses: 0,
            has_forgotten: false,
            nodes: [(); NODES].map(|()| Node::confirmed(NEEDED)),
            clients: [
                Client::new(NEW, Some(NEEDED)),
                Client::new(OLD, Some(Figures::same(OLD))),
            ],
        }
    }

    fn is_broken(&self) -> bool {
        self.clients.iter().all(|client| client.relies(self.now))
    }

    /// Whether both clients may still win.
    fn is_open(&self) -> bool {
        let may_win = |client: &Client| !client.has_tried || client.round.is_some();
        self.clients.iter().all(may_win)
    }

    fn tick(&mut self) {
        self.now += 1;
        let now = self.now;
        for node in &mut self.nodes {
            node.claim.take_if(|claim| claim.expires <= now);
        }
        for client in &mut self.clients {
            let own = client.own;
            client.round.take_if(|round| round.began + own <= now);
        }
    }

    /// A client probes a node.
    fn probe(&mut self, client: usize, node: usize, without: LeftOut) {
        let (one, asked) = (&mut self.clients[client], &mut self.nodes[node]);
        let check = one.check(self.now, node, Nonce::new(asked.nonces), true);
        let shown = asked.execute(check, without);
        one.see(self.now, node, shown, without);
    }

    /// A writes that a node grants longer leases.
    fn grant_longer(&mut self, node: usize) {
        let trusted = ConfirmedMarker {
            process: Process(0),
            nonce: Nonce::new(0),
            figures: NEEDED,
        };
        let restate = check(Act::Restate, Figures::same(NEW), Some(trusted));
        self.nodes[node].execute(restate, LeftOut::Nothing);
    }

    /// A node executes the acquire of a client's round. Does nothing if it refuses.
    fn ask(&mut self, client: usize, node: usize, without: LeftOut) {
        let (one, asked) = (&mut self.clients[client], &mut self.nodes[node]);
        let own = one.own;
        let check = one.check(self.now, node, Nonce::new(asked.nonces), false);
        let is_free = asked
            .claim
            .as_ref()
            .is_none_or(|claim| claim.client == client);
        let is_asked = one
            .round
            .is_some_and(|round| round.asked[node] || round.is_won);
        if one.round.is_none() || is_asked || !is_free {
            return;
        }
        if asked.marked.admits(AT, check, own).is_err() {
            return;
        }
        let expires = self.now + own;
        asked.claim = Some(Claim { client, expires });
        let shown = asked.execute(check, without);
        let counts = one.see(self.now, node, shown, without);
        let marker = asked.marked.marker(AT);
        let watched = marker.map(|it| it.figures.watched_millis);
        if let Some(round) = &mut one.round {
            round.asked[node] = true;
            round.counted[node] = watched.filter(|_| counts);
            let votes = round.counted.iter().flatten().count();
            round.is_won = NODES < 2 * votes && self.now < round.began + own;
        }
    }

    /// All worlds after one more step.
    fn next(&self, without: LeftOut) -> Vec<World> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut World)| {
            let mut next = self.clone();
            change(&mut next);
            all.push(next);
        };
        if self.now < LAST_TICK {
            add(&World::tick);
        }
        for client in 0..2 {
            if !self.clients[client].has_tried {
                add(&|next| {
                    next.clients[client].has_tried = true;
                    next.clients[client].round = Some(Round {
                        began: next.now,
                        asked: [false; NODES],
                        counted: [None; NODES],
                        is_won: false,
                    });
                });
            }
        }
        if !self.has_forgotten && !self.clients[1].has_tried {
            add(&|next| {
                next.has_forgotten = true;
                next.clients[1] = Client::new(OLD, None);
            });
        }
        for node in 0..NODES {
            if self.nodes[node]
                .marked
                .marker(AT)
                .is_some_and(|it| it.figures == NEEDED)
            {
                add(&|next| next.grant_longer(node));
            }
            if self.losses == 0 {
                add(&|next| {
                    next.losses = 1;
                    next.nodes[node].marked = Marked::default();
                    next.nodes[node].claim = None;
                });
            }
            for client in 0..2 {
                add(&|next| next.probe(client, node, without));
                add(&|next| next.ask(client, node, without));
            }
        }
        all
    }
}

/// Returns a number for a state. It does not depend on the order of the nodes, which are alike.
fn print(world: &World) -> (u64, u64) {
    let mut nodes = [0, 1, 2].map(|node| {
        let views = world.clients.each_ref().map(|client| {
            let round = client
                .round
                .map(|round| (round.asked[node], round.counted[node]));
            (client.watching[node], client.is_short[node], round)
        });
        hash(&(&world.nodes[node], views))
    });
    nodes.sort_unstable();
    let clients = world.clients.each_ref().map(|client| {
        let round = client.round.map(|round| (round.began, round.is_won));
        (client.known, client.watched, client.has_tried, round)
    });
    let whole = (world.now, world.losses, world.has_forgotten, clients, nodes);
    (hash(&whole), hash(&(whole, 1)))
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Visits every state. Returns how many there are, and whether two clients rely on the lock in one of them.
fn search(without: LeftOut) -> (usize, bool) {
    let mut seen = BTreeSet::from([print(&World::first())]);
    let mut left = vec![World::first()];
    while let Some(world) = left.pop() {
        for next in world.next(without) {
            if next.is_broken() {
                return (seen.len(), true);
            }
            if next.is_open() && seen.insert(print(&next)) {
                left.push(next);
            }
        }
    }
    (seen.len(), false)
}

#[test]
fn one_loss_of_data_never_gives_two_clients_a_lock_whatever_the_old_client_has_heard() {
    let (states, is_broken) = search(LeftOut::Nothing);
    assert!(!is_broken);
    assert!(200_000 < states, "{states}");
}

#[test]
fn each_rule_of_the_raise_is_needed() {
    for without in [LeftOut::Withdrawal, LeftOut::Need, LeftOut::NewWatch] {
        assert!(search(without).1, "{without:?}");
    }
}
