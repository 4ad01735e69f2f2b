//! The holds of one owner, by lock.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Weak};

use quorlock_core::backoff::Backoff;
use quorlock_core::name::Name;
use quorlock_core::time::Time;

use crate::error::{AcquireError, ConfirmError};
use crate::guard::Guard;
use crate::mutex::Mutex;
use crate::operation::attempt::Waits;
use crate::shared::client::Client;
use crate::shared::hold::Hold;
use crate::shared::layout::Layout;

/// The owner's hold of one lock, if it has one.
#[derive(Debug, Default)]
pub(super) struct HoldSlot {
    hold: Mutex<Weak<Hold>>,
}

impl HoldSlot {
    /// Returns the hold if it has guards.
    pub(super) fn live(&self) -> Option<Arc<Hold>> {
        let hold = self.hold.lock().upgrade()?;
        (0 < hold.count()).then_some(hold)
    }

    pub(super) fn remember(&self, guard: Guard) -> Guard {
        *self.hold.lock() = Arc::downgrade(guard.hold());
        guard
    }

    /// Enters the hold again, if it is still held.
    pub(super) async fn reenter(
        &self,
        client: &Arc<Client>,
        until: Time,
    ) -> Result<Option<Guard>, AcquireError> {
        let Some(hold) = self.live() else {
            return Ok(None);
        };
        let asked = client.now();
        match Guard::enter(client, &hold, until).await {
            Ok(guard) => Ok(Some(guard)),
            // The owner starts a new hold.
            Err(ConfirmError::Lost { .. } | ConfirmError::Config(_)) => Ok(None),
            Err(ConfirmError::TooManyEntries { names, most }) => {
                Err(AcquireError::TooManyEntries { names, most })
            }
            Err(ConfirmError::Unconfirmed { names, nodes }) => Err(AcquireError::NoQuorum {
                names,
                tried: client.now().since(asked),
                of: hold.layout.most_nodes(),
                nodes,
            }),
        }
    }

    /// Enters the hold again, if it is still held. While nodes do not confirm it, the request is repeated until the
    /// wait ends.
    pub(super) async fn reenter_within(
        &self,
        client: &Arc<Client>,
        waits: Waits,
    ) -> Result<Option<Guard>, AcquireError> {
        let policy = &client.config.retry;
        let mut backoff = Backoff::new(policy.backoff, policy.backoff_cap);
        let mut timer = client.runtime.timer();
        let until = waits.until.unwrap_or(Time::NEVER);
        let mut failing_since = None;
        loop {
            let (names, took, of, nodes) = match self.reenter(client, until).await {
                Err(AcquireError::NoQuorum {
                    names,
                    tried,
                    of,
                    nodes,
                }) => (names, tried, of, nodes),
                other => return other,
            };
            let now = client.now();
            let began = *failing_since.get_or_insert(now - took);
            let give_up_at = policy.gives_up_at(waits.limit(), Some(began));
            if give_up_at <= now {
                let tried = now.since(waits.since.unwrap_or(began));
                return Err(AcquireError::NoQuorum {
                    names,
                    tried,
                    of,
                    nodes,
                });
            }
            let random = client.runtime.random();
            let again = now + backoff.next(random, took.saturating_mul(2));
            poll_fn(|cx| timer.poll_until(cx, again.min(give_up_at))).await;
        }
    }
}

/// The slots of one owner, indexed by the keys of their locks and by name. An acquisition visits only slots that
/// share a name with its lock, because an owner may have thousands of holds.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: BTreeMap<Arc<str>, Filed>,
    by_name: BTreeMap<Name, BTreeSet<Arc<str>>>,
    swept_at_len: usize,
    #[cfg(test)]
    looked_at: usize,
}

#[derive(Debug)]
struct Filed {
    slot: Arc<HoldSlot>,
    names: Box<[Name]>,
}

impl Filed {
    /// Whether the slot has a live hold, or an acquisition in progress that may fill it.
    fn is_in_use(&self) -> bool {
        1 < Arc::strong_count(&self.slot) || self.slot.live().is_some()
    }
}

