//! The servers, their credentials, and the settings that all clients of a deployment must share.

mod tls;

use std::path::{Path, PathBuf};

use clap::Args;
use quorlock::redis::{PasswordFile, RedisConfig};
use quorlock::{Locks, LocksBuilder};
use serde::Deserialize;

pub(crate) use self::tls::TlsOptions;
use crate::failure::Failure;
use crate::span::Span;

/// The servers that store the locks, and how to connect to them.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Servers")]
pub(crate) struct Reach {
    /// Address of a server: redis://[user@]host[:port][/db], rediss:// for the same with TLS, or unix:///path; of a
    /// Sentinel group: redis+sentinel://[user@]host[:port][,host[:port]..]/name[/db]; or of a Redis Cluster:
    /// redis+cluster://[user@]host[:port][,host[:port]..]; of a table in PostgreSQL: postgres://user@host[:port]/database; of
    /// one in MySQL or MariaDB: mysql://user@host[:port]/database; of a file of SQLite: sqlite:/path (`quorlock init` makes
    /// the table); of keys in etcd: etcd://[user@]host[:port][,host[:port]..][/prefix]; of znodes in ZooKeeper, the same with zk://; of
    /// documents in MongoDB: mongodb://[user@]host[:port][,host[:port]..]/database; of objects in S3: s3://bucket[/prefix][?endpoint=http://host:port][&region=name], with keys from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY). With several addresses, a lock is held on a majority of them (RedLock): separate them by commas, or repeat
    /// --nodes. A comma separates two addresses only if the second begins with its scheme (`redis://`, `sqlite:`). Special
    /// characters of a user or a password are percent-encoded (%23 for #). Default: QUORLOCK_NODES, or the file of --config.
    #[arg(long, value_name = "URL")]
    pub(crate) nodes: Vec<String>,
    /// TOML file with settings: nodes, password_file, tls_ca, tls_cert, tls_key, tls_server_name, sentinel_tls_ca,
    /// sentinel_tls_cert, sentinel_tls_key, namespace, key_prefix, lease, longest_lease, clock_margin, token_retention, member_timeout, trust_fresh_nodes. Default: QUORLOCK_CONFIG.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// File whose first line is the password for addresses without one, so that the list of processes shows no
    /// password. It is read again when it changes. Default: QUORLOCK_PASSWORD_FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    /// Prefix of every key and channel on a Redis server, before the key prefix, so that a user needs the rules ~PREFIX*
    /// and &PREFIX* alone. All clients of a name must have the same.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) namespace: Option<String>,
    /// Prefix of every name: with `app:` the lock orders/42 has the key app:orders/42.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) key_prefix: Option<String>,
    /// Longest lease that the command requests [default: 60s].
    #[arg(long, value_name = "SPAN")]
    pub(crate) longest_lease: Option<Span>,
    /// Count servers of a majority that no client has used before at once, instead of watching them for one longest
    /// lease first. Do not use this if servers may restart without their data.
    #[arg(long)]
    pub(crate) trust_fresh_nodes: bool,
}

/// The contents of a settings file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default)]
    nodes: Vec<String>,
    password_file: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    tls_server_name: Option<String>,
    sentinel_tls_ca: Option<PathBuf>,
    sentinel_tls_cert: Option<PathBuf>,
    sentinel_tls_key: Option<PathBuf>,
    namespace: Option<String>,
    key_prefix: Option<String>,
    lease: Option<Span>,
    longest_lease: Option<Span>,
    clock_margin: Option<Span>,
    token_retention: Option<Span>,
    member_timeout: Option<Span>,
    #[serde(default)]
    trust_fresh_nodes: bool,
}

/// The resulting settings: from the command line, then the environment, then the file.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Addresses as they were given. They may contain passwords and must not be printed.
    pub(crate) addresses: Vec<String>,
    pub(crate) builder: LocksBuilder,
    pub(crate) namespace: String,
    pub(crate) key_prefix: String,
    pub(crate) lease: Option<Span>,
    pub(crate) trusts_fresh_nodes: bool,
}

impl Reach {
    /// Reads the settings from the command line, the environment and the file.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let from_environment = || variable("QUORLOCK_CONFIG").map(PathBuf::from);
        let path = self.config.clone().or_else(from_environment);
        let file = path.map_or_else(|| Ok(File::default()), |path| read(&path))?;

