//! A Redis Cluster. Its nodes report which of them owns which slot, and redirect requests for slots that they do not
//! own.

pub(crate) mod answer;
mod hints;
mod listeners;
mod lookout;
mod map;
mod node;

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use quorlock_core::message::{Channel, Request};
use quorlock_core::name::Name;
use quorlock_core::slot::{ServerNumber, Slot, UnfitName};
use quorlock_core::transport::{Listener, Subscription, TransportError, Witness};
use redis::{RedisConnectionInfo, ServerError, ServerErrorKind};
use tokio::sync::Notify;

use self::hints::ClusterHints;
use self::listeners::ClusterRegistry;
use self::map::SlotMap;
use self::node::{Node, NodeSource};
use crate::address::cluster::ClusterAddress;
use crate::config::RedisConfig;
use crate::connect::Endpoint;
use crate::connection::{Attendance, Witnesses};
use crate::route::{Detour, Gathering, Refused, Rerouting, Route, Routes, Routing};
use crate::script::{self, Home};
use crate::security::Security;
use crate::server::{Manner, Server};
use crate::source::{GroupMark, Source};
use crate::subscription::registry::Topic;
use crate::sync::task::AbortHandle;
use crate::sync::{Mutex, MutexGuard};
use crate::target::Target;
use crate::timer::{self, Instant};
use crate::{error, key, keyslot};

/// How long a request first waits if its keys are being moved; the pause doubles each time. Moving a key takes less
/// than a millisecond, and moving a slot takes that long for each of its keys.
const MOVING: Duration = Duration::from_millis(10);

/// The nodes of a cluster.
///
/// There is one [`Server`] for each node that owns slots or was named by a redirect. The slot map is queried when it is
/// first needed, when a node answers `MOVED` or `CLUSTERDOWN` or cannot be reached, and once a minute. Such a query, a
/// *look*, runs in a separate task, because callers may be dropped.
pub(crate) struct Cluster {
    shown: String,
    config: RedisConfig,
    security: Security,
    login: RedisConnectionInfo,
    /// Nodes of the address.
    seeds: Vec<Endpoint>,
    ears: Arc<ClusterRegistry>,
    hints: Arc<ClusterHints>,
    /// Notified at the end of a look, which queries the slot map.
    looked: Notify,
    state: Mutex<ClusterState>,
    this: Weak<Cluster>,
}

struct ClusterState {
    map: SlotMap<Arc<Node>>,
    /// Owners of slots, and nodes that redirects have named since the last look.
    nodes: Vec<Arc<Node>>,
    /// The number of nodes that have been created.
    created: u64,
    /// Nodes to query, in this order.
    asked: Vec<Endpoint>,
    /// Whether a slot has changed owners since the previous look.
    has_changed: bool,
    /// The next look does not begin before this time.
    rests_until: Option<Instant>,
    /// Why the last look failed.
    trouble: Option<TransportError>,
    /// Failed looks since the last successful one.
    failures: u32,
    witnesses: Witnesses,
    /// The task that queries the slot map.
    lookout: Option<AbortHandle>,
}

