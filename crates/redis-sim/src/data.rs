//! The state of one node: its keys, its clock, its role, its channels.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::channels::Channels;
use crate::condition::Condition;
use crate::keyspace::{Entry, Keyspace};
use crate::refusal::Refusal;
use crate::slots::{ClusterState, SlotTable};
use crate::value::{Collection, Value};
use crate::watch::{Place, Watch};

/// A reading of a node's wall clock: microseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WallMicros(pub u64);

impl WallMicros {
    /// Returns the time this many seconds after the beginning of 1970.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        WallMicros(secs.saturating_mul(1_000_000))
    }

    /// Returns the time this many milliseconds after the beginning of 1970.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        WallMicros(millis.saturating_mul(1_000))
    }

    pub(crate) fn millis(self) -> i64 {
        i64::try_from(self.0 / 1_000).unwrap_or(i64::MAX)
    }

    pub(crate) fn secs(self) -> u64 {
        self.0 / 1_000_000
    }
}

/// All keys of a node, as stored on a disk or a replica.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dataset(Vec<Keyspace>);

impl Dataset {
    /// Returns a dataset without keys.
    #[must_use]
    pub fn empty() -> Self {
        Dataset(vec![Keyspace::default(); DATABASES])
    }

    fn database(&self, db: usize) -> Option<&Keyspace> {
        self.0.get(db)
    }

    fn database_mut(&mut self, db: usize) -> &mut Keyspace {
        if self.0.len() <= db {
            self.0.resize(db + 1, Keyspace::default());
        }
        self.0.get_mut(db).expect("BUG: it was made just now")
    }
}

/// The number of databases that can be selected.
pub(crate) const DATABASES: usize = 16;

/// A change that a primary sends to its replicas. See [`Server::apply`](crate::Server::apply).
#[derive(Clone, PartialEq, Debug)]
pub struct Effect(Change);

#[derive(Clone, PartialEq, Debug)]
enum Change {
    Put(usize, Vec<u8>, Entry),
    Remove(usize, Vec<u8>),
    Empty(usize),
}

/// Whether a node accepts writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Primary,
    Replica,
}

/// The state of a node. Scripts and commands share it.
#[derive(Debug)]
pub(crate) struct Data {
    keys: Dataset,
    pub(crate) now: WallMicros,
    pub(crate) role: Role,
    pub(crate) condition: Option<Condition>,
    pub(crate) channels: Channels,
    pub(crate) ids: Ids,
    /// Changes that the replicas have not received yet; `None` if changes are not recorded.
    pub(crate) effects: Option<Vec<Effect>>,
    /// Number of replicas that follow the node.
    pub(crate) replicas: usize,
    pub(crate) backlog: Backlog,
    /// Number of changes so far.
    pub(crate) offset: u64,
    /// Number of connections.
    pub(crate) clients: usize,
    /// When the process started; `None` until the time is first set.
    pub(crate) started: Option<WallMicros>,
    /// Group that the node watches, if it is a sentinel.
    pub(crate) watch: Option<Watch>,
    /// Former primary, while a sentinel already names another one and has not published `+switch-master` yet.
    pub(crate) former_primary: Option<Place>,
    /// Slot table, if the node belongs to a cluster.
    pub(crate) slots: Option<SlotTable>,
}

/// A key and its value, in transfer from one node of a cluster to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Moved {
    key: Vec<u8>,
    value: Value,
    /// Remaining TTL in milliseconds. It is not an absolute time, because the clocks of two nodes may differ.
    left: Option<i64>,
}

impl Data {
    pub(crate) fn new(seed: u64) -> Self {
        Data {
            keys: Dataset::empty(),
            now: WallMicros::default(),
            role: Role::Primary,
            condition: None,
            channels: Channels::default(),
            ids: Ids::new(seed),
            effects: None,
            replicas: 0,
            backlog: Backlog::Missing,
            offset: 0,
            clients: 0,
            started: None,
            watch: None,
            former_primary: None,
            slots: None,
        }
    }

    /// Replaces the process by another one with these keys.
    pub(crate) fn restart(&mut self, keys: Dataset) {
        self.ids.restart();
        *self = Data {
            keys,
            now: self.now,
            ids: self.ids.clone(),
            watch: self.watch.take(),
            // A node that has just started answers no requests before it has contacted the others.
            slots: self.slots.take().map(|slots| SlotTable {
                state: ClusterState::Fail,
                ..slots
            }),
            ..Data::new(0)
        };
    }