impl Slots {
    /// Returns the live holds of other locks that share a name with this lock, in the order of their keys. Removes
    /// unused slots that it visits.
    pub(super) fn sharing_names(&mut self, layout: &Layout) -> Vec<Arc<Hold>> {
        let names = layout.names();
        let keys = names.filter_map(|name| self.by_name.get(name)).flatten();
        let keys = keys.filter(|key| **key != layout.key);
        let keys: BTreeSet<Arc<str>> = keys.cloned().collect();
        let mut holds = Vec::new();
        for key in keys {
            #[cfg(test)]
            {
                self.looked_at += 1;
            }
            let Some(filed) = self.slots.get(&key) else {
                continue;
            };
            match filed.slot.live() {
                Some(hold) => holds.push(hold),
                None if filed.is_in_use() => {}
                None => self.remove(&key),
            }
        }
        holds
    }

    /// Returns the slot of this lock, which is created if it does not exist.
    pub(super) fn slot(&mut self, layout: &Layout) -> Arc<HoldSlot> {
        if let Some(filed) = self.slots.get(&layout.key) {
            return filed.slot.clone();
        }
        self.sweep();
        let slot = Arc::<HoldSlot>::default();
        let names: Box<[Name]> = layout.names().cloned().collect();
        for name in &names {
            let keys = self.by_name.entry(name.clone()).or_default();
            keys.insert(layout.key.clone());
        }
        let filed = Filed {
            slot: slot.clone(),
            names,
        };
        self.slots.insert(layout.key.clone(), filed);
        slot
    }

    /// Removes unused slots whenever the number of slots has doubled: memory follows the number of holds, at a
    /// constant cost per acquisition.
    fn sweep(&mut self) {
        const FEW: usize = 64;
        if self.slots.len() < 2 * self.swept_at_len + FEW {
            return;
        }
        let unused = self.slots.iter().filter(|(_, filed)| !filed.is_in_use());
        let unused: Vec<Arc<str>> = unused.map(|(key, _)| key.clone()).collect();
        for key in &unused {
            self.remove(key);
        }
        self.swept_at_len = self.slots.len();
    }

    fn remove(&mut self, key: &Arc<str>) {
        let Some(filed) = self.slots.remove(key) else {
            return;
        };
        for name in &filed.names {
            if let Some(keys) = self.by_name.get_mut(name) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_name.remove(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{EmbeddedNode, Locks};

    /// Each acquisition visits the slots that share a name with it, not all slots of the owner.
    #[tokio::test(start_paused = true)]
    async fn an_acquisition_looks_only_at_holds_that_share_a_name_with_it() {
        let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
        let owner = locks.owner();
        let mut guards = Vec::new();
        for number in 0..500 {
            let lock = owner.lock(format!("held:{number}"));
            guards.push(lock.acquire().await.unwrap());
        }
        assert_eq!(owner.source.owner().unwrap().slots.lock().looked_at, 0);
        for number in 0..500 {
            let names = ["shared".to_owned(), format!("other:{number}")];
            let lock = owner.all(names);
            lock.acquire().await.unwrap().release().await.unwrap();
        }
        // Each acquisition visits the slot of the previous one, and removes it.
        assert_eq!(owner.source.owner().unwrap().slots.lock().looked_at, 499);
        let overlapping = owner.all(["held:7", "free"]);
        assert!(matches!(
            overlapping.try_acquire().await,
            Err(crate::AcquireError::Overlap { held, .. }) if held == "held:7"
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn slots_of_released_locks_are_forgotten() {
        let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
        let owner = locks.owner();
        for number in 0..2_000 {
            let lock = owner.lock(format!("brief:{number}"));
            lock.acquire().await.unwrap().release().await.unwrap();
        }
        let slots = owner.source.owner().unwrap().slots.lock();
        assert!(slots.slots.len() <= 65, "{}", slots.slots.len());
        assert_eq!(slots.by_name.len(), slots.slots.len());
    }
}
