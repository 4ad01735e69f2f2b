//! The network.

use std::io;

use quorlock::redis::{ByteStream, Connect, Connecting, Endpoint};
use turmoil::net::TcpStream;

/// Connects to servers through turmoil's sockets. Hosts are found by their names in the simulation.
#[derive(Clone, Copy, Default, Debug)]
pub struct TurmoilNetwork;

impl Connect for TurmoilNetwork {
    fn connect(&self, to: &Endpoint) -> Connecting {
        let to = to.clone();
        Box::pin(async move {
            let Endpoint::Tcp { host, port } = to else {
                let why = "turmoil has no Unix sockets: use redis://host";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            };
            let stream = TcpStream::connect((host, port)).await?;
            Ok(Box::new(stream) as Box<dyn ByteStream>)
        })
    }
}
