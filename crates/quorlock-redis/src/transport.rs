//! The transport to a Redis server: carries a request there, and its reply back.

mod apart;
#[cfg(feature = "redis-connections")]
mod from_client;
mod refused;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::message::{Channel, ReleaseReply, Reply, Request};
use quorlock_core::name::Name;
use quorlock_core::slot::{ServerNumber, Slot, UnfitName};
use quorlock_core::transport::{
    Call, Cause, Execution, Listener, Subscription, Transport, TransportError, Witness,
};
use redis::Value;

use self::refused::{Sent, WakeUpDoubts};
use crate::address::{AddressError, AddressProblem, AnyAddress};
use crate::cluster::Cluster;
use crate::config::RedisConfig;
use crate::group::Group;
use crate::link::{self, Connection};
use crate::route::direct::Direct;
use crate::route::shard::Shard;
use crate::route::{Refused, Route, Routes};
use crate::script::Home;
use crate::server::{Bounds, Job};
use crate::tag::Tag;
use crate::target::Target;
use crate::timer::{self, Clocks, Instant};
use crate::wait::{self, Wait};
use crate::{clients, error, key, script, unfit_names};

/// The maximum number of other servers that a refused request is sent to. Without it, two nodes that each name the other
/// one as the owner of a slot would send the request back and forth until its time-out.
const MOST_DETOURS: u32 = 5;

/// The transport to a Redis server, or to Valkey or another server that runs the same scripts. Cheap to clone.
///
/// One connection carries the requests of all callers. Another one carries wake-ups while there are listeners. Both
/// are made when they are first needed, and replaced when they fail. A request that may have been executed is never sent
/// again.
///
/// # Runtime
/// The transport spawns tasks on the tokio runtime in whose context it is used, with I/O and time enabled. Calls,
/// [`Transport::subscribe`] and [`Transport::attend`] panic outside of a runtime. A subscription can be dropped
/// anywhere.
#[derive(Clone)]
pub struct RedisTransport {
    inner: Arc<Inner>,
}

struct Inner {
    routes: Arc<dyn Routes>,
    /// The address without credentials.
    shown: String,
    config: RedisConfig,
    doubts: WakeUpDoubts,
    home: Home,
    /// When the transport was made.
    made: Clocks,
}

impl RedisTransport {
    /// The servers that requests go to.
    pub(crate) fn routes(&self) -> &dyn Routes {
        &*self.inner.routes
    }

    pub(crate) fn config(&self) -> &RedisConfig {
        &self.inner.config
    }

    /// Tells a time-out that a paused clock has caused from one of the server.
    pub(crate) fn timed(&self, error: TransportError) -> TransportError {
        self.inner.timed(error)
    }

    /// How far a write must be replicated or persisted before it counts.
    pub(crate) fn wait(&self) -> Option<&Wait> {
        self.inner.config.wait.as_ref()
    }

    /// Creates a transport from the address of a server. It connects when a connection is first needed.
    ///
    /// Special characters of a user and a password are percent-encoded (`%23` for `#`). The address is one of:
    ///
    /// - `redis://[user[:password]@]host[:port][/db]`, or `rediss://` for the same under TLS (`valkey://` and
    ///   `valkeys://` are synonyms). The database can also be given as `?db=1`.
    /// - `unix:///path[?db=1&user=..&pass=..]` for a Unix socket.
    /// - `redis+sentinel://[user[:password]@]host[:port][,host[:port]..]/name[/db]` (`rediss+sentinel://` under TLS)
    ///   for the primary of a Sentinel group. The user and the password are those of the group's servers; those of
    ///   its sentinels are `?sentinel_user=..&sentinel_password=..`, or [`RedisConfig::sentinel_login`].
    /// - `redis+cluster://[user[:password]@]host[:port][,host[:port]..]` (`rediss+cluster://` under TLS) for a Redis
    ///   Cluster, given by any of its nodes.
    ///
    /// # Errors
    /// [`AddressError`] if the address does not parse, if it has a part that has no meaning (a parameter or fragment
    /// that another library may know), if it asks for TLS while the feature `tls` is off, or if it does not ask for TLS
    /// although the configuration has settings for it.
    pub fn open(address: &str, config: RedisConfig) -> Result<Self, AddressError> {
        let parsed = AnyAddress::parse(address)?;
        if config.has_tls() && parsed.is_for_all_to_read() {
            return Err(AddressError::of(address, AddressProblem::Unencrypted));
        }
        Ok(match parsed {
            AnyAddress::Server(address) => Self::to(Target::new(address, config)),
            AnyAddress::Group(address) => Self::to(Group::target(address, config)),
            AnyAddress::Cluster(address) => {
                let cluster = Cluster::at(address, config.clone());
                let shown = cluster.shown().to_owned();
                Self::by(cluster, shown, config)
            }
        })
    }

    fn to(target: Target) -> Self {
        let (shown, config) = (target.shown().to_owned(), target.config().clone());
        Self::by(Arc::new(Direct::to(target)), shown, config)
    }

