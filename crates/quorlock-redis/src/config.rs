//! How a transport behaves.

use std::sync::Arc;
use std::time::Duration;

use crate::connect::{Connect, Network};
use crate::timer::LONGEST_SPAN;
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
    /// A connection on which a call found no reply for so long is replaced. One that carries requests with short
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

    /// How long the wake-up connection stays open (give or take a ping interval) when nobody listens any more.
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
}
