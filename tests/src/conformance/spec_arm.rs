//! The specification as an arm.

use std::time::Duration;

use quorlock_core::marker::Process;
use quorlock_core::message::{Channel, Reply, Request, Ttl, Wake};
use quorlock_core::name::Name;
use quorlock_core::node::Node;
use quorlock_core::time::{WallMillis, millis_of};
use quorlock_core::transport::Cause;

use super::arm::{Arm, Looks, MarkerLooks, leases, queues};
use super::step::Plant;

/// The specification, with a clock that stands still until it is advanced.
#[derive(Clone, Debug)]
pub struct SpecArm {
    start: WallMillis,
    now: WallMillis,
    node: Node,
    published: Vec<(Channel, Wake)>,
}

impl SpecArm {
    /// Creates a node without keys, whose clock begins at `start`.
    #[must_use]
    pub fn new(start: WallMillis) -> Self {
        SpecArm {
            start,
            now: start,
            node: Node::new(),
            published: Vec::new(),
        }
    }

    fn token_ttl(&self, name: &Name) -> Ttl {
        let is_there = |millis| {
            self.node
                .stored_token(self.now.plus(millis), name)
                .is_some()
        };
        let (mut there, mut gone) = (0, 1 << 50);
        if is_there(gone) {
            return Ttl::Unbounded;
        }
        while there + 1 < gone {
            let middle = there + (gone - there) / 2;
            if is_there(middle) {
                there = middle;
            } else {
                gone = middle;
            }
        }
        Ttl::Millis(there)
    }
}

impl Arm for SpecArm {
    fn begin(&mut self) {
        *self = SpecArm::new(self.start);
    }

    fn process(&self) -> Process {
        self.node.process()
    }

    fn apply(&mut self, request: &Request) -> Result<Reply, Cause> {
        let applied = self.node.apply(self.now, request);
        self.published.extend(applied.published);
        applied.reply
    }

    fn published(&mut self) -> Vec<(Channel, Wake)> {
        std::mem::take(&mut self.published)
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(millis_of(span));
    }

    fn plant(&mut self, plant: &Plant) {
        let expires = |ttl: &Option<Duration>| ttl.map(|ttl| self.now.plus(millis_of(ttl)));
        match plant {
            Plant::Key { name, held, ttl } => self.node.put(name, held.clone(), expires(ttl)),
            Plant::Evict { name, kinds } => {
                for kind in kinds {
                    self.node.evict(self.now, name, *kind);
                }
            }
            Plant::Restart => {
                let mut process = self.node.process();
                process.0 += 1;
                self.node.set_process(process);
            }
            Plant::Token { name, token, ttl } => self.node.put_token(name, *token, expires(ttl)),
        }
    }

    fn look(&mut self, names: &[Name]) -> Looks {
        let claim = |name: &Name| Some((name.clone(), self.node.held(self.now, name)?));
        let token = |name: &Name| {
            let token = self.node.stored_token(self.now, name)?;
            Some((name.clone(), (token, self.token_ttl(name))))
        };
        Looks {
            claims: names.iter().filter_map(claim).collect(),
            leases: leases(names, |name| self.node.readers(self.now, name)),
            queues: queues(names, |name| self.node.queue(self.now, name)),
            tokens: names.iter().filter_map(token).collect(),
            versions: names
                .iter()
                .filter_map(|name| Some((name.clone(), self.node.version(self.now, name)?)))
                .collect(),
            marker: self
                .node
                .marker(self.now)
                .map(|marker| MarkerLooks::of(marker, self.node.process(), self.now)),
        }
    }
}
