//! The address of a cluster: some of its nodes.

use redis::RedisConnectionInfo;

use super::Scheme;
use super::hosts::{self, Hosts};
use super::parts::{Fault, Parts, database};
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
    /// Reads the parts of an address.
    pub(super) fn of(scheme: Scheme, parts: &Parts<'_>) -> Result<Self, Fault> {
        let hosts = Hosts::parse(parts.authority, NODE)?;
        let [db] = parts.parameters(["db"])?;
        let db = match parts.path.as_slice() {
            [] => database(None, db.as_deref())?,
            [path] => database(Some(path), db.as_deref())?,
            _ => {
                let part = "something behind the nodes (in a password, write %2F for /)";
                return Err(Fault::Unknown(part.to_owned()));
            }
        };
        if db != 0 {
            return Err("it names a database, and a cluster has none but 0: leave the number out, and use a key prefix \
                        to keep applications apart"
                .into());
        }
        Ok(ClusterAddress {
            shown: format!("{}/cluster", hosts.shown()),
            seeds: hosts.endpoints,
            login: hosts.login,
            scheme,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::tests::{cluster as parse, error};

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
            ("redis+cluster://a:65536", "a port above 65535"),
            ("redis+cluster://u:s3cret/x@a", "%2F for /"),
            ("redis+cluster://::1:7000", "in brackets"),
            ("redis+cluster://0.0.0.0", "no host in particular"),
            ("redis+cluster://u:p@s3cret@a!", "no host name has"),
            ("redis+cluster://a,b/1", "a cluster has none but 0"),
            ("redis+cluster://a/16", "key prefix"),
            ("redis+cluster://a/s3cret", "its database is no number"),
            ("redis+cluster://a/0/s3cret", "behind the nodes"),
            ("redis+cluster://a/-1", "its database is no number"),
            ("redis+cluster://a#s3cret", "has a fragment"),
            ("redis+cluster://a?s3cret=1", "has a parameter after"),
            ("redis+cluster://a?db=1", "a cluster has none but 0"),
            ("redis+cluster://a/0?timeout=1", "a parameter timeout"),
            ("redis+cluster://u:%FFs3cret@a", "the password is no UTF-8"),
        ] {
            let text = error(address);
            assert!(text.contains(wrong), "{address}: {text}");
            assert!(!text.contains("s3cret"), "{text}");
            assert!(text.contains("write redis+cluster://"), "{text}");
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
