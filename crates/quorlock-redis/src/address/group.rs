//! The address of a Sentinel group: its sentinels, and the name of its primary.

use redis::RedisConnectionInfo;

use super::hosts::{self, Hosts, decoded, login};
use super::{AddressError, Scheme};
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
    /// Whether an address is meant for a Sentinel group.
    pub(crate) fn is_meant(address: &str) -> bool {
        address
            .split_once("://")
            .is_some_and(|(scheme, _)| scheme.contains("sentinel"))
    }

    /// Parses an address. The error states where the mistake is but quotes nothing, because the text may be a password.
    pub(crate) fn parse(address: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = address.split_once("://").unwrap_or((address, ""));
        let scheme = match scheme {
            "redis+sentinel" | "valkey+sentinel" => Scheme::Plain,
            "rediss+sentinel" | "valkeys+sentinel" => Scheme::tls()?,
            _ => return Err(malformed("it begins with a scheme that is not known")),
        };
        if rest.contains('#') {
            return Err(malformed("it has a # (in a password, write %23)"));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let hosts = Hosts::parse(authority, SENTINEL).map_err(malformed)?;
        let (name, db) = name_and_db(path)?;
        Ok(GroupAddress {
            shown: format!("{}/{name}/{db}", hosts.shown()),
            sentinel_login: sentinel_login(query)?,
            scheme,
            name,
            sentinels: hosts.endpoints,
            login: hosts.login.set_db(db),
        })
    }
}

fn malformed(reason: impl Into<String>) -> AddressError {
    AddressError::Group {
        reason: reason.into(),
    }
}

fn name_and_db(path: &str) -> Result<(String, i64), AddressError> {
    let mut parts = path.split('/');
    let name =
        decoded(parts.next().unwrap_or_default(), "the name of the primary").map_err(malformed)?;
    if name.is_empty() {
        return Err(malformed(
            "it lacks the name of the primary, which the sentinels know it by (`sentinel monitor NAME ..`)",
        ));
    }
    let db = match parts.next() {
        None | Some("") => 0,
        Some(db) => match db.parse() {
            Ok(db) if 0 <= db => db,
            _ => return Err(malformed("its database is no number")),
        },
    };
    match parts.next() {
        None => Ok((name, db)),
        Some(_) => Err(malformed(
            "it has something behind the database (in a password, write %2F for /)",
        )),
    }
}

fn sentinel_login(query: &str) -> Result<Option<RedisConnectionInfo>, AddressError> {
    let (mut user, mut password) = (None, None);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("sentinel_user", value)) => {
                user = Some(decoded(value, "sentinel_user").map_err(malformed)?);
            }
            Some(("sentinel_password", value)) => {
                password = Some(decoded(value, "sentinel_password").map_err(malformed)?);
            }
            _ => {
                return Err(malformed(
                    "it has an unknown parameter after the ?: there are sentinel_user=.. and sentinel_password=..",
                ));
            }
        }
    }
    match (user, password) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(malformed("it has a sentinel_user and no sentinel_password")),
        (user, password) => Ok(Some(login(user, password))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str) -> GroupAddress {
        GroupAddress::parse(address).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

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
            ("redis+sentinel://a:0/m", "a port that is no number"),
            ("redis+sentinel://a:+7/m", "a port that is no number"),
            ("redis+sentinel://a:65536/m", "a port that is no number"),
            (
                "redis+sentinel://u:s3cret/x@a/m",
                "a port that is no number",
            ),
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
            ("redis+sentinel://a/m#s3cret", "it has a #"),
            (
                "redis+sentinel://a/m?s3cret=1",
                "it has an unknown parameter",
            ),
            (
                "redis+sentinel://a/m?password=s3cret",
                "it has an unknown parameter",
            ),
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
            (
                "redis-sentinel://u:s3cret@a/m",
                "a scheme that is not known",
            ),
            ("sentinel://a/m", "a scheme that is not known"),
        ] {
            assert!(GroupAddress::is_meant(address));
            let error = GroupAddress::parse(address).err().expect(address);
            let text = format!("{error} {error:?}");
            assert!(text.contains(wrong), "{address}: {text}");
            assert!(!text.contains("s3cret"), "{text}");
            assert!(text.contains("write redis+sentinel://"), "{text}");
        }
        for address in ["redis://h", "unix:///sentinel", "sentinel", "rediss://h/"] {
            assert!(!GroupAddress::is_meant(address));
        }
    }
}
