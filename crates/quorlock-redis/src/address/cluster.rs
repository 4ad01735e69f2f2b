//! The address of a cluster: some of its nodes.

use redis::RedisConnectionInfo;

use super::hosts::{self, Hosts};
use super::{AddressError, Scheme};
use crate::connect::Endpoint;

/// The hosts of the address are nodes.
const NODE: hosts::HostKind = hosts::HostKind {
    called: "node",
    default_port: 6379,
};

/// A parsed address of a cluster.
pub(crate) struct ClusterAddress {
    /// The nodes that are queried first for the slot map, in this order.
    pub(crate) seeds: Vec<Endpoint>,
    /// The protocol of all nodes.
    pub(crate) scheme: Scheme,
    /// Login for all nodes.
    pub(crate) login: RedisConnectionInfo,
    /// The address without credentials, with the nodes sorted.
    pub(crate) shown: String,
}

impl ClusterAddress {
    /// Whether an address is meant for a cluster.
    pub(crate) fn is_meant(address: &str) -> bool {
        address
            .split_once("://")
            .is_some_and(|(scheme, _)| scheme.contains("cluster"))
    }

    /// Parses an address. The error states where the mistake is but quotes nothing, because the text may be a password.
    pub(crate) fn parse(address: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = address.split_once("://").unwrap_or((address, ""));
        let scheme = match scheme {
            "redis+cluster" | "valkey+cluster" => Scheme::Plain,
            "rediss+cluster" | "valkeys+cluster" => Scheme::tls()?,
            _ => return Err(malformed("it begins with a scheme that is not known")),
        };
        if rest.contains('#') {
            return Err(malformed("it has a # (in a password, write %23)"));
        }
        if rest.contains('?') {
            return Err(malformed(
                "it has a ?, and there are no parameters (in a password, write %3F)",
            ));
        }
        let (authority, db) = rest.split_once('/').unwrap_or((rest, ""));
        let hosts = Hosts::parse(authority, NODE).map_err(malformed)?;
        match db {
            "" | "0" => {}
            db if db.chars().all(|c| c.is_ascii_digit()) => {
                return Err(malformed(
                    "it names a database, and a cluster has none but 0: leave the number out, and use a key prefix to keep \
                     applications apart",
                ));
            }
            _ => {
                return Err(malformed(
                    "it has something behind the nodes (in a password, write %2F for /)",
                ));
            }
        }
        Ok(ClusterAddress {
            shown: format!("{}/cluster", hosts.shown()),
            seeds: hosts.endpoints,
            login: hosts.login,
            scheme,
        })
    }
}

fn malformed(reason: impl Into<String>) -> AddressError {
    AddressError::Cluster {
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str) -> ClusterAddress {
        ClusterAddress::parse(address).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    #[test]
    fn an_address_names_nodes_in_order_and_one_login() {
        let cluster = parse("redis+cluster://bob:s3c%40ret@h2:7000,h1,[::1]:7001/0");
        let seeds: Vec<_> = cluster.seeds.iter().map(Endpoint::to_string).collect();
        assert_eq!(seeds, ["h2:7000", "h1:6379", "[::1]:7001"]);
        assert_eq!(cluster.login.username(), Some("bob"));
        assert_eq!(cluster.login.password(), Some("s3c@ret"));
        assert_eq!(cluster.shown, "[::1]:7001,h1:6379,h2:7000/cluster");
        assert_eq!(
            parse("valkey+cluster://h1,h2:7000,[::1]:7001").shown,
            cluster.shown
        );
        assert_eq!(parse("redis+cluster://h/").login.password(), None);
    }

    #[test]
    fn a_malformed_address_is_told_what_is_wrong_without_a_secret() {
        for (address, wrong) in [
            ("redis+cluster://", "node number 1 has no host"),
            ("redis+cluster://u:s3cret@", "node number 1 has no host"),
            ("redis+cluster://a,,b", "node number 2 has no host"),
            ("redis+cluster://a:1,b:/", "node number 2 has a port"),
            ("redis+cluster://a:65536", "a port that is no number"),
            ("redis+cluster://u:s3cret/x@a", "a port that is no number"),
            ("redis+cluster://::1:7000", "in brackets"),
            ("redis+cluster://0.0.0.0", "no host in particular"),
            ("redis+cluster://u:p@s3cret@a!", "no host name has"),
            ("redis+cluster://a,b/1", "a cluster has none but 0"),
            ("redis+cluster://a/16", "key prefix"),
            ("redis+cluster://a/s3cret", "behind the nodes"),
            ("redis+cluster://a/0/s3cret", "behind the nodes"),
            ("redis+cluster://a/-1", "behind the nodes"),
            ("redis+cluster://a#s3cret", "it has a #"),
            ("redis+cluster://a?s3cret=1", "it has a ?"),
            ("redis+cluster://u:%FFs3cret@a", "the password is no UTF-8"),
            ("redis-cluster://u:s3cret@a", "a scheme that is not known"),
            ("cluster://a", "a scheme that is not known"),
        ] {
            assert!(ClusterAddress::is_meant(address));
            let error = ClusterAddress::parse(address).err().expect(address);
            let text = format!("{error} {error:?}");
            assert!(text.contains(wrong), "{address}: {text}");
            assert!(!text.contains("s3cret"), "{text}");
            assert!(text.contains("write redis+cluster://"), "{text}");
        }
        for address in [
            "redis://cluster",
            "unix:///cluster",
            "redis+sentinel://h/cluster",
        ] {
            assert!(!ClusterAddress::is_meant(address));
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn an_address_says_whether_it_wants_tls() {
        for address in ["rediss+cluster://a", "valkeys+cluster://a"] {
            assert!(parse(address).scheme == Scheme::Tls, "{address}");
        }
    }
}
