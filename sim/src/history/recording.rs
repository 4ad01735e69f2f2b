//! What can be seen of a run from outside: messages, claims on nodes, who stood still, what clocks showed.
//!
//! Only reports need it, so only their runs record it. A recording changes nothing about a run.

mod message;

use std::collections::BTreeMap;

use quorlock::transport::{Held, Ttl};
use quorlock::{Name, OwnerId};

use crate::history::{NameId, Process};
use crate::world::World;
use crate::world::node::{NodeState, Role};

pub use message::{Message, Sort};

/// What was recorded of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recording {
    /// In the order in which they were sent.
    pub messages: Vec<Message>,
    /// In the order in which they began.
    pub claims: Vec<Claim>,
    /// In the order in which they began, without those of a process at work.
    pub states: Vec<State>,
    /// Of each clock that was ever wrong: when it showed how much too much, in nanoseconds.
    pub clocks: BTreeMap<Clock, Vec<(u64, i64)>>,
    owners: BTreeMap<OwnerId, Process>,
    names: Vec<Name>,
    /// Of a place the claims that stand: several, where several read.
    open_claims: BTreeMap<(u16, NameId), Vec<usize>>,
    open_states: BTreeMap<Place, usize>,
    /// What the monotonic clock of each client showed at the beginning.
    uptimes: Vec<u64>,
}

/// A client or a node, each from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum Place {
    Client(u16),
    Node(u16),
}

/// A clock of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Clock {
    /// By which a client measures leases.
    Monotonic(u16),
    /// Of a client.
    Wall(u16),
    /// Of a node.
    Node(u16),
}

/// A claim on a node, for as long as it stood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Where.
    pub node: u16,
    /// Of which name.
    pub name: NameId,
    /// Whose.
    pub owner: Option<Process>,
    /// Since when.
    pub from: u64,
    /// Until when; `u64::MAX` if it stood at the end.
    pub until: u64,
    /// Which round of its client made it.
    identity: Option<OwnerId>,
    /// When it would expire, as the node's clock runs now.
    expires: u64,
}

/// A process that was not at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// Which.
    pub place: Place,
    /// How.
    pub status: Status,
    /// Since when.
    pub from: u64,
    /// Until when; `u64::MAX` if so at the end.
    pub until: u64,
}

/// Why a process does nothing, or a node answers nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum Status {
    Paused,
    Down,
    Replica,
}

/// A step of a clock that is smaller than this is not recorded by itself.
const FINE: u64 = 200_000;

impl Recording {
    /// Ends the claims of a place that stand no more.
    fn end_claims(&mut self, place: (u16, NameId), at: u64, standing: &[(Option<OwnerId>, u64)]) {
        let Some(open) = self.open_claims.get_mut(&place) else {
            return;
        };
        open.retain(|index| {
            let Some(claim) = self.claims.get_mut(*index) else {
                return false;
            };
            let stands = standing.iter().any(|(who, _)| *who == claim.identity);
            if !stands {
                claim.until = claim.expires.min(at);
            }
            stands
        });
    }

    fn state(&mut self, place: Place, status: Option<Status>, at: u64) {
        let open = self.open_states.get(&place).copied();
        let known = open.and_then(|index| self.states.get_mut(index));
        if known.as_ref().map(|state| state.status) == status {
            return;
        }
        if let Some(known) = known {
            known.until = at;
            self.open_states.remove(&place);
        }
        if let Some(status) = status {
            self.open_states.insert(place, self.states.len());
            self.states.push(State {
                place,
                status,
                from: at,
                until: u64::MAX,
            });
        }
    }

    fn clock(&mut self, clock: Clock, at: u64, right: u64, shown: u64) {
        let ahead = shown.cast_signed().wrapping_sub(right.cast_signed());
        match self.clocks.get_mut(&clock) {
            None if ahead == 0 => {}
            None => {
                let before = at.saturating_sub(1);
                self.clocks.insert(clock, vec![(before, 0), (at, ahead)]);
            }
            Some(points) => {
                let last = points.last().map_or(0, |(_, last)| *last);
                if FINE <= last.abs_diff(ahead) {
                    points.push((at, ahead));
                }
            }
        }
    }
}

