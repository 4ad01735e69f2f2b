//! The settings of a transport.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::message::Acquire;

use redis::RedisConnectionInfo;

use crate::address::{Scheme, hosts};
use crate::connect::{Connect, Network};
use crate::credentials::Credentials;
use crate::doubtful_settings::Doubt;
use crate::security::Security;
use crate::timer::LONGEST_SPAN;
#[cfg(feature = "tls")]
use crate::tls::Tls;
use crate::wait::Wait;

/// The default bound on a call.
pub(crate) const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Settings of a [`RedisTransport`](crate::RedisTransport). The defaults are safe.
///
/// ```
/// use quorlock_redis::RedisConfig;
/// use std::time::Duration;
///
/// let config = RedisConfig::default().call_timeout(Duration::from_millis(500));
/// ```
#[derive(Clone, Debug)]
pub struct RedisConfig {
    pub(crate) network: Arc<dyn Connect>,
    /// Whether the user has set the network, whose time may be that of tokio's clock.
    pub(crate) has_own_network: bool,
    /// Prefix of all names, for the rules in errors.
    pub(crate) prefix: Vec<u8>,
    /// Namespace of all names.
    pub(crate) namespace: Vec<u8>,
    /// Name of the connections, as `CLIENT LIST` shows it.
    pub(crate) client_name: Option<String>,
    /// Whether connections for wake-ups may be asked for the loss of claims.
    pub(crate) watches_claims: bool,
    /// What hears doubts that replies raise.
    pub(crate) doubts: Option<DoubtListener>,
    pub(crate) connect_timeout: Duration,
    /// Bound on a call; `None` if the user has set none.
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) ping_interval: Duration,
    pub(crate) linger: Duration,
    pub(crate) wait: Option<Wait>,
    pub(crate) only_scripts: bool,
    /// How old a connection is when the server cannot have lost the tokens that acquires have seen.
    pub(crate) youngest: Duration,
    /// Source of the credentials; `None` if passwords are in addresses.
    pub(crate) credentials: Option<CredentialsSource>,
    /// TLS settings of the servers; `None` if the user has given none.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
    /// TLS settings of the sentinels; `None` if they are those of the servers.
    #[cfg(feature = "tls")]
    pub(crate) sentinel_tls: Option<Tls>,
    pub(crate) sentinel_timeout: Duration,
    /// Login for sentinels whose address has none. (Its `Debug` hides the password.)
    pub(crate) sentinel_login: Option<RedisConnectionInfo>,
}

/// The source of the credentials. Its `Debug` shows nothing, since it may contain some.
#[derive(Clone)]
pub(crate) struct CredentialsSource(pub(crate) Arc<dyn Credentials>);

impl fmt::Debug for CredentialsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// What hears doubts about servers. Its `Debug` shows nothing.
#[derive(Clone)]
pub(crate) struct DoubtListener(Arc<Hear>);

type Hear = dyn Fn(&str, &Doubt) + Send + Sync;

impl DoubtListener {
    pub(crate) fn tell(&self, address: &str, doubt: &Doubt) {
        (self.0)(address, doubt);
    }
}

impl fmt::Debug for DoubtListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DoubtListener")
    }
}

impl Default for RedisConfig {
    fn default() -> Self {
        RedisConfig {
            network: Arc::new(Network),
            has_own_network: false,
            prefix: Vec::new(),
            namespace: Vec::new(),
            client_name: None,
            watches_claims: false,
            doubts: None,
            connect_timeout: Duration::from_secs(1),
            call_timeout: None,
            ping_interval: Duration::from_secs(5),
            linger: Duration::from_secs(30),
            wait: None,
            only_scripts: false,
            youngest: Acquire::SEEN_WITHIN,
            credentials: None,
            #[cfg(feature = "tls")]
            tls: None,
            #[cfg(feature = "tls")]
            sentinel_tls: None,
            sentinel_timeout: Duration::from_millis(300),
            sentinel_login: None,
        }
    }
}