    pub(crate) fn follow(&mut self, primary: &Data) {
        self.role = Role::Replica;
        self.backlog = Backlog::Active;
        self.keys = primary.keys.clone();
        self.offset = primary.offset;
        self.ids
            .replication_id
            .clone_from(&primary.ids.replication_id);
    }

    pub(crate) fn promote(&mut self) {
        if self.role == Role::Replica {
            self.role = Role::Primary;
            self.ids.promote();
        }
    }

    /// Sets the number of replicas. The first replica finds a history that no replica has followed. Without a backlog
    /// for that history, the server begins a new one.
    pub(crate) fn set_replicas(&mut self, many: usize) {
        if 0 < many && self.backlog == Backlog::Missing {
            self.backlog = Backlog::Active;
            self.ids.begin_history();
        }
        self.replicas = many;
    }

    pub(crate) fn free_backlog(&mut self) {
        if self.replicas == 0 && self.backlog == Backlog::Active {
            self.backlog = Backlog::Missing;
            self.ids.begin_history();
        }
    }

    pub(crate) fn dataset(&self) -> &Dataset {
        &self.keys
    }

    pub(crate) fn replace(&mut self, keys: Dataset) {
        self.keys = keys;
    }

    /// Returns the entry of a key. An expired key does not exist, even while a replica still waits for its deletion.
    pub(crate) fn entry(&self, db: usize, key: &[u8]) -> Option<&Entry> {
        let entry = self.keys.database(db)?.get(key)?;
        (!entry.is_over(self.now.millis())).then_some(entry)
    }

    /// Returns the keys that have not expired, and their entries.
    pub(crate) fn entries(&self, db: usize) -> impl Iterator<Item = (&Vec<u8>, &Entry)> {
        let now = self.now.millis();
        let keys = self.keys.database(db).into_iter().flat_map(Keyspace::iter);
        keys.filter(move |(_, entry)| !entry.is_over(now))
    }

    pub(crate) fn put(&mut self, db: usize, key: &[u8], value: Value, expires: Option<i64>) {
        let entry = Entry { value, expires };
        self.keys.database_mut(db).put(key.to_vec(), entry);
        self.changed(db, key);
    }

    /// Removes a key. Returns whether it existed.
    pub(crate) fn remove(&mut self, db: usize, key: &[u8]) -> bool {
        let was_there = self.entry(db, key).is_some();
        if self.keys.database_mut(db).remove(key).is_some() {
            self.changed(db, key);
        }
        was_there
    }

    /// Removes one key that the predicate selects, and returns it for the transfer.
    pub(crate) fn hand_over(&mut self, is_meant: impl Fn(&[u8]) -> bool) -> Option<Moved> {
        let mut meant = self.entries(0).filter(|(key, _)| is_meant(key));
        let (key, entry) = meant.next()?;
        let (key, Entry { value, expires }) = (key.clone(), entry.clone());
        drop(meant);
        self.remove(0, &key);
        let left = expires.map(|expires| expires.saturating_sub(self.now.millis()));
        Some(Moved { key, value, left })
    }

    pub(crate) fn take_in(&mut self, moved: Moved) {
        let expires = moved.left;
        let expires = expires.map(|left| self.now.millis().saturating_add(left));
        self.put(0, &moved.key, moved.value, expires);
    }

    /// Returns whether a script may publish on these channels of shards on this node.
    pub(crate) fn are_near(&self, channels: &[&[u8]]) -> bool {
        let slots = self.slots.as_ref();
        slots.is_none_or(|slots| {
            channels
                .iter()
                .all(|channel| slots.is_local(channel, false))
        })
    }

    /// Returns whether a script may use the keys of a command on this node.
    pub(crate) fn are_local(&self, keys: &[&[u8]]) -> bool {
        let slots = self.slots.as_ref();
        slots.is_none_or(|slots| {
            let mut keys = keys.iter();
            keys.all(|key| slots.is_local(key, self.entry(0, key).is_none()))
        })
    }

    /// Sets the expiry of a key. Returns whether the key exists.
    pub(crate) fn set_expiry(&mut self, db: usize, key: &[u8], expires: Option<i64>) -> bool {
        let is_there = self.entry(db, key).is_some();
        if is_there {
            self.keys.database_mut(db).set_expiry(key, expires);
            self.changed(db, key);
        }
        is_there
    }

