//! The part of an address that has a login and hosts: `[user[:password]@]host[:port][,host[:port]..]`.
//!
//! An error states where the mistake is but quotes nothing, because the text may be a password.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use percent_encoding::percent_decode_str;
use redis::{ProtocolVersion, RedisConnectionInfo};

use crate::connect::Endpoint;

/// The kind of the hosts of an address.
#[derive(Clone, Copy)]
pub(super) struct HostKind {
    pub(super) called: &'static str,
    /// Port of a host that states none.
    pub(super) default_port: u16,
}

/// The hosts of an address, and the login.
pub(super) struct Hosts {
    /// The hosts in the given order, without duplicates.
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) login: RedisConnectionInfo,
}

impl Hosts {
    /// Parses hosts and login.
    ///
    /// # Errors
    /// A description of the mistake, without secrets.
    pub(super) fn parse(authority: &str, kind: HostKind) -> Result<Self, String> {
        let (login, hosts) = split_login(authority);
        Ok(Hosts {
            endpoints: endpoints(hosts, kind)?,
            login: servers_login(login)?,
        })
    }

    /// Parses a login and the only host of a server.
    ///
    /// # Errors
    /// A description of the mistake, without secrets.
    pub(super) fn one(authority: &str) -> Result<(Endpoint, RedisConnectionInfo), String> {
        let (login, host) = split_login(authority);
        if host.contains(',') {
            return Err(COMMA.to_owned());
        }
        let endpoint = endpoint(host.trim(), 6379).map_err(|what| format!("it {what}"))?;
        Ok((endpoint, servers_login(login)?))
    }

    /// Returns the hosts, sorted and joined. The text is the same for two clients that list the hosts in different
    /// orders.
    pub(super) fn shown(&self) -> String {
        let shown: BTreeSet<String> = self.endpoints.iter().map(Endpoint::to_string).collect();
        let shown: Vec<String> = shown.into_iter().collect();
        shown.join(",")
    }
}

/// What a comma in the host of a server means.
pub(super) const COMMA: &str = "its host has a comma: several servers are several addresses, each with its scheme \
                                (redis://h1,redis://h2 in a list), several sentinels of one group are \
                                redis+sentinel://h1,h2,h3/name, several nodes of one cluster redis+cluster://h1,h2,h3";

fn split_login(authority: &str) -> (&str, &str) {
    authority.rsplit_once('@').unwrap_or(("", authority))
}

fn endpoints(hosts: &str, kind: HostKind) -> Result<Vec<Endpoint>, String> {
    let mut endpoints = Vec::new();
    for (number, host) in (1..).zip(hosts.split(',')) {
        let endpoint = endpoint(host.trim(), kind.default_port)
            .map_err(|what| format!("{} number {number} {what}", kind.called))?;
        if !endpoints.contains(&endpoint) {
            endpoints.push(endpoint);
        }
    }
    Ok(endpoints)
}

fn endpoint(text: &str, default_port: u16) -> Result<Endpoint, &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("has a [ without a ]")?;
            let host: Ipv6Addr = host
                .parse()
                .map_err(|_| "has something between [ and ] that is no IPv6 address")?;
            if host.is_unspecified() {
                return Err("is the address of no host in particular (::)");
            }
            let port = match port.strip_prefix(':') {
                Some(port) => Some(port),
                None if port.is_empty() => None,
                None => return Err("has something behind ] that is no port"),
            };
            (host.to_string(), port)
        }
        None => {
            let (host, port) = match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            };
            if port.is_some_and(|port| port.contains(':')) {
                return Err("has two colons: write an IPv6 address in brackets, as [::1]:6379");
            }
            let is_a_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            match host {
                "" => return Err("has no host"),
                host if !host.chars().all(is_a_name) => {
                    return Err(
                        "has a character that no host name has (in a password, write %40 for @ and %2F for /)",
                    );
                }
                host if host.parse() == Ok(Ipv4Addr::UNSPECIFIED) => {
                    return Err("is the address of no host in particular (0.0.0.0)");
                }
                host => (host.to_owned(), port),
            }
        }
    };
    let port = match port {
        None => default_port,
        // Rust parses `+7` as a number.
        Some(port) if port.is_empty() || !port.chars().all(|c| c.is_ascii_digit()) => {
            return Err("has a port that is no number from 1 to 65535");
        }
        Some(port) => match port.parse() {
            Ok(0) => return Err("has port 0: ports are numbers from 1 to 65535"),
            Ok(number) => number,
            Err(_) => return Err("has a port above 65535"),
        },
    };
    Ok(Endpoint::Tcp { host, port })
}

fn servers_login(text: &str) -> Result<RedisConnectionInfo, String> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (text, None),
    };
    let user = decoded(user, "the user")?;
    let password = password
        .map(|password| decoded(password, "the password"))
        .transpose()?;
    Ok(login(Some(user), password))
}

/// Returns a login with RESP2, which both connections to a server speak.
pub(crate) fn login(user: Option<String>, password: Option<String>) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP2);
    if let Some(user) = user.filter(|user| !user.is_empty()) {
        login = login.set_username(user);
    }
    if let Some(password) = password {
        login = login.set_password(password);
    }
    login
}

/// Reads percent-encoding. It is strict: in a password with a % that is not encoded, a code would be read by chance.
pub(super) fn decoded(text: &str, what: &str) -> Result<String, String> {
    let is_code = |code: &str| code.len() == 2 && code.chars().all(|c| c.is_ascii_hexdigit());
    let mut codes = text
        .match_indices('%')
        .map(|(at, _)| text.get(at + 1..at + 3));
    if !codes.all(|code| code.is_some_and(is_code)) {
        return Err(format!(
            "{what} has a % without two hexadecimal digits: percent-encode special characters, and write %25 for %"
        ));
    }
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded =
        decoded.map_err(|_| format!("{what} is no UTF-8 when its percent-encoding is read"))?;
    Ok(decoded.into_owned())
}
