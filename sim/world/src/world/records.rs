//! Stores: nodes that keep records, and write one only if its version is the one that the write names.

use std::collections::BTreeMap;
use std::rc::Rc;

use quorlock::Name;
use quorlock::runtime::WallMillis;
use quorlock_core::marker::{Figures, Marker, MarkerState, Nonce, Process};
use quorlock_core::node::Node as Keys;
use quorlock_core::node::record::Record;
use quorlock_store::{CheckInError, Claims, Draft, Key, Snapshot, Stamp, Stored, Version, Written};

use crate::world::id::{Id, NodeId, Seat};
use crate::world::node::MARKED_MILLIS;
use crate::world::record_call::{Found, RecordCall};
use crate::world::server::Server;
use crate::world::session::WallMicros;
use quorlock_sim_plan::fault::ServerError;
use quorlock_sim_plan::variant::{Flaw, Variant};
use quorlock_sim_plan::{NodeKind, Persistence, Plan};

/// Whether clients that watch a record are told of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    None,
    Changed,
}

/// One server of a store.
#[derive(Debug)]
pub(crate) struct RecordServer {
    kind: NodeKind,
    id: NodeId,
    seat: Seat,
    /// The number of processes that the server has had. A promotion counts as a new process.
    starts: u32,
    variant: Variant,
    durability: Durability,
    refuses: Option<ServerError>,
    shelf: Shelf,
    /// What a crash leaves, if commits are acknowledged before they are on the disk.
    saved: Shelf,
    written: Vec<Rc<Change>>,
    /// Writes in flight to this server, in their order.
    replicated: Vec<Arriving>,
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Durability {
    /// After it is on the disk.
    OnDisk,
    /// Before. A crash brings an older state back, under the same identity, as a restored copy does.
    InMemory,
}

/// What a server has on its disk. Its primary sends every change of it to the replicas.
#[derive(Clone, Debug, Default)]
struct Shelf {
    records: BTreeMap<Key, (u64, Draft)>,
    /// The number of changes that led to this state. It goes back where an older state comes back.
    changes: u64,
}

/// A change of one record.
#[derive(Debug)]
pub(crate) struct Change {
    key: Key,
    /// The record and its version; `None` if it was deleted.
    record: Option<(u64, Draft)>,
    /// The number of changes, with this one.
    number: u64,
}

/// A change in flight to a replica.
#[derive(Debug)]
struct Arriving {
    from: NodeId,
    arrives: u64,
    change: Rc<Change>,
}

impl Shelf {
    fn take_over(&mut self, change: &Change) {
        self.changes = change.number;
        match &change.record {
            Some(record) => self.records.insert(change.key.clone(), record.clone()),
            None => self.records.remove(&change.key),
        };
    }
}

impl RecordServer {
    pub(crate) fn new(kind: NodeKind, id: NodeId, seat: Seat, plan: &Plan) -> Self {
        RecordServer {
            kind,
            id,
            seat,
            starts: 1,
            variant: plan.variant,
            durability: match plan.nodes.persistence {
                Persistence::EverySecond => Durability::InMemory,
                Persistence::Memory | Persistence::EveryWrite => Durability::OnDisk,
            },
            refuses: None,
            shelf: Shelf::default(),
            saved: Shelf::default(),
            written: Vec::new(),
            replicated: Vec::new(),
        }
    }

    pub(crate) fn has_clock(&self) -> bool {
        self.kind == NodeKind::Database
    }

    pub(crate) fn refuses(&self) -> Option<ServerError> {
        self.refuses
    }

    /// Returns who answers. A consensus store never forgets an acknowledged write, so it is one process for ever.
    fn process(&self) -> Process {
        let seat = (u64::from(self.seat.get()) + 1) << 32;
        let server = (u64::from(self.id.get()) + 1) << 32;
        match self.kind {
            NodeKind::Consensus => Process(seat),
            _ if self.variant.has(Flaw::SuccessorIsSilent) => Process(seat),
            _ => Process(server | u64::from(self.starts)),
        }
    }

