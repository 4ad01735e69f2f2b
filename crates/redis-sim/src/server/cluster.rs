//! A server as a node of a cluster: which requests it executes, and where it redirects the others.

use super::Server;
use crate::command_keys;
use crate::data::{Data, Moved, WallMicros};
use crate::refusal::Refusal;
use crate::session::SessionId;
use crate::slots::{ClusterState, SlotTable, slot_of_key};

impl Server {
    /// Makes the server a node of a cluster with this table. Sessions that listen to channels of a shard that it no
    /// longer serves are unsubscribed and notified (`sunsubscribe`).
    pub fn know_slots(&mut self, table: SlotTable) {
        let mut data = self.0.data();
        let Data {
            channels, slots, ..
        } = &mut *data;
        let table = slots.insert(table);
        channels.leave_shards(|channel| table.serves(slot_of_key(channel)));
        drop(data);
        self.deliver();
    }

    /// Opens a connection for the caller's own use. Its requests are never redirected, whatever keys they use.
    pub fn open_operator(&mut self) -> SessionId {
        let session = self.open_session();
        self.0.session(session).is_operator = true;
        session
    }

    /// Removes one key of a slot from the first database, for [transfer](Self::take_in) to another node (`MIGRATE`).
    pub fn hand_over(&mut self, now: WallMicros, slot: u16) -> Option<Moved> {
        self.tick(now);
        self.0.data().hand_over(|key| slot_of_key(key) == slot)
    }

    /// Adds a key that another node has [handed over](Self::hand_over).
    pub fn take_in(&mut self, now: WallMicros, moved: Moved) {
        self.tick(now);
        self.0.data().take_in(moved);
    }

    /// Checks that a request with these keys is executed here.
    ///
    /// # Errors
    /// The redirection to the node that executes the request, or the reason why no node does.
    pub(super) fn check_slot(
        &self,
        data: &Data,
        session: SessionId,
        name: &str,
        words: &[Vec<u8>],
    ) -> Result<(), Refusal> {
        let state = self.0.find_session(session);
        let Some(table) = &data.slots else {
            return Ok(());
        };
        if state.is_none_or(|state| state.is_operator) {
            return Ok(());
        }
        let keys = command_keys::of(name, words);
        let mut slots = keys.iter().map(|key| slot_of_key(key));
        let Some(slot) = slots.next() else {
            return Ok(());
        };
        if slots.any(|other| other != slot) {
            return Err(Refusal::CROSS_SLOT);
        }
        let Some(owner) = table.owner(slot) else {
            return Err(Refusal::NOT_SERVED);
        };
        if table.state == ClusterState::Fail {
            return Err(Refusal::CLUSTER_DOWN);
        }
        // Channels are not moved with keys.
        let is_channel = command_keys::are_channels(name);
        let missing = keys.iter().filter(|key| data.entry(0, key).is_none());
        let missing = if is_channel { 0 } else { missing.count() };
        if *owner == table.own {
            return match table.leaving.get(&slot) {
                Some(_) if 0 < missing && missing < keys.len() => Err(Refusal::TRY_AGAIN),
                Some((host, port)) if 0 < missing => Err(Refusal::ask(slot, host, *port)),
                _ => Ok(()),
            };
        }
        let asks = state.is_some_and(|state| state.asks);
        if asks && table.arriving.contains_key(&slot) {
            let is_one = keys.iter().all(|key| keys.first() == Some(key));
            return match missing {
                0 => Ok(()),
                _ if is_one => Ok(()),
                _ => Err(Refusal::TRY_AGAIN),
            };
        }
        let (host, port) = owner;
        Err(Refusal::moved(slot, host, *port))
    }
}

#[cfg(test)]
mod tests;
