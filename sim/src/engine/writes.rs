//! Reads and writes of the resource that a lock protects.

use crate::history::{HoldId, NameId, Written};
use crate::world::World;
use crate::world::client::Who;
use crate::world::event::What;
use crate::world::slab::Key;
use crate::world::store::{Asked, Write};

impl World {
    fn latency(&mut self) -> u64 {
        let network = &self.plan.network;
        let (least, most) = (network.least.as_nanos(), network.most.as_nanos());
        let draw = self.store.latency.as_mut();
        draw.map_or(least, |draw| draw.between(least, most))
    }

    pub(crate) fn write(
        &mut self,
        who: Who,
        hold: HoldId,
        name: NameId,
        asked: Asked,
        token: Option<u64>,
    ) -> Key<Write> {
        let Some(departs) = self.seam(who) else {
            return Key::NONE;
        };
        let at = departs + self.latency();
        let key = self.writes.insert(Write {
            who,
            hold,
            name,
            asked,
            token,
            departs,
            answer: None,
            is_answered: false,
            is_dropped: false,
            waker: None,
        });
        self.push(at, What::Write(key));
        key
    }

    /// A read or a write comes to the store. One whose process died before it really left does not.
    pub(crate) fn write_arrives(&mut self, key: Key<Write>) {
        let now = self.now;
        let Some(write) = self.writes.get_mut(key) else {
            return;
        };
        let died_at = self
            .clients
            .get(usize::from(write.who.client))
            .filter(|client| client.restarts != write.who.restarts)
            .map(|client| client.died_at);
        if died_at.is_some_and(|died_at| died_at < write.departs) {
            self.writes.remove(key);
            return;
        }
        let accepted = self.store.accept(write.name, write.token);
        if write.asked != Asked::Read {
            self.history.writes.push(Written {
                process: write.who.process(),
                hold: write.hold,
                name: write.name,
                at: now,
                token: write.token,
                read_at: write.asked.read_at(),
                accepted,
            });
        }
        write.answer = Some((accepted, now));
        let at = now + self.latency();
        self.push(at, What::Written(key));
    }

    pub(crate) fn written(&mut self, key: Key<Write>) {
        if let Some(write) = self.writes.get_mut(key) {
            write.is_answered = true;
            if let Some(waker) = &write.waker {
                waker.wake_by_ref();
            }
            if write.is_dropped {
                self.writes.remove(key);
            }
        }
    }
}