    fn stamp(&self, wall: WallMillis) -> Stamp {
        Stamp {
            now: self.has_clock().then_some(wall),
            process: self.process(),
        }
    }

    /// Executes a call. Returns its result, and whether the clients that watch the record must be told of it.
    pub(crate) fn execute(&mut self, wall: WallMillis, call: &RecordCall) -> (Found, Told) {
        match call {
            RecordCall::Read(key) => {
                let stored = self.shelf.records.get(key);
                let stored = stored.map(|(version, draft)| Stored {
                    record: draft.record.clone(),
                    version: Version::from(*version),
                });
                let stamp = self.stamp(wall);
                (Found::Snapshot(Snapshot { stored, stamp }), Told::None)
            }
            RecordCall::Write {
                key,
                version,
                draft,
            } => {
                let present = self.shelf.records.get(key).map(|(version, _)| *version);
                let is_blind = self.variant.has(Flaw::ConditionIgnored);
                if present.map(Version::from) != *version && !is_blind {
                    return (Found::Written(Written::Conflict), Told::None);
                }
                let version = Version::from(self.write(key.clone(), draft.clone()));
                // A store without a clock reports every change. One with a clock reports what clients wait for.
                let is_reported = draft.has_news || self.kind == NodeKind::Consensus;
                let told = match is_reported && !self.variant.has(Flaw::ChangesUntold) {
                    true => Told::Changed,
                    false => Told::None,
                };
                let stamp = self.stamp(wall);
                (Found::Written(Written::Stored { version, stamp }), told)
            }
            RecordCall::Commit {
                key,
                claims,
                record,
            } => {
                let committed = self.commit(wall, key, claims.as_ref(), record);
                (Found::Committed(committed), Told::None)
            }
        }
    }

    /// Writes a record. Returns its version, which is the number of the write, as in the shipped databases.
    fn write(&mut self, key: Key, draft: Draft) -> u64 {
        let version = match self.variant.has(Flaw::VersionsAreCounted) {
            true => self.shelf.changes + 1,
            false => draft.number,
        };
        self.put(key, Some((version, draft)));
        version
    }

    fn has(&self, now: WallMicros, name: &str) -> bool {
        Name::new(name).is_ok_and(|name| {
            let keys = self.keys(millis(now), &name);
            keys.is_some_and(|(keys, now)| keys.held(now, &name).is_some())
        })
    }

    /// Executes a transaction. Nothing else happens between its check and its commit.
    fn commit(
        &mut self,
        wall: WallMillis,
        key: &Key,
        claims: Option<&Claims>,
        record: &[u8],
    ) -> Result<(), CheckInError> {
        let find = |key: &Key| self.shelf.records.get(key).map(|(_, draft)| &*draft.record);
        claims.map_or(Ok(()), |claims| claims.check(wall, find))?;
        let draft = Draft {
            record: record.to_vec(),
            number: self.shelf.changes,
            has_news: false,
            useful_until: None,
        };
        self.write(key.clone(), draft);
        Ok(())
    }

    fn put(&mut self, key: Key, record: Option<(u64, Draft)>) {
        let number = self.shelf.changes + 1;
        let change = Change {
            key,
            record,
            number,
        };
        self.shelf.take_over(&change);
        self.written.push(Rc::new(change));
    }

    /// Returns the keys of a name, and the time by which they are judged: that of the store, or the record's own.
    pub(crate) fn keys(&self, wall: WallMillis, name: &Name) -> Option<(Keys, WallMillis)> {
        let (_, draft) = self.shelf.records.get(&Key::new(name.stem()))?;
        let (record, _) = Record::decode(&draft.record).ok()?;
        let now = match self.kind {
            NodeKind::Consensus => record.clock(),
            _ => wall,
        };
        let stem = Name::new(name.stem()).ok()?;
        Some((record.to_node(self.process(), &stem), now))
    }

    /// Makes a replica start over with a full copy of its primary's data.
    pub(crate) fn copy_of(&mut self, primary: &RecordServer) {
        self.shelf = primary.shelf.clone();
        // What is in flight is part of the copy, or of what the primary has lost.
        self.replicated.clear();
    }

