//! The queues of fair locks on a real server, as the server itself reports its commands (`MONITOR`), in their order.
//!
//! Clients do not see when a node queues them. The server's report has every entry into a queue, every departure and
//! every grant. The simulator's checker of fairness judges them.

use std::collections::{BTreeMap, BTreeSet};

use quorlock_core::owner::{ClientId, OwnerId};

use quorlock_sim_world::history::{Access, Answered, LockAnswer, NameId, Process};

/// Prefixes of the keys of a queue: its waiters, the times until which they count as alive, and those after which
/// Redisson drops them.
const QUEUE: &str = "redisson_lock_queue";
const ALIVE: &str = "quorlock_lock_alive";
const TIMEOUTS: &str = "redisson_lock_timeout";

/// A process whose identity is not known, because it has never won a lock.
const UNKNOWN: Process = Process {
    client: u16::MAX,
    restarts: 0,
};

/// An owner has no place in the queue from now on.
const LEFT: Answered = Answered::Left(Access::Alone);

/// Returns an owner that is in no queue.
fn no_owner() -> OwnerId {
    OwnerId {
        client: ClientId::from_random(0),
        number: 0,
    }
}

/// What the servers of a run have reported about queues.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueLog {
    nodes: BTreeMap<u16, NodeQueues>,
    answers: Vec<LockAnswer>,
    /// How many grants there were while another owner had a known place in the queue.
    ordered: u64,
}

/// The queues of one server, since its report began or since it lost data.
#[derive(Clone, Debug, Default)]
struct NodeQueues {
    /// How often the report began again or the server lost data.
    life: u32,
    start: QueueStart,
    /// The owners whose entry into a queue was reported, and who have not left since.
    waiting: BTreeSet<(NameId, OwnerId)>,
}

/// Whether a report began with empty queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum QueueStart {
    #[default]
    Empty,
    /// Owners may be waiting whose entry was not reported. Their places are not known.
    Unknown,
}

/// A command that a script has called on a server.
struct Called<'a> {
    /// The reading of the server's wall clock, in milliseconds.
    wall: u64,
    words: Vec<&'a str>,
}

impl QueueLog {
    /// Handles a line of a server's report that arrived at `at`.
    pub(super) fn hear(&mut self, node: u16, at: u64, line: &str) {
        let queues = self.nodes.entry(node).or_default();
        let Some(called) = parse(line) else {
            if removes_all(line) {
                queues.begin_again(QueueStart::Empty);
            }
            return;
        };
        let Some((name, owner, answer)) = queues.understand(&called) else {
            return;
        };
        let others = queues.waiting.iter();
        let mut others = others.filter(|(of, other)| *of == name && *other != owner);
        self.ordered += u64::from(answer == Answered::Served && others.next().is_some());
        self.answers.push(LockAnswer {
            at,
            node,
            life: queues.life,
            wall: called.wall,
            name,
            process: UNKNOWN,
            owner,
            answer,
        });
    }

    /// Notes that the connection to a server has ended. What happens until the next line is not known.
    pub(super) fn interrupted(&mut self, node: u16) {
        let queues = self.nodes.entry(node).or_default();
        queues.begin_again(QueueStart::Unknown);
    }

    /// Counts grants from now on. Those before are still judged.
    pub(super) fn begin_run(&mut self) {
        self.ordered = 0;
    }

    /// Returns how many grants could be judged: another owner had a known place in the queue. `None` if no server
    /// reported anything.
    pub(super) fn ordered(&self) -> Option<u64> {
        (!self.nodes.is_empty()).then_some(self.ordered)
    }

    /// Returns what the servers have reported. `process_of` returns the process of an owner that has won a lock.
    pub(super) fn answers(
        &self,
        process_of: impl Fn(OwnerId) -> Option<Process>,
    ) -> Vec<LockAnswer> {
        let answers = self.answers.iter();
        let known = answers.map(|answer| LockAnswer {
            process: process_of(answer.owner).unwrap_or(UNKNOWN),
            ..answer.clone()
        });
        known.collect()
    }
}

impl NodeQueues {
    fn begin_again(&mut self, start: QueueStart) {
        self.life += 1;
        self.start = start;
        self.waiting.clear();
    }

    /// Returns what a command means for the order of a queue.
    fn understand(&mut self, called: &Called<'_>) -> Option<(NameId, OwnerId, Answered)> {
        match called.words.as_slice() {
            ["RPUSH", key, owner] => {
                let place = (name_of(key, QUEUE)?, owner.parse().ok()?);
                self.waiting.insert(place);
                None
            }
            // The script has stored the entry just before, or has found the owner in the queue.
            ["ZADD", key, until, owner] => {
                let (name, owner) = (name_of(key, ALIVE)?, owner.parse().ok()?);
                let until = until.parse().ok()?;
                let is_known = self.waiting.contains(&(name, owner));
                is_known.then_some((name, owner, Answered::Queued { until }))
            }
            // An owner leaves the queue because it was granted the name, gives up, or is considered dead.
            ["ZREM", key, owner] => {
                let (name, owner) = (name_of(key, TIMEOUTS)?, owner.parse().ok()?);
                self.waiting.remove(&(name, owner));
                Some((name, owner, LEFT))
            }
            ["HSET", key, owner, _] => {
                let (name, owner) = (index_of(key)?, owner.parse().ok()?);
                // An owner that is served without a known place may have entered before the report began.
                let is_known = self.waiting.contains(&(name, owner));
                let is_certain = is_known || self.start == QueueStart::Empty;
                is_certain.then_some((name, owner, Answered::Served))
            }
            // Every request begins with this command. Its time shows which waiters are dead, also if the clock is set back
            // afterwards.
            ["PTTL", key] => Some((index_of(key)?, no_owner(), LEFT)),
            _ => None,
        }
    }
}

/// Reads a line that a script has caused: `+1764110000.123456 [0 lua] "RPUSH" "key" "owner"`. Returns `None` for other
/// lines.
fn parse(line: &str) -> Option<Called<'_>> {
    let (seconds, words) = line.strip_prefix('+')?.split_once(" [0 lua] ")?;
    let (seconds, micros) = seconds.split_once('.')?;
    let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
    Some(Called {
        wall: seconds * 1_000 + micros / 1_000,
        // Keys and owners have no quotes.
        words: words.split('"').skip(1).step_by(2).collect(),
    })
}

/// Returns whether a command removes all keys.
fn removes_all(line: &str) -> bool {
    line.split_once("] ")
        .is_some_and(|(_, words)| words.starts_with("\"FLUSHALL\""))
}

fn name_of(key: &str, prefix: &str) -> Option<NameId> {
    let name = key.strip_prefix(prefix)?.strip_prefix(":{")?;
    index_of(name.strip_suffix('}')?)
}

fn index_of(name: &str) -> Option<NameId> {
    name.strip_prefix("lock-")?.parse().ok().map(NameId)
}

#[cfg(test)]
mod tests;
