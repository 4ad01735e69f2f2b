//! An address as an error quotes it: what may be part of a password is replaced by `..`.
//!
//! A password that is not percent-encoded may contain any character that divides an address. So only what stands behind
//! the last `@` is certainly no part of it, and nothing is if that `@` is behind a `?` or a `#`.

/// Returns an address without its login, its parameters and its fragment. Of a path only that of a socket is shown.
pub(super) fn quoted(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => (format!("{scheme}://"), rest),
        _ => (String::new(), address),
    };
    if rest.is_empty() {
        return format!("{scheme}..");
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (place, query) = rest.split_at(end);
    if query.contains('@') {
        return format!("{scheme}..");
    }
    let (login, place) = match place.rsplit_once('@') {
        Some((_, place)) => ("..@", place),
        None => ("", place),
    };
    if scheme.contains("unix") && place.starts_with('/') {
        let is_plain = |c: char| c.is_alphanumeric() || "-._/".contains(c);
        let path = if place.chars().all(is_plain) {
            place
        } else {
            "/.."
        };
        return format!("{scheme}{login}{path}{}", cut(query));
    }
    let end = place.find('/').unwrap_or(place.len());
    let (hosts, path) = place.split_at(end);
    let hosts: Vec<String> = hosts.split(',').map(host).collect();
    let more = cut(if path.is_empty() { query } else { path });
    format!("{scheme}{login}{}{more}", hosts.join(","))
}

/// Returns the mark that a part begins with, instead of the part.
fn cut(part: &str) -> String {
    let mark = part.chars().next();
    mark.map_or(String::new(), |mark| format!("{mark}.."))
}

pub(super) fn is_scheme(text: &str) -> bool {
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    !text.is_empty() && text.chars().all(is_of_scheme)
}

/// Returns a host and its port. A port that is no number may be a password whose host was left out.
fn host(text: &str) -> String {
    let is_of_host = |c: char| c.is_ascii_alphanumeric() || "-._: ".contains(c);
    let is_of_ipv6 = |c: char| c.is_ascii_hexdigit() || "[]:.".contains(c);
    let is_shown = match text.starts_with('[') {
        true => text.chars().all(is_of_ipv6),
        false => text.chars().all(is_of_host),
    };
    let port = text.rsplit_once(':').filter(|_| !text.ends_with(']'));
    match port {
        _ if !is_shown => "..".to_owned(),
        Some((host, port)) if !port.chars().all(|c| c.is_ascii_digit()) => format!("{host}:.."),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_quoted_and_nothing_that_may_be_a_password() {
        for (address, quote) in [
            ("redis://a,b:7000", "redis://a,b:7000"),
            ("redis://u:s3cret@a:99999/1", "redis://..@a:99999/.."),
            ("redis://u:s3#cret@a:1", "redis://.."),
            ("redis://u:s3/cret@a:1", "redis://..@a:1"),
            ("redis://u:s3?cret@a:1", "redis://.."),
            ("redis://u:s3cret", "redis://u:.."),
            ("redis://[fe80::a]:7000#x", "redis://[fe80::a]:7000#.."),
            ("redis://fe80::1", "redis://fe80::1"),
            ("unix:///var/a.sock?pass=s3cret", "unix:///var/a.sock?.."),
            ("unix://u:s3cret@/a", "unix://..@/a"),
            ("unix:///a%pass=s3cret", "unix:///.."),
            ("redis://[s3cret]", "redis://.."),
            (
                "redis+sentinel://h1:1,h2/m?x",
                "redis+sentinel://h1:1,h2/..",
            ),
            ("127.0.0.1:6379", "127.0.0.1:6379"),
            ("u:s3cret://x@h", "..@h"),
            ("redis://", "redis://.."),
            ("", ".."),
        ] {
            assert_eq!(quoted(address), quote, "{address}");
        }
    }
}