    fn by(routes: Arc<dyn Routes>, shown: String, config: RedisConfig) -> Self {
        let inner = Inner {
            home: routes.home().within(&config.namespace),
            routes,
            shown,
            config,
            doubts: WakeUpDoubts::default(),
            made: Clocks::now(),
        };
        RedisTransport {
            inner: Arc::new(inner),
        }
    }

    /// Whether the keys are spread over several servers: a cluster.
    #[must_use]
    pub fn is_divided(&self) -> bool {
        self.inner.routes.is_divided()
    }

    /// Whether the transport leads to a cluster, or to one shard of it.
    #[must_use]
    pub fn is_of_cluster(&self) -> bool {
        self.inner.routes.is_of_cluster()
    }

    /// Returns shard `index` (from 0) of `of` shards of a cluster as a node, which can be a member of a majority. All
    /// of its names are under one tag, together with the marker of the process that has them. `None` if this is not a
    /// cluster.
    ///
    /// The tag depends on the two numbers alone. Shards share the connections of the cluster.
    #[must_use]
    pub fn shard(&self, index: usize, of: usize) -> Option<RedisTransport> {
        if !self.is_divided() {
            return None;
        }
        let tag = Tag::of_shard(index, of);
        let shown = format!("{}{{{}}}", self.inner.shown, tag.text());
        let shard = Shard::new(Arc::clone(&self.inner.routes), tag);
        Some(Self::by(Arc::new(shard), shown, self.inner.config.clone()))
    }

    /// Whether both transports lead to the primary of the same Sentinel group, or to the same shard of the same
    /// cluster. They are compared by the known sentinels and nodes: those of the addresses, and those that answers
    /// have named since.
    #[must_use]
    pub fn is_same_group_as(&self, other: &RedisTransport) -> bool {
        let group = |transport: &RedisTransport| transport.inner.routes.group();
        match (group(self), group(other)) {
            (Some(one), Some(other)) => one.is_same_as(&other),
            _ => false,
        }
    }
}

/// A request as its server has it, and the slot of its keys.
struct Addressed {
    request: Arc<Request>,
    slot: Slot,
}

impl Inner {
    /// Finds the slot of a request, and translates it for its server.
    fn address(&self, request: Request) -> Result<Addressed, TransportError> {
        let slot = self.slot_of(&request)?;
        let request = Arc::new(self.routes.translate(request)?);
        Ok(Addressed { request, slot })
    }

    /// Sends a request to the server that stores its name. If that server refuses it and names another one,
    /// sends it there.
    async fn exchange(
        &self,
        Addressed { request, slot }: Addressed,
    ) -> Result<Reply, TransportError> {
        let now = timer::now();
        let deadline = now + self.config.call_bound();
        let bounds = Bounds {
            deadline,
            patience: self.patience(&request),
            longest_pause: link::longest_pause(&request),
        };
        let mut route = match self.routes.known(slot) {
            Some(route) => route,
            // Boxed, like every rare path; otherwise each call would reserve memory for it.
            None => Box::pin(self.find(slot, deadline)).await?,
        };
        let mut times = 0;
        loop {
            let Route { server, manner } = &route;
            let job = Job {
                request: &request,
                home: &self.home,
            };
            let (link, answer) = match server.ask(job, *manner, now, &bounds).await {
                Ok(answered) => answered,
                Err(error) => {
                    times += 1;
                    let instead = Box::pin(self.instead(&error, &route, slot, times, deadline));
                    route = instead.await.ok_or(error)?;
                    continue;
                }
            };
            let Value::ServerError(words) = &answer else {
                return self.judge(&request, &route, &link, &answer, deadline).await;
            };
            let refused = Refused {
                at: &link.whence().endpoint,
                request: &request,
                slot,
                times,
            };
            // A server that refuses in this way has executed nothing, so the request is not executed twice.
            match self.routes.elsewhere(refused, words) {
                None => {
                    let sent = self.sent(&request, &route, &link);
                    let error = Box::pin(sent.explained(words, deadline)).await;
                    server.retire_if_useless(&link, &error);
                    return Err(error);
                }
                Some(detour) => {
                    times += 1;
                    let error = || error::redirected(times, words);
                    if MOST_DETOURS < times || !pause(detour.pause, deadline).await {
                        return Err(error());
                    }
                    route = detour.route;
                }
            }
        }
    }

    /// Finds another server for a request that was not sent. A request that may have been executed is not sent again:
    /// A's acquire could take effect on both servers.
    async fn instead(
        &self,
        error: &TransportError,
        route: &Route,
        slot: Slot,
        times: u32,
        deadline: Instant,
    ) -> Option<Route> {
        if error.execution == Execution::Definite && times <= MOST_DETOURS {
            let found = self.routes.instead(&route.server, slot);
            return timer::by(deadline, found).await.flatten();
        }
        self.routes.doubt(&route.server);
        None
    }