impl Cluster {
    /// Creates the transport's view of the cluster at this address. Sends nothing yet.
    pub(crate) fn at(address: ClusterAddress, config: RedisConfig) -> Arc<Self> {
        Arc::new_cyclic(|this| Cluster {
            shown: address.shown,
            security: config.security(address.scheme),
            config,
            login: address.login,
            ears: Arc::default(),
            hints: Arc::default(),
            looked: Notify::new(),
            state: Mutex::new(ClusterState {
                map: SlotMap::new(),
                nodes: Vec::new(),
                created: 0,
                asked: address.seeds.clone(),
                has_changed: false,
                rests_until: None,
                trouble: None,
                failures: 0,
                witnesses: Witnesses::default(),
                lookout: None,
            }),
            seeds: address.seeds,
            this: this.clone(),
        })
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the target of connections to a node that this source names.
    fn target(&self, endpoint: &Endpoint, source: Arc<dyn Source>) -> Target {
        Target::behind(
            source,
            self.security.clone(),
            self.login.clone(),
            endpoint.to_string(),
            self.config.clone(),
        )
    }

    /// Returns the node at an endpoint, and creates it if there is none.
    fn node(&self, state: &mut ClusterState, endpoint: &Endpoint) -> Arc<Node> {
        let known = state.nodes.iter().find(|node| node.endpoint == *endpoint);
        if let Some(node) = known {
            return Arc::clone(node);
        }
        let source = Arc::new(NodeSource {
            endpoint: endpoint.clone(),
            hints: Arc::clone(&self.hints),
        });
        state.created += 1;
        let node = Arc::new(Node {
            number: ServerNumber(state.created),
            endpoint: endpoint.clone(),
            server: Arc::new(Server::new(self.target(endpoint, source))),
        });
        state.nodes.push(Arc::clone(&node));
        node
    }

    /// Returns the owner of a slot, if it is known.
    fn owner(&self, slot: Slot) -> Option<Arc<Node>> {
        self.lock().map.owner(slot).cloned()
    }

    /// Requests a look.
    fn look_again(&self) {
        self.follow_hints();
        self.hints.look_again();
    }

    /// Requests a look that queries this node after all others.
    fn distrust(&self, endpoint: &Endpoint) {
        self.follow_hints();
        self.hints.distrust(endpoint);
    }

    /// Makes sure that the task that queries the slot map is running. The task ends with its runtime.
    fn follow_hints(&self) {
        let mut state = self.lock();
        let has_ended = |task: &AbortHandle| task.is_finished();
        if state.lookout.as_ref().is_none_or(has_ended) {
            let task = Cluster::follow(Arc::clone(&self.hints), self.this.clone());
            state.lookout = Some(timer::spawn(task).abort_handle());
        }
    }

    fn server_of(&self, slot: Slot) -> Option<Arc<Server>> {
        let owner = self.owner(slot);
        owner.map(|node| Arc::clone(&node.server))
    }

    /// Records the owner of a slot, as a node has named it.
    fn learn(&self, slot: Slot, endpoint: &Endpoint) -> Route {
        let mut state = self.lock();
        let node = self.node(&mut state, endpoint);
        state.map.assign(slot.0, slot.0, &node);
        state.has_changed = true;
        // The new owner knows of the change, so it is queried first.
        state.asked.retain(|asked| asked != endpoint);
        state.asked.insert(0, endpoint.clone());
        drop(state);
        // Not only at the end of the look: if it failed, the listeners would stay at the old owner for a minute.
        self.ears
            .settle(|of| (of == slot).then(|| self.server_of(slot)).flatten());
        self.look_again();
        node.route()
    }

    /// Returns why no server is known for a slot.
    fn trouble(&self, slot: Slot) -> TransportError {
        let trouble = self.lock().trouble.clone();
        trouble.unwrap_or_else(|| error::no_owner(slot))
    }

    /// Removes a witness.
    fn leave(&self, number: u64) {
        let left = self.lock().witnesses.remove(number);
        // Outside the mutex, because the drop may run the witness's code, which may call the cluster again.
        drop(left);
    }

    /// The mutex is held for a few instructions, never across an await.
    fn lock(&self) -> MutexGuard<'_, ClusterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Routes for Cluster {
    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        keyslot::of_name(name)
    }

    fn server(&self, slot: Slot) -> ServerNumber {
        let owner = self.owner(slot);
        owner.map_or(ServerNumber::WHOLE, |node| node.number)
    }

    fn known(&self, slot: Slot) -> Option<Route> {
        self.owner(slot).map(|node| node.route())
    }

