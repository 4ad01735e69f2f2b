//! The part of an address that lists several hosts and a login: `[user[:password]@]host[:port][,host[:port]..]`.
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
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (login, hosts),
            None => ("", authority),
        };
        Ok(Hosts {
            endpoints: endpoints(hosts, kind)?,
            login: servers_login(login)?,
        })
    }

    /// Returns the hosts, sorted and joined. The text is the same for two clients that list the hosts in different
    /// orders.
    pub(super) fn shown(&self) -> String {
        let shown: BTreeSet<String> = self.endpoints.iter().map(Endpoint::to_string).collect();
        let shown: Vec<String> = shown.into_iter().collect();
        shown.join(",")
    }
}

fn endpoints(hosts: &str, kind: HostKind) -> Result<Vec<Endpoint>, String> {
    let mut endpoints = Vec::new();
    for (number, host) in (1..).zip(hosts.split(',')) {
        let endpoint = endpoint(host.trim(), kind)
            .map_err(|what| format!("{} number {number} {what}", kind.called))?;
        if !endpoints.contains(&endpoint) {
            endpoints.push(endpoint);
        }
    }
    Ok(endpoints)
}

fn endpoint(text: &str, kind: HostKind) -> Result<Endpoint, &'static str> {
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
        None => kind.default_port,
        Some(port) => match port.parse() {
            // Rust parses `+7` as a number.
            Ok(number) if number != 0 && !port.starts_with('+') => number,
            _ => return Err("has a port that is no number from 1 to 65535"),
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

pub(super) fn decoded(text: &str, what: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| format!("{what} is no UTF-8"))?;
    Ok(decoded.into_owned())
}
