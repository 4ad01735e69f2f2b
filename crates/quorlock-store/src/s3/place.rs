//! The address of a store in objects.

use percent_encoding::percent_decode_str;

use crate::address::{AddressError, S3};
use crate::database::check_address;
use crate::host::host_and_port;

/// What an address begins with.
const SCHEME: &str = "s3://";

/// Where the objects of an address are that does not say it.
const FOLDER: &str = "quorlock";

/// Where the objects are.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) bucket: String,
    /// What the names of the objects begin with, without a slash at its end.
    pub(super) folder: String,
    /// The service, as `http://host:port`, if it is not the one that the environment names.
    pub(super) endpoint: Option<String>,
    pub(super) region: Option<String>,
}

impl Place {
    /// Parses an address, and nothing that would mean nothing.
    pub(super) fn parse(address: &str) -> Result<Self, AddressError> {
        check_address(address, &[SCHEME], S3)?;
        let rest = address.trim_start_matches(SCHEME);
        Self::parse_rest(rest).map_err(|problem| AddressError::new(S3, problem))
    }

    /// Parses what follows the scheme. The error is a predicate whose subject is the address.
    fn parse_rest(rest: &str) -> Result<Self, String> {
        if rest.contains('@') {
            return Err("has an @: keys are taken from the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), \
                or from the role of the machine"
                .to_owned());
        }
        if rest.contains('#') {
            return Err("has a #, which means nothing here: write %23 in a prefix".to_owned());
        }
        let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, folder) = path.split_once('/').unwrap_or((path, ""));
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(is_fit) {
            return Err("names no bucket".to_owned());
        }
        let mut place = Place {
            bucket: bucket.to_owned(),
            folder: folder_of(folder)?,
            endpoint: None,
            region: None,
        };
        for parameter in parameters.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decoded(value).ok_or("has a parameter that is not UTF-8")?;
            let before = match name {
                "endpoint" => place.endpoint.replace(endpoint_of(&value)?),
                "region" => place.region.replace(region_of(value)?),
                _ => return Err(format!("has ?{name}, which means nothing here")),
            };
            if before.is_some() {
                return Err(format!("has ?{name} twice"));
            }
        }
        Ok(place)
    }

    /// Returns the address, with the endpoint that is used. It has no secrets.
    pub(super) fn shown(&self, endpoint: Option<&str>) -> String {
        let Place { bucket, folder, .. } = self;
        match endpoint {
            Some(endpoint) => format!("{SCHEME}{bucket}/{folder}?endpoint={endpoint}"),
            None => format!("{SCHEME}{bucket}/{folder}"),
        }
    }
}

fn decoded(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    Some(decoded.ok()?.into_owned())
}

fn folder_of(path: &str) -> Result<String, String> {
    let folder = match path.strip_suffix('/').unwrap_or(path) {
        "" => FOLDER,
        folder => folder,
    };
    let folder = decoded(folder).filter(|folder| {
        let parts = folder.split('/');
        let are_names = parts.clone().all(|part| !["", ".", ".."].contains(&part));
        are_names && !folder.contains(|it: char| it.is_control())
    });
    folder.ok_or_else(|| "has a prefix that cannot be that of an object".to_owned())
}

/// Returns an endpoint in the form that all clients agree on.
pub(super) fn endpoint_of(text: &str) -> Result<String, String> {
    let (scheme, host) = text.split_once("://").unwrap_or_default();
    let port = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return Err("has an endpoint that is not http://host:port or https://host".to_owned()),
    };
    let host = host_and_port(host.strip_suffix('/').unwrap_or(host), port)?;
    let host = host.strip_suffix(&format!(":{port}")).unwrap_or(&host);
    Ok(format!("{scheme}://{host}"))
}

fn region_of(text: String) -> Result<String, String> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    match !text.is_empty() && text.bytes().all(is_fit) {
        true => Ok(text),
        false => Err("has a region that is no name".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clients_agree_on_the_address_of_a_bucket() {
        for (address, shown) in [
            ("s3://b", "s3://b/quorlock"),
            ("s3://b/", "s3://b/quorlock"),
            ("s3://b/a/c/?region=eu-west-1", "s3://b/a/c"),
            (
                "s3://b?endpoint=http%3A%2F%2FH:80/",
                "s3://b/quorlock?endpoint=http://h",
            ),
            (
                "s3://b/a%20b?region=r&endpoint=https://[::1]:9000",
                "s3://b/a b?endpoint=https://[::1]:9000",
            ),
        ] {
            let place = Place::parse(address).unwrap();
            assert_eq!(place.shown(place.endpoint.as_deref()), shown);
        }
    }
}