impl RedisConfig {
    /// Sets what makes the byte streams to servers, for requests and for wake-ups. Default: [`Network`], the sockets
    /// of the operating system.
    ///
    /// ```
    /// use std::io;
    /// use quorlock_redis::{ByteStream, Connect, Connecting, Endpoint, RedisConfig};
    /// use tokio::net::TcpStream;
    ///
    /// /// Reaches every server through the local end of an SSH tunnel.
    /// #[derive(Debug)]
    /// struct Tunnel {
    ///     port: u16,
    /// }
    ///
    /// impl Connect for Tunnel {
    ///     fn connect(&self, _: &Endpoint) -> Connecting {
    ///         let here = ("127.0.0.1", self.port);
    ///         Box::pin(async move {
    ///             let stream = TcpStream::connect(here).await?;
    ///             stream.set_nodelay(true)?;
    ///             Ok(Box::new(stream) as Box<dyn ByteStream>)
    ///         })
    ///     }
    /// }
    ///
    /// let config = RedisConfig::default().network(Tunnel { port: 16379 });
    /// ```
    #[must_use]
    pub fn network(mut self, network: impl Connect) -> Self {
        self.network = Arc::new(network);
        self.has_own_network = true;
        self
    }

    /// Sets how to connect to servers whose addresses ask for TLS (`rediss://`, `valkeys://`). Default: [`Tls::new`].
    ///
    /// With these settings, an address that does not ask for TLS is refused, unless it is a Unix socket. Otherwise
    /// one missing letter in an address would send the password unencrypted.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the source of the credentials for addresses without a password. The client queries it before each
    /// login. Default: none.
    ///
    /// Use [`PasswordFile`](crate::PasswordFile) for a password that is rotated by hand.
    #[must_use]
    pub fn credentials(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(CredentialsSource(Arc::new(credentials)));
        self
    }

    /// Sets what is called with the address of a server and a doubt about it that a reply raises: that the user may not
    /// publish the release of a lock ([`Doubt::MayNotPublish`]). It is called at most once for each server and kind of
    /// channel, must not block, and must not panic. Default: none; the clients of `quorlock` report it as an event.
    #[must_use]
    pub fn on_doubt(mut self, hear: impl Fn(&str, &Doubt) + Send + Sync + 'static) -> Self {
        self.doubts = Some(DoubtListener(Arc::new(hear)));
        self
    }

    /// Whether [`RedisConfig::on_doubt`] was called.
    #[doc(hidden)]
    #[must_use]
    pub fn hears_doubts(&self) -> bool {
        self.doubts.is_some()
    }

    /// Sets the prefix of all names, which the rules in errors begin with.
    #[doc(hidden)]
    #[must_use]
    pub fn prefix(mut self, prefix: &[u8]) -> Self {
        self.prefix = prefix.to_vec();
        self
    }

    /// Sets the name of the connections.
    #[doc(hidden)]
    #[must_use]
    pub fn client_name(mut self, name: Option<String>) -> Self {
        self.client_name = name;
        self
    }

    /// Sets whether the listeners of [`Channel::Claim`](quorlock_core::message::Channel::Claim) are told of losses.
    #[doc(hidden)]
    #[must_use]
    pub fn watch_claims(mut self, watch: bool) -> Self {
        self.watches_claims = watch;
        self
    }

    /// Sets the namespace of all names ([`Name::within`](quorlock_core::name::Name::within)), with which the key of the marker begins, too.
    /// Default: empty.
    ///
    /// `LocksBuilder::namespace` of `quorlock` sets it for the transports that it makes.
    #[must_use]
    pub fn namespace(mut self, namespace: impl AsRef<[u8]>) -> Self {
        self.namespace = namespace.as_ref().to_vec();
        self
    }

    /// Returns the namespace.
    #[doc(hidden)]
    #[must_use]
    pub fn chosen_namespace(&self) -> &[u8] {
        &self.namespace
    }

