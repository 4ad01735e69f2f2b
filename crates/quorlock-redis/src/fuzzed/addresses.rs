//! Addresses of servers, of Sentinel groups and of clusters.

use std::fmt::Debug;

use super::text;
use crate::address::cluster::ClusterAddress;
use crate::address::group::GroupAddress;
use crate::address::{Address, AddressError};
use crate::connect::Endpoint;

/// The content of an address of any kind.
#[derive(Debug)]
struct Said {
    endpoints: Vec<Endpoint>,
    db: i64,
    password: Option<String>,
    sentinels_password: Option<String>,
    shown: String,
    /// An address of the same kind, made from the shown text.
    again: Option<String>,
}

/// Parses the bytes as an address.
///
/// # Panics
/// If the shown address parses as another one, or if a password is shown or is part of an error.
pub fn addresses(data: &[u8]) {
    let Some(address) = text(data) else {
        return;
    };
    if let Ok(said) = parse(address) {
        let again = said.again.as_deref().map(parse);
        if let Some(again) = again {
            let again = again.unwrap_or_else(|error| panic!("{}: {error}", said.shown));
            // Shown addresses are sorted, so that they are the same for all clients with the same hosts.
            assert_eq!(sorted(&again), sorted(&said));
            assert_eq!(again.shown, said.shown);
            assert_eq!(again.db, said.db);
        }
    }
    for place in places_of_passwords(address) {
        let (before, after) = address.split_at(place);
        keep_secret(&format!("{before}{SECRET}{after}"));
    }
}

fn sorted(said: &Said) -> Vec<String> {
    let mut endpoints: Vec<String> = said.endpoints.iter().map(Endpoint::to_string).collect();
    endpoints.sort();
    endpoints
}

/// A secret that appears nowhere else in the input.
const SECRET: &str = "Zq9xW7";

/// Returns where a password begins, if there is one: after the user, and in the query.
fn places_of_passwords(address: &str) -> Vec<usize> {
    let mut places = Vec::new();
    if let Some(scheme) = address.find("://") {
        let rest = scheme + "://".len();
        let login = address
            .get(rest..)
            .and_then(|rest| rest.rsplit_once('@'))
            .map_or("", |(login, _)| login);
        places.extend(login.find(':').map(|colon| rest + colon + 1));
    }
    for word in ["pass=", "password="] {
        places.extend(address.match_indices(word).map(|(at, _)| at + word.len()));
    }
    places
}

/// Checks that a secret in the address, perhaps as the password, is not shown.
fn keep_secret(address: &str) {
    let hidden = |shown: &dyn Debug| {
        let shown = format!("{shown:?}");
        assert!(!shown.contains(SECRET), "{shown}");
    };
    match parse(address) {
        Err(error) => {
            hidden(&error);
            hidden(&error.to_string());
        }
        Ok(said) => {
            let has = |password: &Option<String>| {
                password
                    .as_ref()
                    .is_some_and(|password| password.contains(SECRET))
            };
            if has(&said.password) || has(&said.sentinels_password) {
                hidden(&said.shown);
                hidden(&said.endpoints);
            }
        }
    }
}

fn parse(address: &str) -> Result<Said, AddressError> {
    if GroupAddress::is_meant(address) {
        let group = GroupAddress::parse(address)?;
        // The name of a primary is shown without the escapes that an address needs.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let is_plain = group.name.chars().all(is_plain);
        let password = |login: &redis::RedisConnectionInfo| login.password().map(str::to_owned);
        return Ok(Said {
            again: is_plain.then(|| format!("redis+sentinel://{}", group.shown)),
            db: group.login.db(),
            password: password(&group.login),
            sentinels_password: group.sentinel_login.as_ref().and_then(password),
            endpoints: group.sentinels,
            shown: group.shown,
        });
    }
    if ClusterAddress::is_meant(address) {
        let cluster = ClusterAddress::parse(address)?;
        let nodes = cluster.shown.trim_end_matches("/cluster");
        return Ok(Said {
            again: Some(format!("redis+cluster://{nodes}")),
            db: 0,
            password: cluster.login.password().map(str::to_owned),
            sentinels_password: None,
            endpoints: cluster.seeds,
            shown: cluster.shown,
        });
    }
    let address = Address::parse(address)?;
    assert_eq!(format!("{address:?}"), address.shown);
    let again = match &address.endpoint {
        Endpoint::Tcp { .. } => Some(format!("redis://{}", address.shown)),
        // A path may contain characters that have a meaning in addresses.
        Endpoint::Unix { .. } => None,
    };
    Ok(Said {
        again,
        db: address.login.db(),
        password: address.login.password().map(str::to_owned),
        sentinels_password: None,
        endpoints: vec![address.endpoint],
        shown: address.shown,
    })
}
