//! The address of a store in documents.

use ::mongodb::options::ConnectionString;

use crate::address::{AddressError, MONGODB};
use crate::database::{ENCODE, check_address};
use crate::host::host_and_port;

/// What an address begins with.
const SCHEME: &str = "mongodb://";

/// The parameters that change how the database is reached, and nothing of what a write promises.
const PARAMETERS: [&str; 11] = [
    "appname",
    "authmechanism",
    "authsource",
    "connecttimeoutms",
    "directconnection",
    "replicaset",
    "ssl",
    "tls",
    "tlscafile",
    "tlscertificatekeyfile",
    "maxpoolsize",
];

/// Where the records are.
pub(super) struct Place {
    pub(super) connection: ConnectionString,
    pub(super) database: String,
    /// The address without secrets.
    pub(super) shown: String,
}

impl Place {
    /// Parses an address, and nothing that would mean nothing.
    pub(super) fn parse(address: &str) -> Result<Self, AddressError> {
        check_address(address, &[SCHEME], MONGODB)?;
        Self::parse_checked(address).map_err(|problem| AddressError::new(MONGODB, problem))
    }

    /// Parses an address with this scheme. The error is a predicate whose subject is the address.
    fn parse_checked(address: &str) -> Result<Self, String> {
        let rest = address.trim_start_matches(SCHEME);
        let (login, rest) = rest.split_once('@').unwrap_or(("", rest));
        if login.contains(['/', '?', '#', ',']) {
            return Err(ENCODE.to_owned());
        }
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        for parameter in parameters.split('&').filter(|it| !it.is_empty()) {
            let (name, _) = parameter.split_once('=').unwrap_or((parameter, ""));
            if !PARAMETERS.contains(&&*name.to_ascii_lowercase()) {
                return Err(format!("has ?{name}, which means nothing here"));
            }
        }
        let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if database.is_empty() || !database.bytes().all(is_fit) {
            return Err("names no database".to_owned());
        }
        let hosts = hosts.split(',').map(|host| host_and_port(host, 27017));
        let mut hosts: Vec<String> = hosts.collect::<Result<_, _>>()?;
        hosts.sort_unstable();
        // What the driver says may have a part of a password.
        let connection = ConnectionString::parse(address)
            .map_err(|_| "has a parameter or a login that the driver does not take")?;
        Ok(Place {
            connection,
            database: database.to_owned(),
            shown: format!("{SCHEME}{}/{database}", hosts.join(",")),
        })
    }
}
