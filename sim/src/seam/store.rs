//! The resource that a lock protects: it takes writes, and rejects stale tokens if writes carry one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::history::{Accepted, HoldId, NameId, Written};
use crate::plan::draw::{Draw, Purpose};
use crate::world::client::Who;
use crate::world::event::What;
use crate::world::slab::Key;
use crate::world::{World, with};

/// One store for all clients, with one resource for each name.
#[derive(Debug, Default)]
pub(crate) struct Store {
    latency: Option<Draw>,
    /// The largest token seen, resource by resource.
    largest: Vec<u64>,
}

impl Store {
    pub(crate) fn new(seed: u64) -> Self {
        Store {
            latency: Some(Draw::new(seed, Purpose::Latency, u64::MAX)),
            largest: Vec::new(),
        }
    }

    fn accept(&mut self, name: NameId, token: Option<u64>) -> Accepted {
        let at = usize::from(name.0);
        if self.largest.len() <= at {
            self.largest.resize(at + 1, 0);
        }
        let Some((largest, token)) = self.largest.get_mut(at).zip(token) else {
            return Accepted::Yes;
        };
        if token < *largest {
            return Accepted::No;
        }
        *largest = token;
        Accepted::Yes
    }
}

/// What the store is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// Its content. With a token, the store refuses this as it refuses writes, and remembers the token.
    Read,
    /// To take a write that depends on nothing.
    Write,
    /// To take what came of a read at this time.
    Update {
        /// When the store was read.
        read_at: u64,
    },
}

impl Asked {
    fn read_at(self) -> Option<u64> {
        match self {
            Asked::Update { read_at } => Some(read_at),
            Asked::Read | Asked::Write => None,
        }
    }
}

/// A read or a write on its way.
#[derive(Debug)]
pub(crate) struct Write {
    who: Who,
    hold: HoldId,
    name: NameId,
    asked: Asked,
    token: Option<u64>,
    departs: u64,
    answer: Option<(Accepted, u64)>,
    is_answered: bool,
    is_dropped: bool,
    waker: Option<Waker>,
}

impl World {
    fn latency(&mut self) -> u64 {
        let network = &self.plan.network;
        let (least, most) = (network.least.as_nanos(), network.most.as_nanos());
        let draw = self.store.latency.as_mut();
        draw.map_or(least, |draw| draw.between(least, most))
    }

    fn write(
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

/// A read or a write in the hands of a client; ready when the store has answered: whether it did as asked, and when.
#[derive(Debug)]
pub(crate) struct Writing(Key<Write>);

impl Writing {
    pub(crate) fn begin(
        who: Who,
        hold: HoldId,
        name: NameId,
        asked: Asked,
        token: Option<u64>,
    ) -> Self {
        Writing(with(|world| world.write(who, hold, name, asked, token)))
    }
}

impl Future for Writing {
    type Output = (Accepted, u64);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        with(|world| {
            let Some(write) = world.writes.get_mut(self.0) else {
                return Poll::Pending;
            };
            match write.answer {
                Some(answer) if write.is_answered => Poll::Ready(answer),
                _ => {
                    write.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        with(|world| {
            if let Some(write) = world.writes.get_mut(self.0) {
                write.is_dropped = true;
                if write.is_answered {
                    world.writes.remove(self.0);
                }
            }
        });
    }
}