impl World {
    /// Records how everything stands after an event.
    pub(crate) fn record(&mut self) {
        let Some(mut recording) = self.recording.take() else {
            return;
        };
        for name in self.history.names.iter().skip(recording.names.len()) {
            if let Ok(name) = Name::new(name) {
                recording.names.push(name);
            }
        }
        for node in 0..self.nodes.len() {
            self.catch_up(u16::try_from(node).unwrap_or(u16::MAX));
        }
        self.record_nodes(&mut recording);
        self.record_clients(&mut recording);
        self.recording = Some(recording);
    }

    fn record_nodes(&self, recording: &mut Recording) {
        let now = self.now;
        let right = crate::world::client::right_wall_clock().read(now);
        for (node, id) in self.nodes.iter().zip(0u16..) {
            let status = match node.role {
                _ if !node.is_up => Some(Status::Down),
                _ if now < node.paused_until => Some(Status::Paused),
                Role::ReplicaOf(_) => Some(Status::Replica),
                Role::Primary => None,
            };
            recording.state(Place::Node(id), status, now);
            recording.clock(Clock::Node(id), now, right, node.clock.read(now));
            let names: Vec<_> = recording.names.iter().cloned().zip(0u16..).collect();
            for (name, index) in names {
                let standing = self.standing(node, &name);
                self.record_claims(recording, (id, NameId(index)), &standing);
            }
        }
    }

    /// Who has a claim under a name of a node, and until when as the node's clock runs now.
    fn standing(&self, node: &NodeState, name: &Name) -> Vec<(Option<OwnerId>, u64)> {
        let now = self.now;
        let wall = node.wall(now);
        let expires = |ttl| match ttl {
            // A key is there in the whole of its last millisecond.
            Ttl::Millis(millis) => {
                let last = wall.0.saturating_add(millis);
                let next = last.saturating_add(1).saturating_mul(1_000_000);
                node.clock.when(now, next)
            }
            Ttl::Unbounded => u64::MAX,
        };
        match node.keys.held(wall, name) {
            None => Vec::new(),
            Some((Held::Plain { owner, .. }, ttl)) => vec![(Some(owner), expires(ttl))],
            Some((Held::ReadWrite(held), ttl)) => {
                let readers = node.keys.readers(wall, name).into_iter();
                let readers = readers.map(|(owner, _, ttl)| (Some(owner), expires(ttl)));
                let writer = held.writer.map(|(owner, _)| (Some(owner), expires(ttl)));
                writer.into_iter().chain(readers).collect()
            }
            Some((Held::NotALock, ttl)) => vec![(None, expires(ttl))],
        }
    }

    fn record_claims(
        &self,
        recording: &mut Recording,
        place: (u16, NameId),
        standing: &[(Option<OwnerId>, u64)],
    ) {
        let now = self.now;
        recording.end_claims(place, now, standing);
        for (identity, expires) in standing.iter().copied() {
            let open = recording.open_claims.entry(place).or_default();
            let known = open.iter().copied().find(|index| {
                let claim = recording.claims.get(*index);
                claim.is_some_and(|claim| claim.identity == identity)
            });
            if let Some(claim) = known.and_then(|index| recording.claims.get_mut(index)) {
                claim.expires = expires;
                continue;
            }
            open.push(recording.claims.len());
            let owner = identity.and_then(|owner| recording.owners.get(&owner).copied());
            recording.claims.push(Claim {
                node: place.0,
                name: place.1,
                owner,
                from: now,
                until: u64::MAX,
                identity,
                expires,
            });
        }
    }

    fn record_clients(&self, recording: &mut Recording) {
        let now = self.now;
        let right = crate::world::client::right_wall_clock().read(now);
        for (client, id) in self.clients.iter().zip(0u16..) {
            let status = match client.process.is_some() {
                false => Some(Status::Down),
                true if now < client.paused_until => Some(Status::Paused),
                true => None,
            };
            recording.state(Place::Client(id), status, now);
            recording.clock(Clock::Wall(id), now, right, client.wall.read(now));
            let shown = client.monotonic.read(now);
            if recording.uptimes.len() == usize::from(id) {
                recording.uptimes.push(shown.saturating_sub(now));
            }
            let uptime = recording.uptimes.get(usize::from(id)).copied().unwrap_or(0);
            recording.clock(Clock::Monotonic(id), now, uptime + now, shown);
        }
    }
}
