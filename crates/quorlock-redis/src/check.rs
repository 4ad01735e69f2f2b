//! Checks whether a server is suitable for locks.

mod connect_error;

use std::sync::Arc;

use futures_util::future::join_all;
use quorlock_core::name::Name;
use quorlock_core::transport::{Cause, Execution, Transport as _, TransportError};
use redis::Value;

pub use self::connect_error::ConnectError;
use crate::config::RedisConfig;
use crate::doubtful_settings::{self, Doubt};
use crate::info::Info;
use crate::link::Connection;
use crate::server::Server;
use crate::target::Target;
use crate::timer::{self, Instant};
use crate::transport::RedisTransport;
use crate::wait::Wait;
use crate::{error, key};

/// The oldest version that has `WAITAOF`.
const OLDEST_WITH_DISK_WAIT: (u32, u32) = (7, 2);

/// The oldest major version whose scripts may write after reading the time.
const OLDEST_MAJOR: u32 = 5;

/// What Envoy replies instead of an error code to a command that it does not forward.
const WORD_OF_ENVOY: &str = "unsupported command";

impl RedisTransport {
    /// Opens the address of a server, connects, and checks that the server is suitable (see [`check`](Self::check)).
    ///
    /// # Errors
    /// [`ConnectError`] states what is wrong, and what to do.
    pub async fn connect(address: &str, config: RedisConfig) -> Result<Self, ConnectError> {
        let transport = Self::open(address, config).map_err(ConnectError::Address)?;
        transport.check().await?;
        Ok(transport)
    }

    /// Checks that the server answers, is a primary, is at least version 5, and can wait for its disk if the
    /// configuration requires that. Returns which process it is.
    ///
    /// If the user may not use `INFO`, the check passes without information. In a cluster, each server that owns slots is
    /// checked, and at least one of them must answer.
    ///
    /// # Errors
    /// [`ConnectError`] states what is wrong, and what to do.
    pub async fn check(&self) -> Result<Checked, ConnectError> {
        let servers = self.servers().await?;
        let checks = join_all(servers.iter().map(|server| self.check_server(server))).await;
        let mut checked = None;
        let mut problem = None;
        for check in checks {
            match check {
                Ok(found) => checked = checked.or(Some(found)),
                // Some of several servers may be down at the moment. A problem that waiting does not cure is reported
                // first.
                Err(error) => problem = problem.filter(ConnectError::is_final).or(Some(error)),
            }
        }
        match (checked, problem) {
            (Some(checked), None) => Ok(checked),
            (Some(checked), Some(problem)) if !problem.is_final() => Ok(checked),
            (_, Some(problem)) => Err(problem),
            (None, None) => Ok(Checked::default()),
        }
    }

    /// Returns the addresses of the servers that requests go to: one server, all owners of slots in a cluster, or the
    /// owner of a shard's tag.
    ///
    /// # Errors
    /// [`ConnectError`] if the servers cannot be found.
    pub async fn primaries(&self) -> Result<Vec<String>, ConnectError> {
        let servers = self.servers().await?;
        let shown = servers.iter().map(|server| server.target.shown());
        Ok(shown.map(String::from).collect())
    }

    pub(crate) async fn servers(&self) -> Result<Vec<Arc<Server>>, ConnectError> {
        let deadline = timer::now() + self.config().connect_timeout;
        let servers = timer::by(deadline, self.routes().all()).await;
        let servers = servers.unwrap_or_else(|| Err(error::no_handshake()));
        servers.map_err(|error| self.refused(error))
    }

    /// Checks one of the servers.
    async fn check_server(&self, server: &Server) -> Result<Checked, ConnectError> {
        let mut info = Info::default();
        let needs_disk = self.wait().is_some_and(Wait::needs_disk);
        let persistence = needs_disk.then_some("persistence");
        for section in ["server", "replication"].into_iter().chain(persistence) {
            match server.command(redis::cmd("INFO").arg(section)).await {
                Ok(text) if info.add(&text) => {}
                Ok(_) => return Err(self.not_redis("the reply to INFO is not text".into())),
                Err(error) if error.cause == Cause::NoPermission => return Ok(Checked::default()),
                Err(error) => return Err(self.explained(server, error).await),
            }
        }
        self.judge(&info)
    }

