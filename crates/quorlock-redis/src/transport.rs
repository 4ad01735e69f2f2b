//! The way to one Redis server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::message::{Channel, ReleaseReply, Reply, Request};
use quorlock_core::transport::{
    Call, Cause, Execution, Listener, Subscription, Transport, TransportError, Witness,
};
use redis::{Cmd, ConnectionAddr, ServerErrorKind, Value};

use crate::address::group::GroupAddress;
use crate::address::{Address, AddressError, Scheme};
use crate::config::RedisConfig;
use crate::connection::Connection;
use crate::group::Group;
use crate::link::{self, Link};
use crate::multiplexer::Answer;
use crate::script::batch::Member;
use crate::script::{self, By};
use crate::subscription::Wakes;
use crate::target::Target;
use crate::timer::{self, Instant};
use crate::wait::{self, Wait};
use crate::{error, key};

/// A Redis server (or Valkey, or whatever runs their scripts), to be asked for locks. Cheap to clone.
///
/// One connection carries the requests of all callers, and another one the wake-ups, as long as there are listeners.
/// Both are made when they are first needed, and made again when they fail; a request is never sent again.
///
/// # Runtime
/// It spawns tasks on the tokio runtime in whose scope it is used, with I/O and time enabled; calls, [`Transport::subscribe`]
/// and [`Transport::attend`] panic outside of one. Dropping a subscription works anywhere.
#[derive(Clone)]
pub struct RedisTransport {
    inner: Arc<Inner>,
}

struct Inner {
    target: Arc<Target>,
    connection: Arc<Connection>,
    wakes: Wakes,
}

impl RedisTransport {
    pub(crate) fn target(&self) -> &Target {
        &self.inner.target
    }

    /// How far a write must have gone before it counts.
    pub(crate) fn wait(&self) -> Option<&Wait> {
        self.inner.target.config().wait.as_ref()
    }

    /// Takes the address of a server; connects when it is first needed.
    ///
    /// `redis://[user[:password]@]host[:port][/db]`, `rediss://` for the same under TLS (`valkey://` and `valkeys://` mean the
    /// same), `unix:///path[?db=1&user=..&pass=..]` for a Unix socket, or
    /// `redis+sentinel://[user[:password]@]host[:port][,host[:port]..]/name[/db]` (`rediss+sentinel://` under TLS) for the
    /// primary of a Sentinel group. The user and the password are those of the servers of the group; those of its sentinels
    /// are `?sentinel_user=..&sentinel_password=..`, or [`RedisConfig::sentinel_login`].
    ///
    /// # Errors
    /// [`AddressError`] when the address does not parse, asks for TLS while the feature `tls` is off, or does not ask for TLS
    /// while settings for it were given.
    pub fn open(address: &str, config: RedisConfig) -> Result<Self, AddressError> {
        if GroupAddress::is_meant(address) {
            let address = GroupAddress::parse(address)?;
            if config.has_tls() && address.scheme == Scheme::Plain {
                return Err(AddressError::Unencrypted);
            }
            return Ok(Self::to(Group::target(address, config)));
        }
        let address = Address::parse(address)?;
        if config.has_tls() && address.is_for_all_to_read() {
            return Err(AddressError::Unencrypted);
        }
        Ok(Self::to(Target::new(address, config)))
    }

    /// Takes the address and the credentials of your own client of the `redis` crate. Its connections and settings are not
    /// used. Of one that uses TLS neither are its certificates, which cannot be read from it: give them by `RedisConfig::tls`.
    ///
    /// # Errors
    /// As [`RedisTransport::open`], and [`AddressError::TlsOfClient`] when the client has certificates of its own or verifies none,
    /// and no settings for TLS were given.
    pub fn from_redis_client(
        client: &redis::Client,
        config: RedisConfig,
    ) -> Result<Self, AddressError> {
        let info = client.get_connection_info();
        let has_own = match info.addr() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => *insecure || tls_params.is_some(),
            _ => false,
        };
        let address = Address::of(info)?;
        if config.has_tls() && address.is_for_all_to_read() {
            return Err(AddressError::Unencrypted);
        }
        if has_own && !config.has_tls() {
            return Err(AddressError::TlsOfClient);
        }
        Ok(Self::to(Target::new(address, config)))
    }

    fn to(target: Target) -> Self {
        let target = Arc::new(target);
        let inner = Inner {
            connection: Connection::new(Arc::clone(&target)),
            wakes: Wakes::new(Arc::clone(&target)),
            target,
        };
        RedisTransport {
            inner: Arc::new(inner),
        }
    }

    /// Whether both lead to the primary of one Sentinel group, by the sentinels that are known: those of the addresses, and those
    /// that answers have named since.
    #[must_use]
    pub fn is_same_group_as(&self, other: &RedisTransport) -> bool {
        let group = |transport: &RedisTransport| transport.inner.target.source().group();
        match (group(self), group(other)) {
            (Some(one), Some(other)) => one.is_same_as(&other),
            _ => false,
        }
    }

    /// Sends a command of the adapter's own and waits for the answer, within the bounds of a call.
    pub(crate) async fn command(&self, cmd: &Cmd) -> Result<Value, TransportError> {
        let now = timer::now();
        let patience = self.inner.target.config().call_bound();
        let deadline = now + patience;
        let link = self.inner.link(now, deadline).await?;
        let answer = link.send(now, cmd, deadline, patience)?;
        match self.inner.answer(&link, answer).await? {
            Value::ServerError(error) => {
                let error = error::server(&error);
                self.inner.retire_if_useless(&link, &error);
                Err(error)
            }
            value => Ok(value),
        }
    }
}