    fn find(&self, slot: Slot) -> Routing<'_> {
        Box::pin(async move {
            let mut looked = pin!(self.looked.notified());
            // From here on, the end of a look is not missed, even if it comes between the check and the wait.
            looked.as_mut().enable();
            if let Some(route) = self.known(slot) {
                return Ok(route);
            }
            let rests_until = self.lock().rests_until;
            if rests_until.is_some_and(|until| timer::now() < until) {
                return Err(self.trouble(slot));
            }
            self.look_again();
            looked.await;
            self.known(slot).ok_or_else(|| self.trouble(slot))
        })
    }

    fn elsewhere(&self, refused: Refused<'_>, words: &ServerError) -> Option<Detour> {
        let at_once = |route| Detour { route, pause: None };
        let redirect = || answer::redirect(words.details()?, refused.at);
        match words.kind()? {
            ServerErrorKind::Moved => {
                let Some((slot, endpoint)) = redirect() else {
                    self.look_again();
                    return None;
                };
                Some(at_once(self.learn(slot, &endpoint)))
            }
            // A reader's lease is a key whose name the script makes up, so no node checks whether that key has arrived.
            // Without this condition, suppose A reads, its claim has moved, and its lease has not: B would be granted
            // the name to write.
            ServerErrorKind::Ask if script::declares_its_keys(refused.request) => {
                let (_, endpoint) = redirect()?;
                let node = self.node(&mut self.lock(), &endpoint);
                Some(at_once(node.route_in(Manner::Asking)))
            }
            // Some of the names have moved, and others have not. Each can be renewed where its keys are, by a request of
            // its own.
            ServerErrorKind::Ask | ServerErrorKind::TryAgain
                if has_several_names(refused.request) =>
            {
                None
            }
            // The keys of the request are being moved one by one.
            ServerErrorKind::Ask | ServerErrorKind::TryAgain => Some(Detour {
                route: self.known(refused.slot)?,
                pause: Some(MOVING * 2_u32.saturating_pow(refused.times)),
            }),
            ServerErrorKind::ClusterDown | ServerErrorKind::MasterDown => {
                self.distrust(refused.at);
                None
            }
            _ => None,
        }
    }

    fn instead<'a>(&'a self, of: &'a Arc<Server>, slot: Slot) -> Rerouting<'a> {
        let another = move || {
            let route = self.known(slot);
            route.filter(|route| !Arc::ptr_eq(&route.server, of))
        };
        Box::pin(async move {
            let mut looked = pin!(self.looked.notified());
            // From here on, the end of a look is not missed, even if it comes between the check and the wait.
            looked.as_mut().enable();
            if let Some(route) = another() {
                return Some(route);
            }
            self.doubt(of);
            looked.await;
            another()
        })
    }

    fn doubt(&self, server: &Arc<Server>) {
        let state = self.lock();
        let mut nodes = state.nodes.iter();
        let node = nodes.find(|node| Arc::ptr_eq(&node.server, server));
        let endpoint = node.map(|node| node.endpoint.clone());
        drop(state);
        if let Some(endpoint) = endpoint {
            self.distrust(&endpoint);
        }
    }

    fn all(&self) -> Gathering<'_> {
        Box::pin(async {
            // Any slot will do: a look finds the owners of all.
            let found = self.find(Slot(0)).await;
            let servers = self.lock();
            let servers = servers.map.owners().map(|node| Arc::clone(&node.server));
            let servers: Vec<_> = servers.collect();
            match found {
                Err(error) if servers.is_empty() => Err(error),
                _ => Ok(servers),
            }
        })
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        // All keys and channels of a name are in its slot.
        let slot = keyslot::of_key(key::channel_of(channel));
        let handle = self.ears.add(Topic::of(channel), slot, listener);
        if self.server_of(slot).is_none() {
            self.look_again();
        }
        // Again if the map changes in between: the change has settled the listener before this subscription replaced its own.
        while let Some(server) = self.server_of(slot)
            && !self.ears.is_at(handle.number(), &server)
        {
            self.ears.listen(handle.number(), &server);
        }
        Subscription::new(handle)
    }

    /// Notifies a witness whose call failed at one of the nodes; it is not known which. The witness is notified when
    /// an unreachable node can be reached again, when slots change owners, or immediately if neither is expected.
    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        let mut state = self.lock();
        let number = state.witnesses.add(Arc::clone(&witness));
        let nodes = state.nodes.clone();
        let is_known = state.map.owners().next().is_some();
        drop(state);
        let failing = nodes.iter().map(|node| &node.server.connection);
        let failing: Vec<_> = failing
            .filter(|connection| connection.is_failing())
            .map(|connection| connection.attend(Arc::clone(&witness)))
            .collect();
        if !is_known {
            self.look_again();
        } else if failing.is_empty() {
            witness.reachable();
        }
        Subscription::new(Attending {
            cluster: self.this.clone(),
            number,
            _failing: failing,
        })
    }

    fn is_divided(&self) -> bool {
        true
    }

    fn home(&self) -> &Home {
        &Home::CLUSTER
    }

    fn group(&self) -> Option<GroupMark> {
        let mut known = self.lock().asked.clone();
        known.extend(self.seeds.iter().cloned());
        let name = String::new();
        Some(GroupMark { name, known })
    }
}

fn has_several_names(request: &Request) -> bool {
    matches!(request, Request::Renew(ask) if 1 < ask.claims.len())
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(lookout) = self.lock().lookout.take() {
            lookout.abort();
        }
    }
}

/// Keeps a witness registered until this value is dropped.
struct Attending {
    cluster: Weak<Cluster>,
    number: u64,
    /// Watches of the nodes that were unreachable when the witness was registered.
    _failing: Vec<Attendance>,
}

impl Drop for Attending {
    fn drop(&mut self) {
        if let Some(cluster) = self.cluster.upgrade() {
            cluster.leave(self.number);
        }
    }
}