    async fn find(&self, slot: Slot, deadline: Instant) -> Result<Route, TransportError> {
        let found = timer::by(deadline, self.routes.find(slot)).await;
        found.unwrap_or_else(|| Err(error::not_sent()))
    }

    /// The slot of the keys of a request. All names of one request have the same slot, because it was split by slots
    /// before.
    fn slot_of(&self, request: &Request) -> Result<Slot, TransportError> {
        let name = match request {
            Request::Acquire(ask) => &ask.name,
            Request::Renew(ask) => match ask.claims.first() {
                Some(claim) => &claim.name,
                None => return Ok(Slot::WHOLE),
            },
            Request::Release(ask) => &ask.name,
            Request::Inspect(ask) => &ask.name,
            Request::ForceRelease(ask) => &ask.name,
            Request::Probe(_) => return Ok(Slot::WHOLE),
        };
        self.slot(name).map_err(|unfit| error::unfit(&unfit))
    }

    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        unfit_names::check(name, &self.home.namespace)?;
        self.routes.slot(name)
    }

    fn sent<'a>(
        &'a self,
        request: &'a Request,
        route: &'a Route,
        link: &'a Arc<Connection>,
    ) -> Sent<'a> {
        Sent {
            request,
            home: &self.home,
            server: &route.server,
            link,
        }
    }

    /// Tells a time-out that a paused clock has caused from one of the server. A network of the user's own may run by
    /// tokio's clock.
    fn timed(&self, error: TransportError) -> TransportError {
        let has_jumped =
            error.cause == Cause::TimedOut && !self.config.has_own_network && self.made.is_ahead();
        if has_jumped {
            error::paused_clock(&error)
        } else {
            error
        }
    }

    /// Decodes the answer of a server that has executed the request.
    async fn judge(
        &self,
        request: &Request,
        route: &Route,
        link: &Arc<Connection>,
        answer: &Value,
        deadline: Instant,
    ) -> Result<Reply, TransportError> {
        let server = &route.server;
        let reply = script::decode(request, answer);
        let mut reply = reply.inspect_err(|_| server.connection.retire(link))?;
        if self.config.doubts.is_some() {
            let sent = self.sent(request, route, link);
            Box::pin(self.doubts.look(sent, &self.shown, answer, &reply)).await;
        }
        if let (Request::Release(ask), Reply::Release(ReleaseReply::Freed { told: told @ 1.. })) =
            (request, &mut reply)
            && server
                .wakes
                .listens(&key::channel_of(&Channel::Lock(ask.name.clone())))
        {
            // The server counts this client as a listener, too.
            *told -= 1;
        }
        if let (Request::Inspect(ask), Reply::Inspect(found)) = (request, &mut reply)
            && ask.finds_client
        {
            let patience = self.config.call_bound();
            let list = link.send(timer::now(), &clients::list(), deadline, patience);
            // A user who may not list the connections sees the owner alone.
            if let Ok(list) = list
                && let Ok(list) = Box::pin(list).await
            {
                found.client = clients::of_owner(found, &list);
            }
        }
        if let Some(wait) = &self.config.wait
            && wait::is_relied_upon(&reply)
        {
            Box::pin(server.wait(link, wait, deadline)).await?;
        }
        Ok(reply)
    }

    /// How long the server may be silent before the connection is suspected.
    fn patience(&self, request: &Request) -> Duration {
        let config = &self.config;
        let patience = link::patience(request).unwrap_or(config.call_bound());
        // While the server waits for replicas, silence is expected.
        let wait = config.wait.as_ref().map_or(Duration::ZERO, Wait::within);
        patience.saturating_add(wait).min(config.call_bound())
    }
}

/// Waits before another attempt. Returns `false` without waiting if the wait would end after the deadline.
async fn pause(pause: Option<Duration>, deadline: Instant) -> bool {
    let Some(until) = pause.map(|pause| timer::now() + pause) else {
        return true;
    };
    if deadline <= until {
        return false;
    }
    Box::pin(timer::sleep_until(until)).await;
    true
}

impl Transport for RedisTransport {
    fn call(&self, request: Request) -> Call {
        let inner = Arc::clone(&self.inner);
        // The request is not a part of the future, which would be moved and allocated with several copies of it.
        let addressed = match inner.parts(&request) {
            Ok(Some(parts)) => return Box::pin(async move { inner.renew_apart(parts).await }),
            Ok(None) => inner.address(request),
            Err(error) => Err(error),
        };
        Box::pin(async move {
            let replied = inner.exchange(addressed?).await;
            replied.map_err(|error| inner.timed(error))
        })
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        self.inner.routes.subscribe(channel, listener)
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        self.inner.routes.attend(witness)
    }

    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        self.inner.slot(name)
    }

    fn server(&self, slot: Slot) -> ServerNumber {
        self.inner.routes.server(slot)
    }

    fn address(&self) -> &str {
        &self.inner.shown
    }
}

impl fmt::Debug for RedisTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisTransport")
            .field(&self.inner.routes)
            .finish()
    }
}
