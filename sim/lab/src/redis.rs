//! A simulated Redis under faults, for the turmoil lane and for `serve`.

use quorlock_core::marker::Nonce;
use redis_sim::{Condition, Dataset, Effect, Server as Process, SessionId};

use quorlock_sim_plan::Persistence;
use quorlock_sim_plan::fault::ServerError;
use quorlock_sim_world::world::id::NodeId;
use quorlock_sim_world::world::node::MARKED_MILLIS;
use quorlock_sim_world::world::server::{Replicas, Server};
use quorlock_sim_world::world::session::WallMicros;

/// A simulated Redis, its disk, and its replication stream.
#[derive(Debug)]
pub(crate) struct RedisServer {
    /// The server that clients talk to.
    pub(crate) process: Process,
    /// The dataset on the disk. Unused if the disk has all keys or none.
    saved: Dataset,
    /// The connection with which a run reads and sets keys. Clients could see it in the statistics of the server, so
    /// `serve` has no such connection.
    operator: Option<SessionId>,
    /// Changes that have not been sent to the replicas yet.
    written: Vec<Effect>,
    /// Changes of the primary that are in flight to this server.
    replicated: Vec<EffectsUnderWay>,
    /// The error with which the server refuses every request because of a fault.
    error: Option<ServerError>,
    replicas: Replicas,
    /// The hash tags under which names are stored, the server's own tag first. Empty if names are stored without a
    /// tag.
    tags: Vec<String>,
}

/// Changes in flight to a replica.
#[derive(Debug)]
struct EffectsUnderWay {
    from: NodeId,
    arrives: u64,
    effects: Vec<Effect>,
}

/// Returns the state of a server that answers every request with this error.
fn condition(error: ServerError) -> Condition {
    match error {
        ServerError::ReadOnly => Condition::ReadOnly,
        ServerError::Loading => Condition::Loading,
        ServerError::OutOfMemory => Condition::OutOfMemory,
        ServerError::Busy => Condition::Busy,
    }
}

/// Returns the reading of a clock as a server takes it.
pub(crate) fn micros(now: WallMicros) -> redis_sim::WallMicros {
    redis_sim::WallMicros(now.0)
}

/// Encodes a command as a client sends it.
fn packed(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl RedisServer {
    /// Creates a server without an operator connection, which only clients use.
    pub(crate) fn new(process: Process) -> Self {
        RedisServer {
            process,
            saved: Dataset::empty(),
            operator: None,
            written: Vec::new(),
            replicated: Vec::new(),
            error: None,
            replicas: Replicas::Enough,
            tags: Vec::new(),
        }
    }

    /// Creates a server of a run, with replication and an operator connection.
    pub(crate) fn of_run(mut process: Process) -> Self {
        process.replicate();
        let operator = process.open_operator();
        RedisServer {
            operator: Some(operator),
            ..RedisServer::new(process)
        }
    }

    /// Turns the server into a shard of a cluster that stores names under these hash tags. `place` is the index of its
    /// own tag.
    pub(crate) fn under(mut self, tags: &[String], place: usize) -> Self {
        self.tags = tags.to_vec();
        let many = tags.len().max(1);
        self.tags.rotate_left(place % many);
        self
    }

    /// Returns the keys under which a name may be stored here.
    pub(crate) fn keys_of(&self, name: &str) -> Vec<String> {
        match self.tags.as_slice() {
            [] => vec![name.to_owned()],
            tags => tags.iter().map(|tag| format!("{{{tag}}}:{name}")).collect(),
        }
    }

    /// Executes a command of the run and returns the reply, which is empty without an operator connection.
    pub(crate) fn operate(&mut self, now: WallMicros, words: &[&[u8]]) -> Vec<u8> {
        let Some(operator) = self.operator else {
            return Vec::new();
        };
        self.process.receive(operator, micros(now), &packed(words));
        self.process.take_output(operator)
    }

    /// Returns whether a key exists.
    pub(crate) fn has(&mut self, now: WallMicros, key: &str) -> bool {
        self.operate(now, &[b"EXISTS", key.as_bytes()]) == b":1\r\n"
    }

    /// Starts over with a full copy of its primary's data.
    pub(crate) fn follow(&mut self, primary: &RedisServer) {
        self.process.follow(&primary.process);
        // The changes in flight are older than the copy: it contains them, or the primary has lost them.
        self.replicated.clear();
    }

    /// Takes the changes that the server has made since the last call.
    pub(crate) fn take_written(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.written)
    }

    /// Adds changes that the primary has made and that arrive at this time.
    pub(crate) fn send(&mut self, from: NodeId, arrives: u64, effects: Vec<Effect>) {
        self.replicated.push(EffectsUnderWay {
            from,
            arrives,
            effects,
        });
    }
}

