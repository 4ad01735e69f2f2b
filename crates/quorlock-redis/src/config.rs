//! How a transport behaves.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::RedisConnectionInfo;

use crate::address::{Scheme, hosts};
use crate::connect::{Connect, Network};
use crate::credentials::Credentials;
use crate::security::Security;
use crate::timer::LONGEST_SPAN;
#[cfg(feature = "tls")]
use crate::tls::Tls;
use crate::wait::Wait;

/// Of a call, if no other is set.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// How a [`RedisTransport`](crate::RedisTransport) behaves. The default is safe.
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
    pub(crate) connect_timeout: Duration,
    /// `None`: its user has not chosen one.
    pub(crate) call_timeout: Option<Duration>,
    pub(crate) ping_interval: Duration,
    pub(crate) linger: Duration,
    pub(crate) wait: Option<Wait>,
    /// `None`: passwords are in addresses.
    pub(crate) credentials: Option<CredentialsSource>,
    /// `None`: its user has said nothing about it.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
    /// `None`: as the servers.
    #[cfg(feature = "tls")]
    pub(crate) sentinel_tls: Option<Tls>,
    pub(crate) sentinel_timeout: Duration,
    /// For sentinels whose address has none. (Its `Debug` hides the password.)
    pub(crate) sentinel_login: Option<RedisConnectionInfo>,
}

/// Where credentials come from. It may hold some, and shows nothing.
#[derive(Clone)]
pub(crate) struct CredentialsSource(pub(crate) Arc<dyn Credentials>);

impl fmt::Debug for CredentialsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl Default for RedisConfig {
    fn default() -> Self {
        RedisConfig {
            network: Arc::new(Network),
            connect_timeout: Duration::from_secs(1),
            call_timeout: None,
            ping_interval: Duration::from_secs(5),
            linger: Duration::from_secs(30),
            wait: None,
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
    /// What makes the streams of bytes to servers, for requests as for wake-ups. Default: [`Network`], the sockets of the
    /// operating system.
    ///
    /// ```
    /// use std::io;
    /// use quorlock_redis::{ByteStream, Connect, Connecting, Endpoint, RedisConfig};
    /// use tokio::net::TcpStream;
    ///
    /// /// Every server is reached through the local end of an SSH tunnel.
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
        self
    }

    /// How servers are connected to whose addresses ask for TLS (`rediss://`, `valkeys://`). Default: [`Tls::new`].
    ///
    /// With it an address that does not ask for TLS is refused, unless it is that of a Unix socket: a letter that is missing
    /// there would send the password for all to read.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// What is asked before each login, for the addresses that have no password of their own. Default: nothing.
    ///
    /// [`PasswordFile`](crate::PasswordFile) is there for a password that is rotated by hand.
    #[must_use]
    pub fn credentials(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(CredentialsSource(Arc::new(credentials)));
        self
    }

    /// Whether settings for TLS were given.
    pub(crate) fn has_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }

    /// How an endpoint is connected to whose address has this scheme.
    pub(crate) fn security(&self, scheme: Scheme) -> Security {
        match scheme {
            Scheme::Plain => Security::Plain,
            #[cfg(feature = "tls")]
            Scheme::Tls => Security::Tls(self.tls.clone().unwrap_or_default()),
        }
    }

    /// How a sentinel is connected to, if the address of its group has this scheme.
    pub(crate) fn sentinel_security(&self, scheme: Scheme) -> Security {
        #[cfg(feature = "tls")]
        if let (Scheme::Tls, Some(tls)) = (scheme, &self.sentinel_tls) {
            return Security::Tls(tls.clone());
        }
        self.security(scheme)
    }

    /// Bounds one connection attempt, from the name lookup to the end of the login. Default: 1 s.
    #[must_use]
    pub fn connect_timeout(mut self, bound: Duration) -> Self {
        self.connect_timeout = bound.min(LONGEST_SPAN);
        self
    }

    /// The bound on a call.
    #[must_use]
    pub const fn call_bound(&self) -> Duration {
        match self.call_timeout {
            Some(chosen) => chosen,
            None => DEFAULT_CALL_TIMEOUT,
        }
    }

    /// The bound on a call, if [`RedisConfig::call_timeout`] has set one.
    #[must_use]
    pub const fn chosen_call_bound(&self) -> Option<Duration> {
        self.call_timeout
    }

    /// Bounds one call, from the wait for a connection to the reply. Default: 2 s.
    ///
    /// A connection on which a call found no reply for this time is replaced. One that carries requests with short
    /// leases is replaced sooner: when the server has been silent on it for a sixth of the shortest of them (25 ms at
    /// least, and [`RedisConfig::wait`]'s time besides) another one is tried, and takes its place if the server answers
    /// there alone. Calls that wait on the first are then ended.
    #[must_use]
    pub fn call_timeout(mut self, bound: Duration) -> Self {
        self.call_timeout = Some(bound.min(LONGEST_SPAN));
        self
    }

    /// How often the wake-up connection is probed, so that one whose other end is gone without a word is found out
    /// after this and a call time-out. Default: 5 s.
    #[must_use]
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.ping_interval = interval.max(Duration::from_millis(10)).min(LONGEST_SPAN);
        self
    }

    /// How long the wake-up connection stays open (give or take a ping interval) when no waiter listens any more.
    /// Default: 30 s.
    #[must_use]
    pub fn linger(mut self, span: Duration) -> Self {
        self.linger = span.min(LONGEST_SPAN);
        self
    }

    /// How far a grant or a renewal must have gone before it counts. Default: it has been executed, and no more.
    #[must_use]
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Bounds the question to one sentinel, from the name lookup to its answer; the next one is asked then. Default:
    /// 300 ms. It is shorter where several of them must fit into three quarters of [`RedisConfig::connect_timeout`], so that
    /// is raised with it for sentinels that are far away.
    #[must_use]
    pub fn sentinel_timeout(mut self, bound: Duration) -> Self {
        self.sentinel_timeout = bound.max(Duration::from_millis(1)).min(LONGEST_SPAN);
        self
    }

    /// How sentinels are connected to where their certificates are others than those of the servers, if the address asks for
    /// TLS (`rediss+sentinel://`). Default: as the servers, by [`RedisConfig::tls`].
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn sentinel_tls(mut self, tls: Tls) -> Self {
        self.sentinel_tls = Some(tls);
        self
    }

    /// How to log in to sentinels, which have users and passwords of their own. Default: they want none. What the address
    /// says (`?sentinel_user=..&sentinel_password=..`) goes before this.
    #[must_use]
    pub fn sentinel_login(mut self, user: Option<&str>, password: impl AsRef<str>) -> Self {
        let password = password.as_ref().to_owned();
        self.sentinel_login = Some(hosts::login(user.map(String::from), Some(password)));
        self
    }
}
