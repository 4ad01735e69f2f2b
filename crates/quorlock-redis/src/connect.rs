//! How byte streams to servers are made.

pub(crate) mod race;

use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A stream of bytes to and from a server.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for S {}

/// A connection attempt in progress. Dropping it ends the attempt.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn ByteStream>>> + Send>>;

/// The address that a server listens on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Endpoint {
    /// A TCP port.
    Tcp {
        /// Host name, or IP address without brackets.
        host: String,
        /// Port number.
        port: u16,
    },
    /// A Unix socket.
    Unix {
        /// Path of the socket.
        path: PathBuf,
    },
}

impl fmt::Display for Endpoint {
    /// `host:port`, `[::1]:port`, or the path of the socket.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Endpoint::Tcp { host, port } => write!(f, "{host}:{port}"),
            Endpoint::Unix { path } => write!(f, "{}", path.display()),
        }
    }
}

/// Makes byte streams to servers.
///
/// The default is [`Network`]. Implement the trait to carry the bytes another way: through a tunnel or a proxy, with
/// encryption, or over a network that fails on purpose. Pass the implementation to
/// [`RedisConfig::network`](crate::RedisConfig::network).
///
/// Each server has up to two streams at a time, for requests and for wake-ups. A stream that breaks, or on which
/// nothing arrives for too long, is dropped, and another one is requested. Its bytes are the Redis protocol from the
/// first to the last, including the login. A stream must not hold bytes back (or must send them when it is flushed),
/// and must report its end by an error or an end of file.
pub trait Connect: Send + Sync + fmt::Debug + 'static {
    /// Connects to an endpoint. The caller bounds the attempt in time and drops it
    /// ([`RedisConfig::connect_timeout`](crate::RedisConfig::connect_timeout)).
    fn connect(&self, to: &Endpoint) -> Connecting;
}

/// The network of the operating system: TCP without delay (`TCP_NODELAY`) and with keep-alive, and Unix sockets.
///
/// The addresses of a host name are raced (RFC 8305). The two address families alternate; the next address is tried
/// when one has failed, or in parallel after 250 ms. The first connection that succeeds is used.
#[derive(Clone, Copy, Default, Debug)]
pub struct Network;

impl Connect for Network {
    fn connect(&self, to: &Endpoint) -> Connecting {
        match to.clone() {
            Endpoint::Tcp { host, port } => Box::pin(async move {
                let addresses = tokio::net::lookup_host((host, port)).await?;
                let addresses = race::by_turns(addresses);
                let stream = race::connected(addresses, TcpStream::connect).await?;
                tune(&stream)?;
                Ok(Box::new(stream) as Box<dyn ByteStream>)
            }),
            #[cfg(unix)]
            Endpoint::Unix { path } => Box::pin(async move {
                let stream = tokio::net::UnixStream::connect(path).await?;
                Ok(Box::new(stream) as Box<dyn ByteStream>)
            }),
            #[cfg(not(unix))]
            Endpoint::Unix { .. } => {
                Box::pin(async { Err(io::Error::from(io::ErrorKind::Unsupported)) })
            }
        }
    }
}

/// How long a connection is idle before the system probes its other end: shorter than the time for which firewalls
/// and address translators remember an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long the system waits for an answer before it probes again.
const KEEP_ALIVE_AGAIN: Duration = Duration::from_secs(5);

fn tune(stream: &TcpStream) -> io::Result<()> {
    // A small request must not wait for the acknowledgement of the previous one.
    stream.set_nodelay(true)?;
    // A firewall forgets a connection that has sent nothing for an hour. Without keep-alive, the client would learn
    // of that only from its next request, which is lost.
    let keep_alive = TcpKeepalive::new()
        .with_time(KEEP_ALIVE)
        .with_interval(KEEP_ALIVE_AGAIN);
    SockRef::from(stream).set_tcp_keepalive(&keep_alive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_idle_connection_is_kept_alive() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap());
        let stream = stream.await.unwrap();
        assert!(!SockRef::from(&stream).keepalive().unwrap());
        tune(&stream).unwrap();
        assert!(stream.nodelay().unwrap());
        assert!(SockRef::from(&stream).keepalive().unwrap());
    }
}
