//! Tests of addresses of servers and sockets, and of the secrecy of all.

use super::*;

pub(crate) fn server(address: &str) -> Address {
    match AnyAddress::parse(address) {
        Ok(AnyAddress::Server(server)) => server,
        Ok(_) => panic!("{address}: not a server"),
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn group(address: &str) -> GroupAddress {
    match AnyAddress::parse(address) {
        Ok(AnyAddress::Group(group)) => group,
        Ok(_) => panic!("{address}: not a group"),
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn cluster(address: &str) -> ClusterAddress {
    match AnyAddress::parse(address) {
        Ok(AnyAddress::Cluster(cluster)) => cluster,
        Ok(_) => panic!("{address}: not a cluster"),
        Err(error) => panic!("{error}"),
    }
}

/// Returns all that the error of an address says.
pub(crate) fn error(address: &str) -> String {
    let error = AnyAddress::parse(address).err().expect(address);
    format!("{error} {error:?}")
}

fn problem(address: &str) -> AddressProblem {
    AnyAddress::parse(address).err().expect(address).problem
}

#[test]
fn an_address_is_shown_without_credentials() {
    for (address, shown) in [
        ("redis://127.0.0.1", "127.0.0.1:6379/0"),
        (
            "redis://bob:s3cret@example.org:7000/3",
            "example.org:7000/3",
        ),
        ("redis://:s3cret@[::1]:7000", "[::1]:7000/0"),
        ("REDIS://h/1/", "h:6379/1"),
        (" redis://h\n", "h:6379/0"),
        (
            "unix:///var/a.sock?user=bob&pass=s3cret",
            "unix:/var/a.sock",
        ),
        ("redis+unix:///var/a.sock?db=2", "unix:/var/a.sock?db=2"),
        ("unix:/var/a.sock?db=2", "unix:/var/a.sock?db=2"),
        ("unix:///var/a%23%20b", "unix:/var/a# b"),
    ] {
        assert_eq!(server(address).shown, shown, "{address}");
    }
}

#[test]
fn debug_shows_no_credentials() {
    let address = server("redis://bob:s3cret@h/1");
    assert_eq!(format!("{address:?}"), "h:6379/1");
    assert_eq!(address.login.username(), Some("bob"));
    assert_eq!(address.login.password(), Some("s3cret"));
}

#[test]
fn a_login_is_read_as_it_was_percent_encoded() {
    for (address, user, password) in [
        ("redis://:p%23a%2Fs%25@h", None, "p#a/s%"),
        ("redis://b%40b:a:b@c,d+e@h", Some("b@b"), "a:b@c,d+e"),
        ("unix:///s?user=b&pass=%26%3D%2B%23@", Some("b"), "&=+#@"),
    ] {
        let login = server(address).login;
        assert_eq!(login.username(), user, "{address}");
        assert_eq!(login.password(), Some(password), "{address}");
    }
}

/// redis://h?db=1 was database 0, so that two services held one name at the same time.
#[test]
fn a_database_is_in_the_path_or_a_parameter_and_two_must_agree() {
    for (address, db) in [
        ("redis://h?db=1", 1),
        ("redis://h/?db=1", 1),
        ("redis://h/1?db=1", 1),
        ("redis://h?db=01&db=01", 1),
        ("valkey://h/2", 2),
        ("unix:///s?db=3", 3),
        ("redis+unix:///s", 0),
    ] {
        assert_eq!(server(address).login.db(), db, "{address}");
    }
    assert_eq!(group("redis+sentinel://h/m?db=4").login.db(), 4);
    cluster("redis+cluster://h?db=0");
    for address in [
        "redis://h/0?db=1",
        "redis://h/1?db=0",
        "redis+sentinel://h/m/0?db=1",
    ] {
        let text = error(address);
        assert!(text.contains("it names two databases"), "{text}");
    }
    let text = error("unix:///s?db=1&db=2");
    assert!(text.contains("it has db twice"), "{text}");
}

#[test]
fn a_part_without_a_meaning_is_an_error_for_every_scheme() {
    let places = [
        "redis://h/1",
        "valkey://h",
        #[cfg(feature = "tls")]
        "rediss://h",
        #[cfg(feature = "tls")]
        "valkeys://h/1",
        "unix:///s",
        "unix:/s",
        "redis+unix:///s",
        "valkey+unix:///s",
        "redis+sentinel://h,i/m",
        "valkey+sentinel://h/m/1",
        #[cfg(feature = "tls")]
        "rediss+sentinel://h/m",
        "redis+cluster://h,i",
        "valkey+cluster://h/0",
        #[cfg(feature = "tls")]
        "valkeys+cluster://h",
    ];
    for place in places {
        assert!(AnyAddress::parse(place).is_ok(), "{place}");
        for (unknown, part) in [
            ("?timeout=5", "a parameter timeout"),
            ("?ssl_cert_reqs=none", "a parameter ssl_cert_reqs"),
            ("?protocol=resp3", "a parameter protocol"),
            ("?db=0&password=s3cret", "a parameter password"),
            ("?s3cret", "a parameter after"),
            ("?sEcret=1", "a parameter after"),
            ("#else", "a fragment"),
            ("#", "a fragment"),
        ] {
            let address = format!("{place}{unknown}");
            let AddressProblem::UnknownPart { part: named, .. } = problem(&address) else {
                panic!("{address}: {}", error(&address));
            };
            assert!(named.contains(part), "{address}: {named}");
            assert!(!error(&address).contains("s3cret"), "{address}");
        }
    }
    for address in [
        "redis://h/1/2",
        "redis+sentinel://h/m/1/2",
        "redis+cluster://h/0/2",
    ] {
        let problem = problem(address);
        assert!(
            matches!(problem, AddressProblem::UnknownPart { .. }),
            "{problem:?}"
        );
    }
    let problem = problem("redis://h#insecure");
    assert!(
        matches!(problem, AddressProblem::UnknownPart { .. }),
        "{problem:?}"
    );
}

/// Addresses with a mistake each, what of them the error quotes, and what it says is wrong.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("redis://:p#a/s%@127.0.0.1:1", "redis://.. is", "%23 for #"),
    (
        "redis://:a/s3cret@127.0.0.1:1",
        "redis://..@127.0.0.1:1 is",
        "%2F for /",
    ),
    ("redis://:s3cret?@127.0.0.1:1", "redis://.. is", "%3F for ?"),
    (
        "redis://:s3cret%@127.0.0.1:1",
        "redis://..@127.0.0.1:1 is",
        "the password has a % without",
    ),
    (
        "redis://s3cret%4:@h",
        "redis://..@h is",
        "the user has a % without",
    ),
    (
        "redis://:%FFs3cret@h",
        "redis://..@h is",
        "the password is no UTF-8",
    ),
    (
        "127.0.0.1:6379",
        "127.0.0.1:6379 has no scheme",
        "write redis://",
    ),
    ("a,b", "a,b has no scheme", "in front of each"),
    ("", "the address .. has no scheme", "write redis://"),
    ("u:s3cret@h", "..@h has no scheme", "write redis://"),
    ("redis//:s3cret@h", "..@h has no scheme", "write redis://"),
    ("redis:h", "redis:.. has no scheme", "write redis://"),
    (
        "http://u:s3cret@h/",
        "http://..@h/.. has a scheme",
        "write redis://",
    ),
    (
        "redis-sentinel://u:s3cret@a/m",
        "redis-sentinel://..@a/.. has a scheme",
        "redis+sentinel://",
    ),
    (
        "cluster://a",
        "cluster://a has a scheme",
        "redis+cluster://",
    ),
    (
        "redis://127.0.0.1:99999",
        "redis://127.0.0.1:99999 is",
        "a port above 65535",
    ),
    (
        "redis://u:s3cret@h:port",
        "redis://..@h:.. is",
        "a port that is no number",
    ),
    ("redis://h:0", "redis://h:0 is", "port 0"),
    (
        "redis://h:/",
        "redis://h:/.. is",
        "a port that is no number",
    ),
    ("redis://::1", "redis://::1 is", "[::1]:6379"),
    (
        "redis://::1:6379/0",
        "redis://::1:6379/.. is",
        "in brackets",
    ),
    ("redis://fe80::1", "redis://fe80::1 is", "in brackets"),
    (
        "redis://[fe80::1%25eth0]/",
        "redis://../.. is",
        "no IPv6 address",
    ),
    ("redis://b\u{fc}cher", "redis://.. is", "no host name has"),
    (
        "redis://a,b:7000",
        "redis://a,b:7000 is",
        "its host has a comma: several servers are several addresses",
    ),
    (
        "redis://a,b:port",
        "redis://a,b:.. is",
        "its host has a comma",
    ),
    (
        "redis://u:s3cret@a,b/1",
        "redis://..@a,b/.. is",
        "its host has a comma",
    ),
    ("redis://", "redis://.. is", "it has no host"),
    ("redis:///0", "redis:///.. is", "it has no host"),
    (
        "redis://u:s3cret@h/notadb",
        "redis://..@h/.. is",
        "its database is no number",
    ),
    (
        "redis://h/-1",
        "redis://h/.. is",
        "its database is no number",
    ),
    (
        "redis://h/+1",
        "redis://h/.. is",
        "its database is no number",
    ),
    (
        "redis://u:s3cret@0.0.0.0/",
        "redis://..@0.0.0.0/.. is",
        "no host in particular",
    ),
    (
        "unix:///s?pass=s3cret&db=-1",
        "unix:///s?.. is",
        "its database is no number",
    ),
    ("unix:///s?pass=s3cret+1", "unix:///s?.. is", "pass has a +"),
    (
        "unix:///s?pass=s3&cret=1",
        "unix:///s?.. has",
        "a parameter after",
    ),
    (
        "unix://u:s3cret@/s",
        "unix://..@/s is",
        "does not begin with /",
    ),
    ("unix://s", "unix://s is", "does not begin with /"),
    ("unix:///", "unix:/// is", "lacks the path"),
    ("unix:///a%b", "unix:///.. is", "its path has a % without"),
];

#[test]
fn each_mistake_has_a_text_of_its_own_and_quotes_the_hosts() {
    for (address, quoted, wrong) in MISTAKES {
        let text = error(address);
        assert!(text.contains(wrong), "{address}: {text}");
        assert!(text.contains(quoted), "{address}: {text}");
        assert!(
            !text.contains("s3cret") && !text.contains("cret="),
            "{text}"
        );
    }
}

#[cfg(feature = "tls")]
#[test]
fn an_address_says_whether_it_wants_tls() {
    for (address, scheme) in [
        ("redis://h/", Scheme::Plain),
        ("valkey://h/", Scheme::Plain),
        ("unix:///s", Scheme::Plain),
        ("rediss://h/", Scheme::Tls),
        ("REDISS://h/", Scheme::Tls),
        ("valkeys://h/", Scheme::Tls),
    ] {
        assert_eq!(server(address).scheme, scheme, "{address}");
    }
    let full = server("rediss://bob:s3cret@[::1]:7000/3");
    assert_eq!(full.shown, "[::1]:7000/3");
    assert_eq!(full.login.password(), Some("s3cret"));
    for address in [
        "rediss://u:s3cret@h/#insecure",
        "valkeys+cluster://h#insecure",
    ] {
        assert_eq!(problem(address), AddressProblem::Insecure);
        let text = error(address);
        assert!(text.contains("Tls::roots_file"), "{text}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn without_its_feature_tls_is_refused_by_name() {
    for address in ["rediss://h/", "valkeys://u:s3cret@h/", "rediss+cluster://h"] {
        assert_eq!(problem(address), AddressProblem::Tls);
        let text = error(address);
        assert!(text.contains("feature `tls`"), "{text}");
    }
}

/// All strings of up to two characters that divide an address, or that percent-encoding uses.
fn special() -> Vec<String> {
    let characters: Vec<char> = "#/%?@:,&=[]+ \\;!.-_a9\u{e9}".chars().collect();
    let mut texts = vec![String::new()];
    for one in &characters {
        texts.push(one.to_string());
        texts.extend(characters.iter().map(|other| format!("{one}{other}")));
    }
    texts
}

/// The password is not percent-encoded, stands where each kind of address has one, and the rest is right or wrong.
#[test]
fn no_password_of_special_characters_is_in_an_error_or_shown() {
    const SECRET: &str = "zqxw";
    let special = special();
    let places = [
        ("redis://u:", "@h:1/0"),
        ("redis://:", "@h:99999/0?timeout=1"),
        ("redis://:", "@a,b#x"),
        ("u:", "@h"),
        ("http://u:", "@h/1"),
        ("redis+sentinel://u:", "@h/m/x"),
        (
            "redis+sentinel://h/m?sentinel_user=a&sentinel_password=",
            "",
        ),
        ("redis+sentinel://h/m?sentinel_password=", "&x=y"),
        ("redis+cluster://u:", "@a,b/1"),
        ("unix:///s?pass=", "&db=x"),
        ("unix:///s?user=u&pass=", "&db=1"),
        ("unix://u:", "@/s"),
    ];
    let mut refused = 0;
    for (before, after) in places {
        for (one, other) in special.iter().zip(special.iter().cycle().skip(7)) {
            for word in [
                format!("{one}{SECRET}{other}"),
                format!("{SECRET}{one}{SECRET}=1"),
            ] {
                let address = format!("{before}{word}{after}");
                let said = match AnyAddress::parse(&address) {
                    Ok(AnyAddress::Server(server)) => server.shown,
                    Ok(AnyAddress::Group(group)) => group.shown,
                    Ok(AnyAddress::Cluster(cluster)) => cluster.shown,
                    Err(error) => {
                        refused += 1;
                        format!("{error} {error:?}")
                    }
                };
                assert!(!said.contains(SECRET), "{address}: {said}");
            }
        }
    }
    assert!(5_000 < refused, "{refused}");
}
