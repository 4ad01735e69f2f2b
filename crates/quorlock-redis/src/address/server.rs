//! The address of one server, or of its socket.

use std::fmt;
use std::path::PathBuf;

use redis::RedisConnectionInfo;

use super::Scheme;
use super::hosts::{Hosts, decoded, login};
use super::parts::{Fault, Parts, database};
use crate::connect::Endpoint;

/// A parsed address.
pub(crate) struct Address {
    /// Host and port, or path of the socket.
    pub(crate) endpoint: Endpoint,
    /// Whether TLS is spoken at the endpoint.
    pub(crate) scheme: Scheme,
    /// User, password and database.
    pub(crate) login: RedisConnectionInfo,
    /// The address without credentials, for people, logs and the canonical order.
    pub(crate) shown: String,
}

impl Address {
    /// Reads the parts of the address of a server.
    pub(super) fn at_host(scheme: Scheme, parts: &Parts<'_>) -> Result<Self, Fault> {
        let (endpoint, login) = Hosts::one(parts.authority)?;
        let [db] = parts.parameters(["db"])?;
        let db = match parts.path.as_slice() {
            [] => database(None, db.as_deref())?,
            [path] => database(Some(path), db.as_deref())?,
            _ => {
                let part = "something behind the database (in a password, write %2F for /)";
                return Err(Fault::Unknown(part.to_owned()));
            }
        };
        Ok(Address::new(endpoint, scheme, login.set_db(db)))
    }

    /// Reads the parts of the address of a socket.
    pub(super) fn at_socket(parts: &Parts<'_>) -> Result<Self, Fault> {
        if !parts.authority.is_empty() {
            return Err(
                "its path does not begin with /, and a user and a password are parameters".into(),
            );
        }
        let path = parts.path.join("/");
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            return Err("it lacks the path of the socket".into());
        }
        let path = decoded(&format!("/{path}"), "its path")?;
        let path = PathBuf::from(path);
        let [db, user, password] = parts.parameters(["db", "user", "pass"])?;
        let db = database(None, db.as_deref())?;
        let endpoint = Endpoint::Unix { path };
        Ok(Address::new(
            endpoint,
            Scheme::Plain,
            login(user, password).set_db(db),
        ))
    }

    pub(super) fn new(endpoint: Endpoint, scheme: Scheme, login: RedisConnectionInfo) -> Self {
        let shown = match (&endpoint, login.db()) {
            (Endpoint::Tcp { .. }, db) => format!("{endpoint}/{db}"),
            (Endpoint::Unix { .. }, 0) => format!("unix:{endpoint}"),
            (Endpoint::Unix { .. }, db) => format!("unix:{endpoint}?db={db}"),
        };
        Address {
            endpoint,
            scheme,
            login,
            shown,
        }
    }

    /// Whether the bytes cross a network unencrypted.
    pub(crate) fn is_for_all_to_read(&self) -> bool {
        self.scheme == Scheme::Plain && matches!(self.endpoint, Endpoint::Tcp { .. })
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
