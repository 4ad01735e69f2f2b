//! The host and the port of an address.

use std::net::Ipv6Addr;

/// Returns a host as `host:port`, in the form that all clients agree on. The error is a predicate whose subject is the address.
pub(crate) fn host_and_port(text: &str, default_port: u16) -> Result<String, &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(text) => {
            let (host, rest) = text.split_once(']').unwrap_or((text, "]"));
            let host = host.parse::<Ipv6Addr>();
            let host = host.map_err(|_| "names no address of version 6 in its brackets")?;
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
        return Err("names no host");
    }
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
    if !host.bytes().all(is_fit) {
        return Err("has a host that is no name and no address");
    }
    let port = match port {
        None => Some(default_port),
        Some(port) => port.parse().ok().filter(|port| *port != 0),
    };
    let port = port.ok_or("has a port that is not a number from 1 to 65535")?;
    Ok(format!("{host}:{port}"))
}
