//! Acquisitions through one owner take turns at each name.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use quorlock_core::name::Name;
use quorlock_core::time::Time;
use tokio::sync::OwnedMutexGuard;

use crate::client::Client;
use crate::layout::Layout;
use crate::mutex::Mutex;

type Place = Arc<tokio::sync::Mutex<()>>;

/// The names at which acquisitions of one owner are under way.
///
/// Of two that have a name in common, in whatever modes, the later waits here until the earlier has ended, and only
/// then looks at what the owner holds. Should both ask the nodes at once, to write and to read one name, each would be
/// refused by the claim of the other: the owner would wait for itself.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<BTreeMap<Name, Place>>);

/// The turn of one acquisition at all of its names. It ends when it is dropped, also while it is waited for.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    places: Vec<(Name, Option<OwnedMutexGuard<()>>)>,
}

impl Turns {
    /// Waits until no earlier acquisition has a name of this lock, until `give_up_at`.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        layout: &Layout,
        client: &Client,
        give_up_at: Time,
    ) -> Option<Turn> {
        let mut turn = self.begin();
        let mut timer = client.runtime.timer();
        // A has the turn at X and waits for Y, B has that at Y and waits for X: all take them in one order.
        for name in names(layout) {
            let place = turn.join(name);
            let mut waiting = pin!(place.lock_owned());
            let guard = poll_fn(|cx| match waiting.as_mut().poll(cx) {
                Poll::Ready(guard) => Poll::Ready(Some(guard)),
                Poll::Pending => timer.poll_until(cx, give_up_at).map(|()| None),
            });
            turn.take(guard.await?);
        }
        Some(turn)
    }

    /// The turn, if no other acquisition has a name of this lock.
    pub(crate) fn try_begin(self: &Arc<Self>, layout: &Layout) -> Option<Turn> {
        let mut turn = self.begin();
        for name in names(layout) {
            let place = turn.join(name);
            turn.take(place.try_lock_owned().ok()?);
        }
        Some(turn)
    }

    fn begin(self: &Arc<Self>) -> Turn {
        Turn {
            turns: self.clone(),
            places: Vec::new(),
        }
    }
}

impl Turn {
    fn join(&mut self, name: &Name) -> Place {
        self.places.push((name.clone(), None));
        let mut turns = self.turns.0.lock();
        turns.entry(name.clone()).or_default().clone()
    }

    fn take(&mut self, guard: OwnedMutexGuard<()>) {
        if let Some((_, place)) = self.places.last_mut() {
            *place = Some(guard);
        }
    }
}

/// The names of a lock, each once, in one order for all locks.
fn names(layout: &Layout) -> BTreeSet<&Name> {
    layout.names().collect()
}

impl Drop for Turn {
    fn drop(&mut self) {
        for (name, guard) in self.places.drain(..) {
            drop(guard);
            let mut turns = self.turns.0.lock();
            // Who joins does so under this mutex: a place that only the list knows is nobody's.
            if turns
                .get(&name)
                .is_some_and(|place| Arc::strong_count(place) == 1)
            {
                turns.remove(&name);
            }
        }
    }
}