    /// Changes a collection. It is created if needed, and removed when it is empty.
    pub(crate) fn edit<C: Collection, R>(
        &mut self,
        db: usize,
        key: &[u8],
        edit: impl FnOnce(&mut C) -> R,
    ) -> Result<R, Refusal> {
        let keys = self.keys.database_mut(db);
        if keys.get(key).is_none() {
            let entry = Entry {
                value: C::default().into_value(),
                expires: None,
            };
            keys.put(key.to_vec(), entry);
        }
        let value = keys.value_mut(key).ok_or(Refusal::WRONG_TYPE)?;
        let collection = C::of_mut(value).ok_or(Refusal::WRONG_TYPE)?;
        let done = edit(collection);
        if value.is_gone() {
            keys.remove(key);
        }
        self.changed(db, key);
        Ok(done)
    }

    pub(crate) fn empty(&mut self, db: usize) {
        *self.keys.database_mut(db) = Keyspace::default();
        self.tell(|| Change::Empty(db));
    }

    pub(crate) fn empty_all(&mut self) {
        for db in self.databases().collect::<Vec<_>>() {
            self.empty(db);
        }
    }

    /// Deletes expired keys on a primary. A replica waits for the deletion by its primary.
    pub(crate) fn expire(&mut self) {
        if self.role == Role::Replica {
            return;
        }
        let now = self.now.millis();
        for db in 0..self.keys.0.len() {
            while let Some(key) = self.keys.database(db).and_then(|keys| keys.first_over(now)) {
                self.keys.database_mut(db).remove(&key);
                self.changed(db, &key);
            }
        }
    }

    fn changed(&mut self, db: usize, key: &[u8]) {
        let entry = self
            .effects
            .as_ref()
            .and_then(|_| self.keys.database(db)?.get(key))
            .cloned();
        self.tell(|| match entry {
            Some(entry) => Change::Put(db, key.to_vec(), entry),
            None => Change::Remove(db, key.to_vec()),
        });
    }

    fn tell(&mut self, change: impl FnOnce() -> Change) {
        self.offset += 1;
        if let Some(effects) = &mut self.effects {
            effects.push(Effect(change()));
        }
    }

    /// Applies a change of the primary.
    pub(crate) fn apply(&mut self, effect: &Effect) {
        let change = effect.0.clone();
        match &change {
            Change::Put(db, key, entry) => {
                self.keys.database_mut(*db).put(key.clone(), entry.clone());
            }
            Change::Remove(db, key) => {
                self.keys.database_mut(*db).remove(key);
            }
            Change::Empty(db) => *self.keys.database_mut(*db) = Keyspace::default(),
        }
        self.tell(|| change);
    }

    pub(crate) fn databases(&self) -> impl Iterator<Item = usize> {
        let is_used = |db: &usize| self.keys.database(*db).is_some_and(|keys| !keys.is_empty());
        (0..self.keys.0.len()).filter(is_used)
    }
}

/// Whether the node keeps recent changes, so that a replica that reconnects need not copy everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Backlog {
    Missing,
    Active,
}

/// The random ids of a process and of its history of writes.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    random: Xoshiro256PlusPlus,
    pub(crate) run_id: String,
    pub(crate) replication_id: String,
    /// Replication id of the primary that this node followed before it was promoted.
    pub(crate) former_id: Option<String>,
}

impl Ids {
    fn new(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Ids {
            run_id: forty_digits(&mut random),
            replication_id: forty_digits(&mut random),
            former_id: None,
            random,
        }
    }

    /// Draws all ids again: a restarted process is another one.
    pub(crate) fn restart(&mut self) {
        self.run_id = forty_digits(&mut self.random);
        self.replication_id = forty_digits(&mut self.random);
        self.former_id = None;
    }

    /// Begins a new history of writes, and forgets the former one.
    pub(crate) fn begin_history(&mut self) {
        self.replication_id = forty_digits(&mut self.random);
        self.former_id = None;
    }

    /// Begins a new history, as a promoted replica does, and keeps the id of the former one.
    pub(crate) fn promote(&mut self) {
        let new = forty_digits(&mut self.random);
        self.former_id = Some(std::mem::replace(&mut self.replication_id, new));
    }
}

fn forty_digits(random: &mut Xoshiro256PlusPlus) -> String {
    let digits: String = (0..3)
        .map(|_| format!("{:016x}", random.next_u64()))
        .collect();
    digits.chars().take(40).collect()
}
