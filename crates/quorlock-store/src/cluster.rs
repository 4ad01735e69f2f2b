//! The address of a cluster of etcd or ZooKeeper: its members, its user, and where its keys are.

use percent_encoding::percent_decode_str;

use crate::address::AddressError;
use crate::database::{ENCODE, check_address};
use crate::host::host_and_port;

/// How the address of a kind of cluster is written.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// What it begins with.
    pub(crate) scheme: &'static str,
    /// The whole, for errors.
    pub(crate) form: &'static str,
    /// The port of an address that names none.
    pub(crate) port: u16,
}

/// Where the keys of an address are that does not say it.
const FOLDER: &str = "quorlock";

/// Where the records are.
pub(crate) struct Place {
    /// The members of the cluster, each as `host:port`, in an order that does not depend on how the address lists them.
    pub(crate) members: Vec<String>,
    /// What the keys are below, without a slash at its end.
    pub(crate) folder: Vec<u8>,
    /// The address without secrets.
    pub(crate) shown: String,
}

/// The user of an address, and the password.
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// Parses an address, and nothing that would mean nothing.
pub(crate) fn parse(address: &str, kind: Kind) -> Result<(Place, Option<Login>), AddressError> {
    check_address(address, &[kind.scheme], kind.form)?;
    let rest = address.trim_start_matches(kind.scheme);
    parse_rest(rest, kind).map_err(|problem| AddressError::new(kind.form, problem))
}

/// Parses what follows the scheme. The error is a predicate whose subject is the address.
fn parse_rest(rest: &str, kind: Kind) -> Result<(Place, Option<Login>), &'static str> {
    let (login, rest) = match rest.split_once('@') {
        Some((login, rest)) => (Some(login_of(login)?), rest),
        None => (None, rest),
    };
    if rest.contains(['?', '#']) {
        return Err("has a ? or a #, which means nothing here: write %3F or %23 in a prefix");
    }
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    let members = hosts.split(',').map(|text| host_and_port(text, kind.port));
    let mut members: Vec<String> = members.collect::<Result<_, _>>()?;
    members.sort_unstable();
    members.dedup();
    let folder = match path.strip_suffix('/').unwrap_or(path) {
        "" => FOLDER,
        folder => folder,
    };
    if !folder.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("has a character in its prefix that must be percent-encoded");
    }
    let place = Place {
        shown: format!("{}{}/{folder}", kind.scheme, members.join(",")),
        members,
        folder: percent_decode_str(folder).collect(),
    };
    Ok((place, login))
}

fn login_of(login: &str) -> Result<Login, &'static str> {
    if login.contains(['/', '?', '#', ',']) {
        return Err(ENCODE);
    }
    let Some((user, password)) = login.split_once(':') else {
        return Err("names a user without a password");
    };
    let decoded = |text: &str| -> Result<String, &'static str> {
        let decoded = percent_decode_str(text).decode_utf8();
        let decoded = decoded.map_err(|_| "has a user or a password that is not UTF-8")?;
        Ok(decoded.into_owned())
    };
    if user.is_empty() {
        return Err("has a password, and names no user");
    }
    Ok(Login {
        user: decoded(user)?,
        password: decoded(password)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETCD: Kind = Kind {
        scheme: "etcd://",
        form: "etcd://host",
        port: 2379,
    };

    #[test]
    fn all_clients_agree_on_the_address_of_a_cluster() {
        for (address, shown, folder) in [
            ("etcd://h", "etcd://h:2379/quorlock", &b"quorlock"[..]),
            ("etcd://H:1/", "etcd://h:1/quorlock", b"quorlock"),
            (
                "etcd://c,b:1,a,c",
                "etcd://a:2379,b:1,c:2379/quorlock",
                b"quorlock",
            ),
            ("etcd://u:s3cret@[::1]:1/a/b/", "etcd://[::1]:1/a/b", b"a/b"),
            ("etcd://[::1]//a%20b", "etcd://[::1]:2379//a%20b", b"/a b"),
        ] {
            let (place, _) = parse(address, ETCD).unwrap();
            assert_eq!(place.shown, shown);
            assert_eq!(place.folder, folder, "{address}");
        }
        let (_, login) = parse("etcd://us%65r:s3c%40%2Fret@h", ETCD).unwrap();
        let login = login.unwrap();
        assert_eq!((&*login.user, &*login.password), ("user", "s3c@/ret"));
    }
}