impl RedisServer {
    fn refuse_what_it_must(&mut self) {
        let few = (self.replicas == Replicas::Few).then_some(Condition::FewReplicas);
        let condition = self.error.map(condition).or(few);
        self.process.set_condition(condition);
    }
}

impl Server for RedisServer {
    fn crash(&mut self, disk: Persistence) {
        self.saved = match disk {
            Persistence::Memory => Dataset::empty(),
            Persistence::EverySecond => std::mem::replace(&mut self.saved, Dataset::empty()),
            Persistence::EveryWrite => self.process.dataset(),
        };
        self.process.restart(self.saved.clone());
        if let Some(operator) = &mut self.operator {
            self.process.replicate();
            *operator = self.process.open_operator();
        }
    }

    /// Does nothing, because the crash has already restored the keys.
    fn restart(&mut self) {}

    fn promote(&mut self) {
        self.process.promote();
    }

    fn set_replicas(&mut self, many: usize) {
        self.process.set_replicas(many);
    }

    /// Simulates a backup. Backups are many hours apart, so the backlog of the previous one has been freed.
    fn back_up(&mut self) {
        self.process.free_backlog();
        self.process.set_replicas(1);
        self.process.set_replicas(0);
    }

    fn save(&mut self) {
        self.saved = self.process.dataset();
    }

    fn flush(&mut self, now: WallMicros, names: &[String]) -> bool {
        let keys = names.iter().flat_map(|name| self.keys_of(name));
        let keys: Vec<String> = keys.collect();
        let had_any = keys.iter().any(|key| self.has(now, key));
        self.process.flush();
        had_any
    }

    fn evict(&mut self, now: WallMicros, name: &str) -> bool {
        self.process.tick(micros(now));
        let keys = self.keys_of(name).into_iter();
        let gone = keys.filter(|key| self.process.evict(key.as_bytes()));
        0 < gone.count()
    }

    fn refuse(&mut self, error: Option<ServerError>) {
        self.error = error;
        self.refuse_what_it_must();
    }

    fn forget_scripts(&mut self) {
        self.process.forget_scripts();
    }

    fn mark(&mut self, now: WallMicros, nonce: Nonce, longest_millis: u64) {
        let info = self.operate(now, &[b"INFO"]);
        let info = String::from_utf8_lossy(&info).into_owned();
        let mut pairs = info.lines().filter_map(|line| line.split_once(':'));
        let id = pairs.find(|(name, _)| *name == "master_replid");
        let (_, id) = id.expect("BUG: a server says which process it is");
        let process = id.get(..13).expect("BUG: an identity has forty digits");
        let marker = format!("{process}:{}:{longest_millis}:ripe", nonce.get());
        let kept = MARKED_MILLIS.to_string();
        let own = self.tags.first();
        let key = own.map_or_else(
            || "quorlock_marker".to_owned(),
            |tag| format!("quorlock_marker:{{{tag}}}"),
        );
        let set = [
            b"SET",
            key.as_bytes(),
            marker.as_bytes(),
            b"PX",
            kept.as_bytes(),
        ];
        assert_eq!(self.operate(now, &set), b"+OK\r\n", "BUG: a marker");
    }

    fn names_left(&mut self, now: WallMicros, names: &[String]) -> Vec<String> {
        let mut left = Vec::new();
        for name in names {
            let keys = self.keys_of(name).into_iter();
            let queue = format!("redisson_lock_queue:{{{name}}}");
            let mut keys = keys.chain([queue]);
            if keys.any(|key| self.has(now, &key)) {
                left.push(name.clone());
            }
        }
        left
    }

    fn catch_up(&mut self, now: u64, primary: Option<NodeId>) {
        for write in std::mem::take(&mut self.replicated) {
            if now < write.arrives {
                self.replicated.push(write);
            } else if primary == Some(write.from) {
                for effect in &write.effects {
                    self.process.apply(effect);
                }
            }
        }
    }

    fn offset(&self) -> u64 {
        self.process.offset()
    }

    fn lose_stream(&mut self) {
        self.replicated.clear();
    }

    fn mind_replicas(&mut self, replicas: Replicas) {
        if self.replicas != replicas {
            self.replicas = replicas;
            self.refuse_what_it_must();
        }
    }

    fn has_written(&mut self) -> bool {
        self.written.extend(self.process.take_effects());
        !self.written.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_packed() {
        let command = packed(&[b"EXISTS", b"a"]);
        assert_eq!(command, b"*2\r\n$6\r\nEXISTS\r\n$1\r\na\r\n");
    }
}
