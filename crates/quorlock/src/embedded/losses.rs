//! The owners that are told when their claims are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorlock_core::message::{Mode, Request};
use quorlock_core::name::Name;
use quorlock_core::node::Node;
use quorlock_core::owner::OwnerId;
use quorlock_core::time::WallMillis;
use quorlock_core::transport::Listener;

/// The listeners to the losses of claims, by the name and a number.
#[derive(Default)]
pub(super) struct LossListeners(BTreeMap<(Name, u64), LossListener>);

struct LossListener {
    mode: Mode,
    owner: OwnerId,
    listener: Arc<dyn Listener>,
    /// Whether it was told, and the claim is not there again: what it sends then is executed by this node, too.
    is_told: bool,
}

impl LossListeners {
    pub(super) fn add(
        &mut self,
        (name, mode, owner): (&Name, Mode, OwnerId),
        number: u64,
        listener: Arc<dyn Listener>,
    ) {
        let listener = LossListener {
            mode,
            owner,
            listener,
            is_told: false,
        };
        self.0.insert((name.clone(), number), listener);
    }

    pub(super) fn remove(&mut self, name: &Name, number: u64) -> Option<Arc<dyn Listener>> {
        let removed = self.0.remove(&(name.clone(), number));
        removed.map(|removed| removed.listener)
    }

    /// Returns the listeners that must be told after this request.
    pub(super) fn after(
        &mut self,
        node: &Node,
        now: WallMillis,
        request: &Request,
    ) -> Vec<Arc<dyn Listener>> {
        // A renewal and a look at a name remove nothing.
        let name = match request {
            Request::Acquire(ask) => &ask.name,
            Request::Release(ask) => &ask.name,
            Request::ForceRelease(ask) => &ask.name,
            Request::Renew(_) | Request::Inspect(_) | Request::Probe(_) => return Vec::new(),
        };
        self.of_name(node, now, name)
    }

    /// Returns the listeners for a name that must be told.
    pub(super) fn of_name(
        &mut self,
        node: &Node,
        now: WallMillis,
        name: &Name,
    ) -> Vec<Arc<dyn Listener>> {
        let of_name = (name.clone(), 0)..=(name.clone(), u64::MAX);
        let listeners = self.0.range_mut(of_name);
        listeners
            .filter_map(|((name, _), listener)| listener.look(node, now, name))
            .collect()
    }

    /// Returns all listeners that must be told.
    pub(super) fn all(&mut self, node: &Node, now: WallMillis) -> Vec<Arc<dyn Listener>> {
        let listeners = self.0.iter_mut();
        listeners
            .filter_map(|((name, _), listener)| listener.look(node, now, name))
            .collect()
    }
}

impl LossListener {
    /// Returns the listener if the claim is gone, and that was not told before.
    fn look(&mut self, node: &Node, now: WallMillis, name: &Name) -> Option<Arc<dyn Listener>> {
        let is_there = node.is_claimed_by(now, name, self.mode, self.owner);
        let was_told = std::mem::replace(&mut self.is_told, !is_there);
        (!is_there && !was_told).then(|| self.listener.clone())
    }
}