    /// Takes what was written and not yet sent to the replicas.
    pub(crate) fn take_written(&mut self) -> Vec<Rc<Change>> {
        std::mem::take(&mut self.written)
    }

    /// Receives a change that reaches this server at a time.
    pub(crate) fn receive(&mut self, from: NodeId, arrives: u64, change: &Rc<Change>) {
        self.replicated.push(Arriving {
            from,
            arrives,
            change: Rc::clone(change),
        });
    }

    fn delete_all(&mut self) {
        let keys: Vec<Key> = self.shelf.records.keys().cloned().collect();
        for key in keys {
            self.put(key, None);
        }
    }
}

impl Server for RecordServer {
    /// Loses everything with the disk of a database, its last commits if they were not on the disk, or nothing. Another disk is
    /// another database. A consensus store has its records on other machines, too.
    fn crash(&mut self, disk: Persistence) {
        match (self.kind, disk, self.durability) {
            (NodeKind::Database, Persistence::Memory, _) => {
                self.shelf = Shelf::default();
                self.starts += 1;
            }
            (NodeKind::Database, Persistence::EverySecond, Durability::InMemory) => {
                self.shelf = self.saved.clone();
            }
            _ => {}
        }
    }

    /// Does nothing: the process of a store is its data, not a process of its machine.
    fn restart(&mut self) {}

    fn promote(&mut self) {
        self.starts += 1;
    }

    fn set_replicas(&mut self, _many: usize) {}

    fn back_up(&mut self) {}

    fn save(&mut self) {
        self.saved = self.shelf.clone();
    }

    fn flush(&mut self, now: WallMicros, names: &[String]) -> bool {
        let had_any = names.iter().any(|name| self.has(now, name));
        self.delete_all();
        had_any
    }

    fn evict(&mut self, now: WallMicros, name: &str) -> bool {
        let had_one = self.has(now, name);
        if let Ok(name) = Name::new(name) {
            self.put(Key::new(name.stem()), None);
        }
        had_one
    }

    fn refuse(&mut self, error: Option<ServerError>) {
        self.refuses = error;
    }

    fn forget_scripts(&mut self) {}

    fn mark(&mut self, now: WallMicros, nonce: Nonce, longest_millis: u64) {
        let mut record = Record::default();
        let now = match self.kind {
            NodeKind::Consensus => record.clock(),
            _ => millis(now),
        };
        record.put_marker(Some(Marker {
            process: self.process(),
            nonce,
            figures: Figures::same(longest_millis),
            state: MarkerState::Confirmed,
            expires: now.plus(MARKED_MILLIS),
        }));
        let draft = Draft {
            record: record.encode(nonce.get()).into_bytes(),
            number: nonce.get(),
            has_news: false,
            useful_until: None,
        };
        self.write(Key::new(Key::MARKER), draft);
    }

    /// Returns nothing for a store without a clock: the claim of a dead owner remains there until a client observes it.
    fn names_left(&mut self, now: WallMicros, names: &[String]) -> Vec<String> {
        let is_left = |text: &&String| {
            let Ok(name) = Name::new(text) else {
                return false;
            };
            let keys = self.keys(millis(now), &name);
            keys.is_some_and(|(keys, now)| {
                keys.held(now, &name).is_some() || !keys.queue(now, &name).is_empty()
            })
        };
        match self.kind {
            NodeKind::Consensus => Vec::new(),
            _ => names.iter().filter(is_left).cloned().collect(),
        }
    }

    fn catch_up(&mut self, now: u64, primary: Option<NodeId>) {
        for arriving in std::mem::take(&mut self.replicated) {
            if now < arriving.arrives {
                self.replicated.push(arriving);
            } else if primary == Some(arriving.from) {
                self.shelf.take_over(&arriving.change);
            }
        }
    }

    fn has_written(&mut self) -> bool {
        !self.written.is_empty()
    }
}

fn millis(now: WallMicros) -> WallMillis {
    WallMillis(now.0 / 1_000)
}