    /// Returns the settings of the server that are legal but doubtful, for locks on names with this prefix. It queries
    /// them on a separate connection. A setting that the server does not report, or that the user may not query,
    /// raises no doubt.
    pub async fn doubts(&self, prefix: impl AsRef<[u8]>) -> Vec<Doubt> {
        let prefix = prefix.as_ref();
        let deadline = timer::now() + self.config().connect_timeout;
        let servers = timer::by(deadline, self.routes().all()).await;
        let servers = servers.and_then(Result::ok).unwrap_or_default();
        let looks = servers.iter().map(|server| async move {
            let asked = timer::by(deadline, look(&server.target, prefix, deadline)).await;
            asked.and_then(Result::ok).unwrap_or_default()
        });
        let mut doubts: Vec<Doubt> = Vec::new();
        for doubt in join_all(looks).await.into_iter().flatten() {
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
        if self.routes().group().is_some() {
            // Groups and clusters have replicas on purpose.
            doubts.retain(|doubt| !matches!(doubt, Doubt::HasReplicas { .. }));
        }
        doubts
    }

    fn judge(&self, info: &Info) -> Result<Checked, ConnectError> {
        let field = |name: &str| info.field(name).map(String::from);
        let address = self.address().to_owned();
        // Valkey has another name for this field. (Seen on 9.1.2.)
        let mode = info.field("redis_mode").or(info.field("server_mode"));
        match mode {
            Some("sentinel") => return Err(ConnectError::Sentinel { address }),
            Some("cluster") if !self.is_of_cluster() => {
                return Err(ConnectError::ClusterNode { address });
            }
            _ => {}
        }
        let Some(version) = field("redis_version") else {
            return Err(self.not_redis("INFO names no redis_version".into()));
        };
        let major = version
            .split('.')
            .next()
            .and_then(|v| v.parse::<u32>().ok());
        if major.is_some_and(|major| major < OLDEST_MAJOR) {
            return Err(ConnectError::TooOld { address, version });
        }
        let wait = self.wait();
        if wait.is_some_and(Wait::needs_disk)
            && let Some(lack) = lack_of_disk(&version, field("aof_enabled").as_deref())
        {
            return Err(ConnectError::NoDiskWait {
                address,
                version,
                lack,
            });
        }
        match field("role").as_deref() {
            // In a cluster, this happens after a failover until the next query of the slot map. Requests are redirected
            // to the new owner.
            Some("slave" | "replica") if !self.is_of_cluster() => {
                Err(ConnectError::Replica { address })
            }
            Some("active-replica") => Err(ConnectError::ActiveReplica { address }),
            _ => Ok(Checked {
                run_id: field("run_id").filter(|id| !id.is_empty()).map(RunId),
                backlog: match field("repl_backlog_active").as_deref() {
                    Some("0") => Backlog::Missing,
                    Some(_) => Backlog::Active,
                    None => Backlog::Unknown,
                },
            }),
        }
    }

    fn not_redis(&self, detail: String) -> ConnectError {
        ConnectError::NotRedis {
            address: self.address().to_owned(),
            detail,
        }
    }

    /// Finds the reason for an error of the first command.
    async fn explained(&self, server: &Server, error: TransportError) -> ConnectError {
        let address = self.address().to_owned();
        // A proxy for several servers cannot report the `INFO` of one of them.
        if error.cause == Cause::Unsupported || error.detail.starts_with(WORD_OF_ENVOY) {
            let detail = error.detail;
            return ConnectError::Proxy { address, detail };
        }
        if error.cause == Cause::Unreachable && ends_at_load(&server.target).await {
            let detail = "it answers PING, and ends the connection at SCRIPT LOAD".into();
            return ConnectError::Proxy { address, detail };
        }
        self.refused(error)
    }

    fn refused(&self, error: TransportError) -> ConnectError {
        let address = self.address().to_owned();
        let error = self.timed(error);
        let detail = error.detail.clone();
        match (error.cause, error.execution) {
            (Cause::Unreachable, _) => ConnectError::Unreachable { address, detail },
            (Cause::TimedOut, _) => ConnectError::TimedOut { address, detail },
            (Cause::NoAuth, _) => ConnectError::BadCredentials { address, detail },
            (Cause::Tls, _) => ConnectError::Tls { address, detail },
            (Cause::Protocol, _) | (Cause::Server, Execution::Indeterminate) => {
                ConnectError::NotRedis { address, detail }
            }
            _ => ConnectError::Refused { address, error },
        }
    }
}

/// Queries the server of a target for doubtful settings.
async fn look(
    target: &Target,
    prefix: &[u8],
    deadline: Instant,
) -> Result<Vec<Doubt>, TransportError> {
    let link = Connection::trial(target, deadline).await?;
    let mut info = Info::default();
    for section in ["memory", "persistence", "replication", "cluster"] {
        info.add(&link.ask(target, redis::cmd("INFO").arg(section)).await?);
    }
    let mut doubts = doubtful_settings::of_info(&info);
    if info.field("cluster_enabled") == Some("1") {
        let mut coverage = redis::cmd("CONFIG");
        coverage.arg("GET").arg("cluster-require-full-coverage");
        doubts.extend(doubtful_settings::of_coverage(
            &link.ask(target, &coverage).await?,
        ));
    }
    let namespace = &*target.config().namespace;
    let prefix = prefix.strip_prefix(namespace).unwrap_or(prefix);
    let name = Name::within(namespace, [prefix, b"quorlock"].concat());
    if let Ok(name) = name
        && may_not_subscribe(&link, target, &name).await?
    {
        doubts.push(Doubt::MayNotSubscribe);
    }
    Ok(doubts)
}

/// Returns whether the user may not subscribe to the channel of a name. The connection is subscribed afterwards.
pub(crate) async fn may_not_subscribe(
    link: &Connection,
    target: &Target,
    name: &Name,
) -> Result<bool, TransportError> {
    let channel = key::channel(name).to_bytes();
    let answer = link
        .ask(target, redis::cmd("SUBSCRIBE").arg(channel))
        .await?;
    Ok(match answer {
        Value::ServerError(refusal) => error::server(&refusal).cause == Cause::NoPermission,
        _ => false,
    })
}

/// Returns whether a new connection ends at `SCRIPT LOAD`, after `PING` was answered on it.
///
/// Twemproxy ends a connection when it receives a command that it does not know, such as `SCRIPT`, but answers `PING`. A server
/// that was not reached at first, and was started or promoted meanwhile, answers both.
async fn ends_at_load(target: &Target) -> bool {
    let deadline = timer::now() + target.config().connect_timeout;
    let asked = async {
        let link = Connection::trial(target, deadline).await.ok()?;
        let answer = link.ask(target, &redis::cmd("PING")).await.ok()?;
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg("return 1");
        let is_up = matches!(answer, Value::SimpleString(word) if word == "PONG");
        Some(is_up && link.ask(target, &load).await.is_err())
    };
    timer::by(deadline, asked).await.flatten() == Some(true)
}

/// Returns what a server lacks to report when a write is on its disk (`WAITAOF`).
fn lack_of_disk(version: &str, aof_enabled: Option<&str>) -> Option<&'static str> {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let (major, minor) = (numbers.next().flatten()?, numbers.next().flatten()?);
    if (major, minor) < OLDEST_WITH_DISK_WAIT {
        return Some("that needs version 7.2 or newer");
    }
    (aof_enabled == Some("0")).then_some("that needs appendonly yes")
}