        let key_prefix = self.key_prefix.as_ref().or(file.key_prefix.as_ref());
        let key_prefix = key_prefix.cloned().unwrap_or_default();
        let namespace = self.namespace.as_ref().or(file.namespace.as_ref());
        let namespace = namespace.cloned().unwrap_or_default();
        let builder = self.builder(&file).key_prefix(&key_prefix);
        let builder = builder.namespace(&namespace);

        let tls = self.tls.or(&file)?;
        let of_command_line = self.nodes.iter().flat_map(|list| addresses_of(list));
        let of_environment = addresses_of(&variable("QUORLOCK_NODES").unwrap_or_default());
        let nodes = [of_command_line.collect(), of_environment, file.nodes];
        let Some(nodes) = nodes.into_iter().find(|nodes| !nodes.is_empty()) else {
            return Err(Failure::config(
                "no servers are configured: use --nodes redis://host:6379, set QUORLOCK_NODES, or use --config FILE",
            ));
        };
        let password_file = self
            .password_file
            .clone()
            .or_else(|| variable("QUORLOCK_PASSWORD_FILE").map(PathBuf::from))
            .or(file.password_file);
        let mut redis = tls.apply(RedisConfig::default())?;
        let mut nodes = nodes;
        if !tls.is_empty()
            && nodes
                .iter()
                .any(|node| begins_with_one_of(node, &WITHOUT_TLS))
        {
            return Err(Failure::config(
                "the files for TLS are for rediss:// alone: a connection to postgres://, mysql://, etcd:// or zk:// is not encrypted here, so use a tunnel",
            ));
        }
        if !tls.is_empty() && nodes.iter().any(|node| node.starts_with("mongodb://")) {
            return Err(Failure::config(
                "the files for TLS are for rediss:// alone: those of mongodb:// are in its address, as tlsCAFile and tlsCertificateKeyFile",
            ));
        }
        if !tls.is_empty() && nodes.iter().any(|node| node.starts_with("s3://")) {
            return Err(Failure::config(
                "the files for TLS are for rediss:// alone: a connection to s3:// trusts the authorities of the operating system",
            ));
        }
        if let Some(path) = &password_file {
            // An error about a file without a password is reported before a server is contacted.
            let password = password(path)?;
            redis = redis.credentials(PasswordFile::new(path));
            for node in nodes.iter_mut().filter(|node| is_store_with_login(node)) {
                *node = with_password(node, &password);
            }
        }

        Ok(Settings {
            addresses: nodes,
            builder: builder.redis(redis),
            namespace,
            key_prefix,
            lease: file.lease,
            trusts_fresh_nodes: self.trust_fresh_nodes || file.trust_fresh_nodes,
        })
    }

    /// Returns the settings of the locks, without those of their servers.
    fn builder(&self, file: &File) -> LocksBuilder {
        let mut builder = Locks::builder();
        if let Some(longest) = self.longest_lease.or(file.longest_lease) {
            builder = builder.longest_lease(longest.0);
        }
        if let Some(margin) = file.clock_margin {
            builder = builder.clock_margin(margin.0);
        }
        if let Some(retention) = file.token_retention {
            builder = builder.token_retention(Some(retention.0));
        }
        if let Some(timeout) = file.member_timeout {
            builder = builder.member_timeout(timeout.0);
        }
        if self.trust_fresh_nodes || file.trust_fresh_nodes {
            builder = builder.trust_fresh_nodes();
        }
        builder
    }
}

/// Stores whose addresses have no place for the files of TLS.
const WITHOUT_TLS: [&str; 5] = [
    "etcd://",
    "mysql://",
    "postgres://",
    "postgresql://",
    "zk://",
];

fn begins_with_one_of(address: &str, schemes: &[&str]) -> bool {
    schemes.iter().any(|scheme| address.starts_with(scheme))
}

/// Whether an address may have a password.
fn is_store_with_login(address: &str) -> bool {
    begins_with_one_of(address, &WITHOUT_TLS) || address.starts_with("mongodb://")
}

