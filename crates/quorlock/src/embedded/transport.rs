//! The way to an embedded node: calls, listeners and witnesses.

use std::sync::Arc;

use quorlock_core::message::{Channel, Mode, Request, Wake};
use quorlock_core::name::Name;
use quorlock_core::owner::OwnerId;
use quorlock_core::slot::{ServerNumber, Slot, UnfitName};
use quorlock_core::transport::{Call, Listener, Subscription, Transport, Witness};

use super::call::EmbeddedCall;
use super::{EmbeddedNode, NodeShared, ProcessStatus};

impl Transport for EmbeddedNode {
    fn call(&self, request: Request) -> Call {
        Box::pin(EmbeddedCall::new(self.shared.clone(), self.way, request))
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        if let Channel::Claim(name, mode, owner) = channel {
            return self.listen_to_loss((name, *mode, *owner), listener);
        }
        let (id, is_up) = {
            let mut state = self.shared.state.lock();
            let id = state.next_id();
            state.listeners.insert(id, (channel.clone(), listener));
            (id, state.running == ProcessStatus::Up)
        };
        if is_up {
            self.shared.tell_live(Some(id));
        }
        self.until_dropped(id)
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        let (id, is_up) = {
            let mut state = self.shared.state.lock();
            let id = state.next_id();
            state.witnesses.insert(id, Arc::clone(&witness));
            (id, state.running == ProcessStatus::Up)
        };
        if is_up {
            witness.reachable();
        }
        self.until_dropped(id)
    }

    fn slot(&self, _: &Name) -> Result<Slot, UnfitName> {
        Ok(Slot::WHOLE)
    }

    fn server(&self, _: Slot) -> ServerNumber {
        ServerNumber::WHOLE
    }

    fn address(&self) -> &str {
        &self.shared.address
    }
}

impl EmbeddedNode {
    /// Tells a listener when the claim is gone, which may be now.
    fn listen_to_loss(
        &self,
        claim: (&Name, Mode, OwnerId),
        listener: Arc<dyn Listener>,
    ) -> Subscription {
        let now = self.shared.clock();
        let (number, losers) = {
            let state = &mut *self.shared.state.lock();
            let number = state.next_id();
            state.losses.add(claim, number, listener);
            let losers = match state.running {
                ProcessStatus::Up => state.losses.of_name(&state.node, now, claim.0),
                ProcessStatus::Paused | ProcessStatus::Dead => Vec::new(),
            };
            (number, losers)
        };
        for loser in losers {
            loser.wake(Wake::Unlocked);
        }
        Subscription::new(EndLoss {
            shared: self.shared.clone(),
            name: claim.0.clone(),
            number,
        })
    }

    /// Returns a subscription that removes this listener or witness when it is dropped.
    fn until_dropped(&self, id: u64) -> Subscription {
        Subscription::new(Unsubscribe {
            shared: self.shared.clone(),
            id,
        })
    }
}

struct EndLoss {
    shared: Arc<NodeShared>,
    name: Name,
    number: u64,
}

impl Drop for EndLoss {
    fn drop(&mut self) {
        let listener = self
            .shared
            .state
            .lock()
            .losses
            .remove(&self.name, self.number);
        // Without the mutex, because the drop may run code of the user.
        drop(listener);
    }
}

struct Unsubscribe {
    shared: Arc<NodeShared>,
    id: u64,
}

impl Drop for Unsubscribe {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let left = (
            state.listeners.remove(&self.id),
            state.witnesses.remove(&self.id),
        );
        drop(state);
        // Without the mutex, because the drop may run code of the user.
        drop(left);
    }
}