/// A suitable server's report about itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Checked {
    /// The server's process; `None` if the user may not query it.
    pub run_id: Option<RunId>,
    /// Whether the server keeps a replication backlog. Without one, the next backup may look like a restart.
    pub backlog: Backlog,
}

/// Whether a server keeps a replication backlog. Without one, it draws a new `master_replid` when the first replica
/// attaches, and `redis-cli --rdb` attaches as a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Backlog {
    /// The server does not report it.
    #[default]
    Unknown,
    /// The server keeps one, and frees it `repl-backlog-ttl` after the last replica has left, unless that is 0.
    Active,
    /// The server keeps none.
    Missing,
}

/// Identifies the process of a server: a random id that it draws at its start. Two addresses with one id are the same
/// server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunId(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_primary_server_is_told_by_name() {
        let address = "redis://u:s3cret@h/";
        let transport = RedisTransport::open(address, RedisConfig::default()).unwrap();
        let judged = |text: &str| transport.judge(&Info::of(text));
        for (text, says) in [
            (
                "redis_mode:sentinel\r\nredis_version:7.0.15\r\n",
                "redis+sentinel://",
            ),
            (
                "redis_version:7.0.15\r\nredis_mode:cluster\r\nrole:master\r\n",
                "Cluster",
            ),
            (
                "redis_version:7.2.4\r\nserver_name:valkey\r\nserver_mode:cluster\r\nrole:master\r\n",
                "Cluster",
            ),
            (
                "redis_version:7.2.4\r\nserver_name:valkey\r\nserver_mode:sentinel\r\n",
                "redis+sentinel://",
            ),
            (
                "redis_version:6.3.4\r\nrole:active-replica\r\n",
                "active-replica no",
            ),
            ("redis_version:7.0.15\r\nrole:slave\r\n", "is a replica"),
            (
                "redis_version:4.0.14\r\nrole:master\r\n",
                "Redis 5 or newer",
            ),
            ("role:master\r\n", "redis_version"),
        ] {
            let error = judged(text).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
        let fine = "redis_version:7.0.15\r\nredis_mode:standalone\r\nrole:master\r\n";
        judged(fine).unwrap();
    }

    #[test]
    fn waiting_for_the_disk_needs_a_new_server_with_an_append_only_file() {
        for (version, aof_enabled, is_able) in [
            ("7.0.15", Some("1"), false),
            ("6.2.14", Some("1"), false),
            ("7.2.0", Some("0"), false),
            ("7.2.0", Some("1"), true),
            ("8.0.1", Some("1"), true),
            ("10.0.0", None, true),
            ("unknown", Some("0"), true),
        ] {
            let lack = lack_of_disk(version, aof_enabled);
            assert_eq!(lack.is_none(), is_able, "{version} {aof_enabled:?}");
        }
    }
}