/// Returns the address of a database, of etcd or of ZooKeeper with this password, unless it has one or names no user.
fn with_password(address: &str, password: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or_default();
    match rest.split_once('@') {
        Some((user, rest)) if !user.contains(':') => {
            let bytes = password.bytes();
            let password: String = bytes.map(|byte| format!("%{byte:02x}")).collect();
            format!("{scheme}://{user}:{password}@{rest}")
        }
        _ => address.to_owned(),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Splits a list of addresses. A comma separates two addresses only if a scheme follows it, because the address of a
/// Sentinel group contains commas, and a password or the path of a socket may.
pub(crate) fn addresses_of(list: &str) -> Vec<String> {
    let mut addresses = Vec::new();
    let mut rest = list;
    while let Some(end) = rest
        .match_indices(',')
        .map(|(comma, _)| comma)
        .find(|comma| rest.get(comma + 1..).is_some_and(begins_with_scheme))
    {
        let (address, tail) = rest.split_at(end);
        addresses.push(address);
        rest = tail.trim_start_matches(',');
    }
    addresses.push(rest);
    let addresses = addresses.into_iter();
    let addresses = addresses.map(|address| address.trim().trim_matches(',').trim());
    addresses
        .filter(|address| !address.is_empty())
        .map(String::from)
        .collect()
}

fn begins_with_scheme(text: &str) -> bool {
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let text = text.trim_start();
    text.starts_with("sqlite:")
        || text
            .split_once("://")
            .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(is_of_scheme))
}

fn read(path: &Path) -> Result<File, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::config(format!("{shown}: cannot be read: {error}")))?;
    file_of(path, &text)
}

/// Parses the text of a settings file.
pub(crate) fn file_of(path: &Path, text: &str) -> Result<File, Failure> {
    let shown = path.display();
    toml::from_str(text).map_err(|error| {
        // The error's own text quotes the line, which may contain a password. Its message quotes the misplaced value.
        let message = match error.message() {
            message if message.contains("://") => {
                "an address is in the wrong place: addresses are a list, nodes = [\"redis://..\"]"
            }
            message => message,
        };
        let line = error
            .span()
            .map(|span| text.get(..span.start).unwrap_or_default());
        let line = line.map_or(0, |before| before.matches('\n').count() + 1);
        Failure::config(format!("{shown}, line {line}: {message}"))
    })
}

/// Returns the password in a file: its first line.
fn password(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::config(format!("{shown}: the password cannot be read: {error}"))
    })?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(Failure::config(format!(
            "{shown}: the first line must be the password, but is empty"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_is_between_addresses_where_a_scheme_follows() {
        for (list, addresses) in [
            ("", &[][..]),
            (" , ", &[]),
            ("redis://a", &["redis://a"]),
            ("redis://a,", &["redis://a"]),
            (
                "redis://a, valkey://b,,rediss://c",
                &["redis://a", "valkey://b", "rediss://c"],
            ),
            (
                "redis+sentinel://h1:1,h2,h3/m/1,redis://b",
                &["redis+sentinel://h1:1,h2,h3/m/1", "redis://b"],
            ),
            (
                "redis://b,redis+sentinel://h1,h2/m?sentinel_user=a,b",
                &["redis://b", "redis+sentinel://h1,h2/m?sentinel_user=a,b"],
            ),
            (
                "unix:///a,b.sock,unix:///c",
                &["unix:///a,b.sock", "unix:///c"],
            ),
            ("redis://:a,b@h,unix:///c", &["redis://:a,b@h", "unix:///c"]),
            (
                "postgres://h1,h2/db,sqlite:/a,b,sqlite:c",
                &["postgres://h1,h2/db", "sqlite:/a,b", "sqlite:c"],
            ),
            // An error is reported for the whole address, which is not corrected silently.
            ("redis://a,b", &["redis://a,b"]),
            ("a,b", &["a,b"]),
        ] {
            assert_eq!(addresses_of(list), addresses, "{list}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_without_its_words() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("quorlock.toml");
        std::fs::write(&path, "lease = \"30s\"\nnodes = [\"redis://:s3cret@h\"\n").unwrap();
        let failure = read(&path).unwrap_err();
        assert!(failure.text.contains("line "), "{failure:?}");
        assert!(!failure.text.contains("s3cret"), "{failure:?}");
        for text in [
            "nodes = \"redis://:s3cret@h\"",
            "lease = \"redis://:s3cret@h\"",
            "\"redis://:s3cret@h\" = 1",
        ] {
            let failure = file_of(&path, text).unwrap_err();
            assert!(!failure.text.contains("s3cret"), "{failure:?}");
            assert!(failure.text.contains("line 1: an address"), "{failure:?}");
        }
        std::fs::write(&path, "leese = \"30s\"\n").unwrap();
        let failure = read(&path).unwrap_err();
        assert!(
            failure.text.contains("unknown field `leese`"),
            "{failure:?}"
        );
    }
}