    /// Whether the user has given TLS settings.
    pub(crate) fn has_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }

    /// Returns how to connect to an endpoint whose address has this scheme.
    pub(crate) fn security(&self, scheme: Scheme) -> Security {
        match scheme {
            Scheme::Plain => Security::Plain,
            #[cfg(feature = "tls")]
            Scheme::Tls => Security::Tls(self.tls.clone().unwrap_or_default()),
        }
    }

    /// Returns how to connect to a sentinel if the address of its group has this scheme.
    pub(crate) fn sentinel_security(&self, scheme: Scheme) -> Security {
        #[cfg(feature = "tls")]
        if let (Scheme::Tls, Some(tls)) = (scheme, &self.sentinel_tls) {
            return Security::Tls(tls.clone());
        }
        self.security(scheme)
    }

    /// Sets the bound on one connection attempt, from the name lookup to the end of the login. Default: 1 s.
    #[must_use]
    pub fn connect_timeout(mut self, bound: Duration) -> Self {
        self.connect_timeout = bound.min(LONGEST_SPAN);
        self
    }

    /// Returns the bound on a call.
    #[must_use]
    pub const fn call_bound(&self) -> Duration {
        match self.call_timeout {
            Some(chosen) => chosen,
            None => DEFAULT_CALL_TIMEOUT,
        }
    }

    /// Returns the bound on a call, if [`RedisConfig::call_timeout`] has set one.
    #[must_use]
    pub const fn chosen_call_bound(&self) -> Option<Duration> {
        self.call_timeout
    }

    /// Sets the bound on one call, from the wait for a connection to the reply. Default: 2 s.
    ///
    /// A connection on which a call got no reply within this time is replaced. A connection that carries requests
    /// with short leases is replaced sooner. If the server has been silent on it for a sixth of the shortest lease
    /// (but at least 25 ms, and the time of [`RedisConfig::wait`] in addition), the transport tries another
    /// connection, and replaces the silent one if the server answers only on the new one. Calls in flight on the
    /// silent connection then end.
    #[must_use]
    pub fn call_timeout(mut self, bound: Duration) -> Self {
        self.call_timeout = Some(bound.min(LONGEST_SPAN));
        self
    }

    /// Sends every request as a script. Default: `false`.
    ///
    /// By default, a free name of a server that is not part of a cluster is taken by `RESTORE`, `EXISTS`
    /// and `INCR`, and freed by `HDEL` and `PUBLISH`, which costs the server less than half of the time. A user who lacks these
    /// rights needs no setting: the first refusal on a connection is the last one. But it leaves an entry in the server's
    /// ACL log.
    #[must_use]
    pub fn only_scripts(mut self, only: bool) -> Self {
        self.only_scripts = only;
        self
    }

    /// Sets how old a connection is when it is taken for older than the tokens that acquires have seen, for tests. Default:
    /// [`Acquire::SEEN_WITHIN`](quorlock_core::message::Acquire::SEEN_WITHIN).
    #[doc(hidden)]
    #[must_use]
    pub fn youngest(mut self, age: Duration) -> Self {
        self.youngest = age;
        self
    }

    /// Sets how often the wake-up connection is probed. A connection whose other end has silently gone is detected
    /// after this interval and a call time-out. Default: 5 s.
    #[must_use]
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.ping_interval = interval.max(Duration::from_millis(10)).min(LONGEST_SPAN);
        self
    }

    /// Sets how long the wake-up connection stays open (plus or minus a ping interval) after the last waiter has
    /// left. Default: 30 s.
    #[must_use]
    pub fn linger(mut self, span: Duration) -> Self {
        self.linger = span.min(LONGEST_SPAN);
        self
    }

    /// Sets how far a grant or a renewal must be replicated or persisted before it counts. Default: it counts once
    /// executed.
    #[must_use]
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Sets the bound on one query to a sentinel, from the name lookup to the answer. After that the next
    /// sentinel is queried. Default: 300 ms. The bound is shorter if several sentinels must fit into three
    /// quarters of [`RedisConfig::connect_timeout`], so raise both for sentinels that are far away.
    #[must_use]
    pub fn sentinel_timeout(mut self, bound: Duration) -> Self {
        self.sentinel_timeout = bound.max(Duration::from_millis(1)).min(LONGEST_SPAN);
        self
    }

    /// Sets how to connect to sentinels whose certificates differ from those of the servers, if the address asks for
    /// TLS (`rediss+sentinel://`). Default: as to the servers, by [`RedisConfig::tls`].
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn sentinel_tls(mut self, tls: Tls) -> Self {
        self.sentinel_tls = Some(tls);
        self
    }

    /// Sets the login for sentinels, which have their own users and passwords. Default: none. A login in the address
    /// (`?sentinel_user=..&sentinel_password=..`) takes precedence.
    #[must_use]
    pub fn sentinel_login(mut self, user: Option<&str>, password: impl AsRef<str>) -> Self {
        let password = password.as_ref().to_owned();
        self.sentinel_login = Some(hosts::login(user.map(String::from), Some(password)));
        self
    }
}
