//! Addresses of servers, of Sentinel groups and of clusters.

use std::fmt::Debug;

use super::text;
use crate::address::{AddressError, AnyAddress};
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
    if address.contains(SECRET) {
        return;
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
    let password = |login: &redis::RedisConnectionInfo| login.password().map(str::to_owned);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    Ok(match AnyAddress::parse(address)? {
        AnyAddress::Server(server) => {
            assert_eq!(format!("{server:?}"), server.shown);
            let again = match &server.endpoint {
                Endpoint::Tcp { .. } => Some(format!("redis://{}", server.shown)),
                // A path is shown without the escapes that an address needs.
                Endpoint::Unix { path } => {
                    let path = path.display().to_string();
                    let is_plain = path.chars().all(|c| is_plain(c) || c == '/');
                    let is_read_back = is_plain && !path.contains("//");
                    is_read_back.then(|| server.shown.clone())
                }
            };
            Said {
                again,
                db: server.login.db(),
                password: password(&server.login),
                sentinels_password: None,
                endpoints: vec![server.endpoint],
                shown: server.shown,
            }
        }
        AnyAddress::Group(group) => Said {
            // The name of a primary is shown without the escapes that an address needs.
            again: group
                .name
                .chars()
                .all(is_plain)
                .then(|| format!("redis+sentinel://{}", group.shown)),
            db: group.login.db(),
            password: password(&group.login),
            sentinels_password: group.sentinel_login.as_ref().and_then(password),
            endpoints: group.sentinels,
            shown: group.shown,
        },
        AnyAddress::Cluster(cluster) => {
            let nodes = cluster.shown.trim_end_matches("/cluster");
            Said {
                again: Some(format!("redis+cluster://{nodes}")),
                db: 0,
                password: password(&cluster.login),
                sentinels_password: None,
                endpoints: cluster.seeds,
                shown: cluster.shown,
            }
        }
    })
}
