//! How a stream of bytes to a server comes about.

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

/// Bytes to and from a server.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for S {}

/// A connection attempt under way. Dropping it ends it.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn ByteStream>>> + Send>>;

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Endpoint {
    /// On a TCP port.
    Tcp {
        /// Host name or IP address (without brackets).
        host: String,
        /// Port.
        port: u16,
    },
    /// On a Unix socket.
    Unix {
        /// Its path.
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
/// The default is [`Network`]. One of your own carries the bytes another way: through a tunnel or a proxy, with
/// encryption, over a network that fails on purpose. It is given by
/// [`RedisConfig::network`](crate::RedisConfig::network).
///
/// Each server has up to two streams at a time, for requests and for wake-ups. One that breaks, or on which nothing is
/// heard for too long, is dropped and another one asked for. Its bytes are the Redis protocol from the first to the
/// last, the login included: a stream keeps nothing back to send it later (or flushes it when it is asked to), and one that has
/// ended says so by an error or an end of file.
pub trait Connect: Send + Sync + fmt::Debug + 'static {
    /// Connects. The attempt is bounded in time by the caller, who drops it
    /// ([`RedisConfig::connect_timeout`](crate::RedisConfig::connect_timeout)).
    fn connect(&self, to: &Endpoint) -> Connecting;
}

/// The network of the operating system: TCP without delay (`TCP_NODELAY`) and with keep-alive, and Unix sockets.
///
/// The addresses of a host name are raced (RFC 8305): the two families by turns, the next one when one has failed, and
/// beside it after 250 ms. The first that is connected is used.
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

/// How long a connection is idle before the system asks whether its other end is there: shorter than firewalls and
/// address translators remember one.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long it waits for an answer before it asks again.
const KEEP_ALIVE_AGAIN: Duration = Duration::from_secs(5);

fn tune(stream: &TcpStream) -> io::Result<()> {
    // Small requests must not wait for the acknowledgement of the one before.
    stream.set_nodelay(true)?;
    // A client that asks for no lock for an hour would find out by its next request, which is lost then, that the
    // connection has been forgotten on the way.
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
