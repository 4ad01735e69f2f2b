//! Addresses of servers, of Sentinel groups and of clusters, and the logins in them.

pub(crate) mod cluster;
mod error;
pub(crate) mod group;
pub(crate) mod hosts;
#[cfg(feature = "redis-connections")]
mod of_client;
mod parts;
mod quoted;
mod server;
#[cfg(test)]
pub(crate) mod tests;

pub use self::error::{AddressError, AddressProblem};
pub(crate) use self::server::Address;

use self::cluster::ClusterAddress;
use self::group::GroupAddress;
use self::parts::Parts;

/// A parsed address of any kind.
pub(crate) enum AnyAddress {
    Server(Address),
    Group(GroupAddress),
    Cluster(ClusterAddress),
}

/// The kind of an address, which its scheme states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// One server at a host.
    Server,
    /// One server at a socket of this machine.
    Socket,
    /// The primary of a Sentinel group.
    Group,
    /// A Redis Cluster.
    Cluster,
}

impl Kind {
    /// How an address of this kind is written.
    fn form(self) -> &'static str {
        match self {
            Kind::Server => "redis://[user[:password]@]host[:port][/db]",
            Kind::Socket => "unix:///path[?db=1&user=..&pass=..]",
            Kind::Group => {
                "redis+sentinel://[user[:password]@]host[:port][,host[:port]..]/name[/db]\
                 [?sentinel_user=..&sentinel_password=..]"
            }
            Kind::Cluster => "redis+cluster://[user[:password]@]host[:port][,host[:port]..]",
        }
    }
}

/// The protocol at an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scheme {
    /// Redis, unencrypted.
    Plain,
    /// Redis under TLS.
    #[cfg(feature = "tls")]
    Tls,
}

impl Scheme {
    /// Returns the scheme of an address that asks for TLS.
    #[cfg(feature = "tls")]
    fn tls() -> Result<Scheme, AddressProblem> {
        Ok(Scheme::Tls)
    }

    /// Fails, because the feature `tls` is off.
    #[cfg(not(feature = "tls"))]
    fn tls() -> Result<Scheme, AddressProblem> {
        Err(AddressProblem::Tls)
    }
}

impl AnyAddress {
    /// Parses an address. Every part of it has a meaning, or is an error.
    pub(crate) fn parse(address: &str) -> Result<Self, AddressError> {
        let address = address.trim();
        Self::of(address).map_err(|problem| AddressError::of(address, problem))
    }

    fn of(address: &str) -> Result<Self, AddressProblem> {
        let (words, rest) = split_scheme(address).ok_or(AddressProblem::NoScheme)?;
        let (kind, scheme) = match words.to_ascii_lowercase().as_str() {
            "redis" | "valkey" => (Kind::Server, Scheme::Plain),
            "rediss" | "valkeys" => (Kind::Server, Scheme::tls()?),
            "unix" | "redis+unix" | "valkey+unix" => (Kind::Socket, Scheme::Plain),
            "redis+sentinel" | "valkey+sentinel" => (Kind::Group, Scheme::Plain),
            "rediss+sentinel" | "valkeys+sentinel" => (Kind::Group, Scheme::tls()?),
            "redis+cluster" | "valkey+cluster" => (Kind::Cluster, Scheme::Plain),
            "rediss+cluster" | "valkeys+cluster" => (Kind::Cluster, Scheme::tls()?),
            _ => return Err(AddressProblem::UnknownScheme),
        };
        if scheme != Scheme::Plain && rest.ends_with("#insecure") {
            return Err(AddressProblem::Insecure);
        }
        let parsed = Parts::split(rest).and_then(|parts| match kind {
            Kind::Server => Address::at_host(scheme, &parts).map(AnyAddress::Server),
            Kind::Socket => Address::at_socket(&parts).map(AnyAddress::Server),
            Kind::Group => GroupAddress::of(scheme, &parts).map(AnyAddress::Group),
            Kind::Cluster => ClusterAddress::of(scheme, &parts).map(AnyAddress::Cluster),
        });
        parsed.map_err(|fault| fault.of(kind, rest))
    }

    /// Whether the bytes cross a network unencrypted.
    pub(crate) fn is_for_all_to_read(&self) -> bool {
        match self {
            AnyAddress::Server(server) => server.is_for_all_to_read(),
            AnyAddress::Group(group) => group.scheme == Scheme::Plain,
            AnyAddress::Cluster(cluster) => cluster.scheme == Scheme::Plain,
        }
    }
}

/// Splits off the scheme. The addresses of sockets that logs show lack the two slashes: `unix:/path`.
fn split_scheme(address: &str) -> Option<(&str, &str)> {
    if let Some(path) = address.strip_prefix("unix:")
        && path.starts_with('/')
        && !path.starts_with("//")
    {
        return Some(("unix", path));
    }
    let (scheme, rest) = address.split_once("://")?;
    quoted::is_scheme(scheme).then_some((scheme, rest))
}
