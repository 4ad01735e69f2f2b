//! The address of a store in etcd: its members, its user, and where its keys are.

use std::net::Ipv6Addr;

use percent_encoding::percent_decode_str;

use crate::address::{AddressError, ETCD};
use crate::database::{ENCODE, check_address};

/// The port of an address that names none.
const PORT: u16 = 2379;

/// Where the keys of an address are that does not say it.
const FOLDER: &str = "quorlock";

/// Where the records are.
pub(super) struct Place {
    /// The members of the cluster, each as `host:port`, in an order that does not depend on how the address lists them.
    pub(super) members: Vec<String>,
    /// What the keys begin with. It ends with a slash.
    pub(super) prefix: Vec<u8>,
    /// The address without secrets.
    pub(super) shown: String,
}

/// The user of an address, and the password.
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

fn wrong(problem: impl Into<String>) -> AddressError {
    AddressError::new(ETCD, problem)
}

/// Parses an address, and nothing that would mean nothing.
pub(super) fn parse(address: &str) -> Result<(Place, Option<Login>), AddressError> {
    check_address(address, &["etcd://"], ETCD)?;
    let rest = address.trim_start_matches("etcd://");
    let (login, rest) = match rest.split_once('@') {
        Some((login, rest)) => (Some(login_of(login)?), rest),
        None => (None, rest),
    };
    if rest.contains(['?', '#']) {
        return Err(wrong(
            "has a ? or a #, which means nothing here: write %3F or %23 in a prefix",
        ));
    }
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    let members = hosts.split(',').map(member).collect::<Result<_, _>>();
    let mut members: Vec<String> = members?;
    members.sort_unstable();
    members.dedup();
    let folder = match path.strip_suffix('/').unwrap_or(path) {
        "" => FOLDER,
        folder => folder,
    };
    if !folder.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong(
            "has a character in its prefix that must be percent-encoded",
        ));
    }
    let mut prefix: Vec<u8> = percent_decode_str(folder).collect();
    prefix.push(b'/');
    Ok((
        Place {
            shown: format!("etcd://{}/{folder}", members.join(",")),
            members,
            prefix,
        },
        login,
    ))
}

fn login_of(login: &str) -> Result<Login, AddressError> {
    if login.contains(['/', '?', '#', ',']) {
        return Err(wrong(ENCODE));
    }
    let Some((user, password)) = login.split_once(':') else {
        return Err(wrong("names a user without a password"));
    };
    let decoded = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8();
        let decoded = decoded.map_err(|_| wrong("has a user or a password that is not UTF-8"))?;
        Ok(decoded.into_owned())
    };
    if user.is_empty() {
        return Err(wrong("has a password, and names no user"));
    }
    Ok(Login {
        user: decoded(user)?,
        password: decoded(password)?,
    })
}

/// Returns a member as `host:port`.
fn member(text: &str) -> Result<String, AddressError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(text) => {
            let (host, rest) = text.split_once(']').unwrap_or((text, "]"));
            let host = host.parse::<Ipv6Addr>();
            let host = host.map_err(|_| wrong("names no address of version 6 in its brackets"))?;
            let port = match rest {
                "" => None,
                rest => Some(rest.strip_prefix(':').unwrap_or_default()),
            };
            (format!("[{host}]"), port)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host.to_ascii_lowercase(), Some(port)),
            None => (text.to_ascii_lowercase(), None),
        },
    };
    if host.is_empty() {
        return Err(wrong("names no host"));
    }
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
    if !host.bytes().all(is_fit) {
        return Err(wrong("has a host that is no name and no address"));
    }
    let port = match port {
        None => Some(PORT),
        Some(port) => port.parse().ok().filter(|port| *port != 0),
    };
    let port = port.ok_or_else(|| wrong("has a port that is not a number from 1 to 65535"))?;
    Ok(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clients_agree_on_the_address_of_a_cluster() {
        for (address, shown, prefix) in [
            ("etcd://h", "etcd://h:2379/quorlock", &b"quorlock/"[..]),
            ("etcd://H:1/", "etcd://h:1/quorlock", b"quorlock/"),
            (
                "etcd://c,b:1,a,c",
                "etcd://a:2379,b:1,c:2379/quorlock",
                b"quorlock/",
            ),
            (
                "etcd://u:s3cret@[::1]:1/a/b/",
                "etcd://[::1]:1/a/b",
                b"a/b/",
            ),
            ("etcd://[::1]//a%20b", "etcd://[::1]:2379//a%20b", b"/a b/"),
        ] {
            let (place, _) = parse(address).unwrap();
            assert_eq!(place.shown, shown);
            assert_eq!(place.prefix, prefix, "{address}");
        }
        let (_, login) = parse("etcd://us%65r:s3c%40%2Fret@h").unwrap();
        let login = login.unwrap();
        assert_eq!((&*login.user, &*login.password), ("user", "s3c@/ret"));
    }
}
