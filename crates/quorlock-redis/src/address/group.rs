//! The address of a Sentinel group: its sentinels, and the name of its primary.

use redis::RedisConnectionInfo;

use super::Scheme;
use super::hosts::{self, Hosts, decoded, login};
use super::parts::{Fault, Parts, database};
use crate::connect::Endpoint;

/// The hosts of the address are sentinels.
const SENTINEL: hosts::HostKind = hosts::HostKind {
    called: "sentinel",
    default_port: 26379,
};

/// A parsed address of a Sentinel group.
pub(crate) struct GroupAddress {
    /// Name of the primary, as the sentinels know it.
    pub(crate) name: String,
    /// The sentinels, in the order in which they are queried.
    pub(crate) sentinels: Vec<Endpoint>,
    /// The protocol of servers and sentinels.
    pub(crate) scheme: Scheme,
    /// Login for the servers of the group.
    pub(crate) login: RedisConnectionInfo,
    /// Login for the sentinels, if the address has one.
    pub(crate) sentinel_login: Option<RedisConnectionInfo>,
    /// The address without credentials, with the sentinels sorted. Two clients that list the same sentinels in
    /// different orders then have the same canonical order.
    pub(crate) shown: String,
}

impl GroupAddress {
    /// Reads the parts of an address.
    pub(super) fn of(scheme: Scheme, parts: &Parts<'_>) -> Result<Self, Fault> {
        let hosts = Hosts::parse(parts.authority, SENTINEL)?;
        let [db, user, password] =
            parts.parameters(["db", "sentinel_user", "sentinel_password"])?;
        let (name, path_db) = match parts.path.as_slice() {
            [] => ("", None),
            [name] => (*name, None),
            [name, db] => (*name, Some(*db)),
            _ => {
                let part = "something behind the database (in a password, write %2F for /)";
                return Err(Fault::Unknown(part.to_owned()));
            }
        };
        let name = name_of_primary(name)?;
        let db = database(path_db, db.as_deref())?;
        Ok(GroupAddress {
            shown: format!("{}/{name}/{db}", hosts.shown()),
            sentinel_login: match (user, password) {
                (None, None) => None,
                (Some(_), None) => {
                    return Err("it has a sentinel_user and no sentinel_password".into());
                }
                (user, password) => Some(login(user, password)),
            },
            scheme,
            name,
            sentinels: hosts.endpoints,
            login: hosts.login.set_db(db),
        })
    }
}

fn name_of_primary(text: &str) -> Result<String, Fault> {
    // A / in a password would otherwise make the host a port, and its end the name.
    if text.contains('@') {
        return Err("the name of the primary has an @: write %40 for it".into());
    }
    let name = decoded(text, "the name of the primary")?;
    if name.is_empty() {
        return Err(
            "it lacks the name of the primary, which the sentinels know it by (`sentinel monitor NAME ..`)".into(),
        );
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::tests::{error, group as parse};

    #[test]
    fn an_address_names_sentinels_in_order_and_the_primary() {
        let group = parse("redis+sentinel://bob:s3c%40ret@h2:7000,h1,[::1]:26380/mymaster/3");
        let shown: Vec<_> = group.sentinels.iter().map(Endpoint::to_string).collect();
        assert_eq!(shown, ["h2:7000", "h1:26379", "[::1]:26380"]);
        assert_eq!((group.name.as_str(), group.login.db()), ("mymaster", 3));
        assert_eq!(group.login.username(), Some("bob"));
        assert_eq!(group.login.password(), Some("s3c@ret"));
        assert!(group.sentinel_login.is_none());
        assert_eq!(group.shown, "[::1]:26380,h1:26379,h2:7000/mymaster/3");
    }

    #[test]
    fn sentinels_have_a_login_of_their_own() {
        let group =
            parse("valkey+sentinel://:data@h/m?sentinel_user=watch&sentinel_password=p%2Fw%3F%3D");
        let login = group.sentinel_login.unwrap();
        assert_eq!(login.username(), Some("watch"));
        assert_eq!(login.password(), Some("p/w?="));
        assert_eq!(group.login.password(), Some("data"));
        let group = parse("redis+sentinel://h/m/?sentinel_password=p");
        let login = group.sentinel_login.unwrap();
        assert_eq!((login.username(), login.password()), (None, Some("p")));
        assert_eq!(group.login.password(), None);
    }

    #[test]
    fn the_order_of_sentinels_does_not_change_what_is_shown() {
        let shown = parse("redis+sentinel://a,b,a:26379/m").shown;
        assert_eq!(shown, parse("valkey+sentinel://b:26379,a/m/0").shown);
        assert_eq!(shown, "a:26379,b:26379/m/0");
    }

    #[test]
    fn a_malformed_address_is_told_what_is_wrong_without_a_secret() {
        for (address, wrong) in [
            ("redis+sentinel://", "sentinel number 1 has no host"),
            ("redis+sentinel:///m", "sentinel number 1 has no host"),
            (
                "redis+sentinel://u:s3cret@/m",
                "sentinel number 1 has no host",
            ),
            ("redis+sentinel://a,,b/m", "sentinel number 2 has no host"),
            ("redis+sentinel://a,b,/m", "sentinel number 3 has no host"),
            ("redis+sentinel://a:1,b:/m", "sentinel number 2 has a port"),
            ("redis+sentinel://a:0/m", "port 0"),
            ("redis+sentinel://a:+7/m", "a port that is no number"),
            ("redis+sentinel://a:65536/m", "a port above 65535"),
            ("redis+sentinel://u:s3cret/x@a/m", "%2F for /"),
            ("redis+sentinel://::1:26379/m", "in brackets"),
            ("redis+sentinel://[::1/m", "a [ without a ]"),
            ("redis+sentinel://[s3cret]/m", "no IPv6 address"),
            ("redis+sentinel://[::1]7/m", "behind ]"),
            ("redis+sentinel://[::]/m", "no host in particular"),
            ("redis+sentinel://0.0.0.0/m", "no host in particular"),
            ("redis+sentinel://a b/m", "no host name has"),
            ("redis+sentinel://u:p@s3cret@a!/m", "no host name has"),
            ("redis+sentinel://a,b", "lacks the name of the primary"),
            ("redis+sentinel://a,b/", "lacks the name of the primary"),
            ("redis+sentinel://a//1", "lacks the name of the primary"),
            ("redis+sentinel://a/m/s3cret", "its database is no number"),
            ("redis+sentinel://a/m/-1", "its database is no number"),
            ("redis+sentinel://a/m/1/s3cret", "behind the database"),
            ("redis+sentinel://a/m#s3cret", "has a fragment"),
            ("redis+sentinel://a/m?s3cret=1", "has a parameter after"),
            (
                "redis+sentinel://a/m?password=s3cret",
                "a parameter password",
            ),
            ("redis+sentinel://a/m/1?db=2", "two databases, 1 and 2"),
            ("redis+sentinel://a/m@x", "%40 for"),
            (
                "redis+sentinel://a/m?sentinel_user=u",
                "no sentinel_password",
            ),
            (
                "redis+sentinel://u:%FFs3cret@a/m",
                "the password is no UTF-8",
            ),
            (
                "redis+sentinel://a/%FF",
                "the name of the primary is no UTF-8",
            ),
        ] {
            let text = error(address);
            assert!(text.contains(wrong), "{address}: {text}");
            assert!(!text.contains("s3cret"), "{text}");
            assert!(text.contains("write redis+sentinel://"), "{text}");
        }
    }
}