impl Inner {
    async fn exchange(&self, request: Arc<Request>) -> Result<Reply, TransportError> {
        let now = timer::now();
        let deadline = now + self.target.config().call_bound();
        let patience = self.patience(&request);
        let link = self.link(now, deadline).await?;
        let mut answer = Value::Nil;
        if let Some(member) = Member::of(&request) {
            let joined = link.join(member, deadline, patience)?;
            answer = self.answer(&link, joined).await?;
        }
        // Nothing was sent yet, or the server has refused the call in which it went with others: it has executed nothing.
        if matches!(answer, Value::Nil) {
            let cmd = script::encode(&request, By::Digest);
            let alone = link.send(timer::now(), &cmd, deadline, patience)?;
            answer = self.answer(&link, alone).await?;
        }
        if let Value::ServerError(error) = &answer
            && error.kind() == Some(ServerErrorKind::NoScript)
        {
            // Its scripts were flushed since the connection was made: it has executed nothing.
            let cmd = script::encode(&request, By::Text);
            let again = link.send(timer::now(), &cmd, deadline, patience)?;
            answer = self.answer(&link, again).await?;
        }
        if let Value::ServerError(error) = &answer {
            let error = error::server(error);
            self.retire_if_useless(&link, &error);
            return Err(error);
        }
        let reply = script::decode(&request, &answer);
        let mut reply = reply.inspect_err(|_| self.connection.retire(&link))?;
        if let (Request::Release(ask), Reply::Release(ReleaseReply::Freed { told: told @ 1.. })) =
            (&*request, &mut reply)
            && self
                .wakes
                .listens(&key::channel_of(&Channel::Lock(ask.name.clone())))
        {
            // The server counts this client, too.
            *told -= 1;
        }
        if let Some(wait) = &self.target.config().wait
            && wait::is_relied_upon(&reply)
        {
            Box::pin(self.wait(&link, wait, deadline)).await?;
        }
        Ok(reply)
    }

    /// Waits until replicas have what was written on this connection, which is what the server counts.
    async fn wait(
        &self,
        link: &Arc<Link>,
        wait: &Wait,
        deadline: Instant,
    ) -> Result<(), TransportError> {
        // What fails here is not undone by that, whatever the error says of the command itself.
        let uncertain = |error: TransportError| error.with_execution(Execution::Indeterminate);
        let patience = self.target.config().call_bound();
        let answer = link.send(timer::now(), &wait.command(), deadline, patience);
        let answer = self.answer(link, answer.map_err(uncertain)?).await;
        wait.judge(&answer.map_err(uncertain)?)
    }

    /// How long the server may be silent before that is suspicious.
    fn patience(&self, request: &Request) -> Duration {
        let config = self.target.config();
        let patience = link::patience(request).unwrap_or(config.call_bound());
        // While the server waits for replicas it is silent, as it should be.
        let wait = config.wait.as_ref().map_or(Duration::ZERO, Wait::within);
        patience.saturating_add(wait).min(config.call_bound())
    }

    async fn link(&self, now: Instant, deadline: Instant) -> Result<Arc<Link>, TransportError> {
        match self.connection.current(now) {
            Some(link) => Ok(link),
            // Boxed, like whatever is seldom needed: each call would carry the room for it.
            None => Box::pin(self.connection.next(now, deadline)).await,
        }
    }

    /// After a failover the same address may lead to the new primary, on a new connection only; a server that has forgotten who asks
    /// lets in who logs in again.
    fn retire_if_useless(&self, link: &Arc<Link>, error: &TransportError) {
        match error.cause {
            Cause::ReadOnly => self.connection.refuse(link),
            Cause::NoAuth => self.connection.retire(link),
            _ => {}
        }
    }

    /// A connection that broke, or on which a call found no reply in time, is used no more.
    async fn answer(&self, link: &Arc<Link>, answer: Answer) -> Result<Value, TransportError> {
        answer.await.inspect_err(|_| self.connection.retire(link))
    }
}

impl Transport for RedisTransport {
    fn call(&self, request: Request) -> Call {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.exchange(Arc::new(request)).await })
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        let channel = key::channel_of(channel);
        Subscription::new(self.inner.wakes.subscribe(channel, listener))
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        Subscription::new(self.inner.connection.attend(witness))
    }

    fn address(&self) -> &str {
        self.inner.target.shown()
    }
}

impl fmt::Debug for RedisTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisTransport")
            .field(&self.inner.target)
            .finish()
    }
}
