//! Whether a server will do.

use std::fmt;

use quorlock_core::transport::{Cause, Execution, Transport as _, TransportError};
use redis::Value;

use crate::address::AddressError;
use crate::config::RedisConfig;
use crate::doubt::{self, Doubt};
use crate::info::Info;
use crate::link::Link;
use crate::timer;
use crate::transport::RedisTransport;
use crate::wait::Wait;
use crate::{error, key};

/// The oldest version that knows `WAITAOF`.
const OLDEST_WITH_DISK_WAIT: (u32, u32) = (7, 2);

/// The oldest major version whose scripts may write after they have read the time.
const OLDEST_MAJOR: u32 = 5;

impl RedisTransport {
    /// Takes the address of a server, connects, and checks that it will do (see [`check`](Self::check)).
    ///
    /// # Errors
    /// [`ConnectError`] says what is in the way, and what to do.
    pub async fn connect(address: &str, config: RedisConfig) -> Result<Self, ConnectError> {
        let transport = Self::open(address, config).map_err(ConnectError::Address)?;
        transport.check().await?;
        Ok(transport)
    }

    /// Checks that the server answers, is a primary, is not older than version 5, and knows how to wait for its disk if the
    /// configuration wants that; says which process it is.
    ///
    /// A user who may not ask (`INFO`) is believed, and told nothing.
    ///
    /// # Errors
    /// [`ConnectError`] says what is in the way, and what to do.
    pub async fn check(&self) -> Result<Checked, ConnectError> {
        let mut info = Info::default();
        let wait = self.wait();
        let needs_disk = wait.is_some_and(Wait::needs_disk);
        let persistence = needs_disk.then_some("persistence");
        for section in ["server", "replication"].into_iter().chain(persistence) {
            match self.command(redis::cmd("INFO").arg(section)).await {
                Ok(text) if info.add(&text) => {}
                Ok(_) => return Err(self.not_redis("INFO was answered with no text".into())),
                Err(error) if error.cause == Cause::NoPermission => return Ok(Checked::default()),
                Err(error) => return Err(self.refused(error)),
            }
        }
        self.judge(&info)
    }

    /// What is legal on this server and doubtful, for locks on names with this prefix. It is asked on a connection of its own; what
    /// it does not say, or the user may not ask, gives rise to no doubt.
    pub async fn doubts(&self, prefix: &str) -> Vec<Doubt> {
        let deadline = timer::now() + self.target().config().connect_timeout;
        let asked = timer::by(deadline, self.look(prefix)).await;
        asked.and_then(Result::ok).unwrap_or_default()
    }

    async fn look(&self, prefix: &str) -> Result<Vec<Doubt>, TransportError> {
        let deadline = timer::now() + self.target().config().connect_timeout;
        let link = Link::trial(self.target(), deadline).await?;
        let mut info = Info::default();
        for section in ["memory", "persistence", "replication"] {
            info.add(
                &link
                    .ask(self.target(), redis::cmd("INFO").arg(section))
                    .await?,
            );
        }
        let mut doubts = doubt::of_info(&info);
        if self.target().source().group().is_some() {
            // Which is what a group is for.
            doubts.retain(|doubt| !matches!(doubt, Doubt::HasReplicas { .. }));
        }
        let channel = key::channel(&format!("{prefix}quorlock")).to_string();
        let answer = link
            .ask(self.target(), redis::cmd("SUBSCRIBE").arg(channel))
            .await?;
        if let Value::ServerError(refusal) = answer
            && error::server(&refusal).cause == Cause::NoPermission
        {
            doubts.push(Doubt::MayNotSubscribe);
        }
        Ok(doubts)
    }

    fn judge(&self, info: &Info) -> Result<Checked, ConnectError> {
        let field = |name: &str| info.field(name).map(String::from);
        let address = self.address().to_owned();
        match info.field("redis_mode") {
            Some("sentinel") => return Err(ConnectError::Sentinel { address }),
            Some("cluster") => return Err(ConnectError::ClusterNode { address }),
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
            Some("slave" | "replica") => Err(ConnectError::Replica { address }),
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

    fn refused(&self, error: TransportError) -> ConnectError {
        let address = self.address().to_owned();
        let detail = error.detail.clone();
        match (error.cause, error.execution) {
            (Cause::Unreachable, _) => ConnectError::Unreachable { address, detail },
            (Cause::TimedOut, _) => ConnectError::TimedOut { address, detail },
            (Cause::NoAuth, _) => ConnectError::BadCredentials { address, detail },
            (Cause::Tls, _) => ConnectError::Tls { address, detail },
            (Cause::Protocol | Cause::Unsupported, _)
            | (Cause::Server, Execution::Indeterminate) => {
                ConnectError::NotRedis { address, detail }
            }
            _ => ConnectError::Refused { address, error },
        }
    }
}

/// What a server lacks that is to say when a write is on its disk (`WAITAOF`).
fn lack_of_disk(version: &str, aof_enabled: Option<&str>) -> Option<&'static str> {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let (major, minor) = (numbers.next().flatten()?, numbers.next().flatten()?);
    if (major, minor) < OLDEST_WITH_DISK_WAIT {
        return Some("that needs version 7.2 or newer");
    }
    (aof_enabled == Some("0")).then_some("that needs appendonly yes")
}

/// What a server that will do says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Checked {
    /// Which process it is.
    pub run_id: Option<RunId>,
    /// Whether the next backup may look like a restart.
    pub backlog: Backlog,
}

/// Whether a server keeps a backlog for replicas. One without draws its `master_replid` anew when the first replica
/// attaches, and `redis-cli --rdb` attaches as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Backlog {
    /// It does not say.
    #[default]
    Unknown,
    /// It keeps one (and frees it `repl-backlog-ttl` after the last replica left, unless that is 0).
    Active,
    /// It keeps none.
    Missing,
}

/// Which process a server is: a random id that it draws when it starts. Two addresses with one id are one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunId(String);

/// Why a server cannot be used. Holds no secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be used.
    Address(AddressError),
    /// No connection could be made.
    Unreachable {
        /// Of the server.
        address: String,
        /// The words of the operating system.
        detail: String,
    },
    /// The server does not answer.
    TimedOut {
        /// Of the server.
        address: String,
        /// Which time-out ran out.
        detail: String,
    },
    /// The server wants other credentials.
    BadCredentials {
        /// Of the server.
        address: String,
        /// The words of the server.
        detail: String,
    },
    /// The connection cannot be encrypted: certificates, names, versions.
    Tls {
        /// Of the server.
        address: String,
        /// What is wrong, and what to do.
        detail: String,
    },
    /// Whatever answers does not speak Redis.
    NotRedis {
        /// Of the server.
        address: String,
        /// What it said.
        detail: String,
    },
    /// The server is older than version 5.
    TooOld {
        /// Of the server.
        address: String,
        /// Its version.
        version: String,
    },
    /// Grants are to wait for the disk, and the server does not know how to.
    NoDiskWait {
        /// Of the server.
        address: String,
        /// Its version.
        version: String,
        /// What is missing.
        lack: &'static str,
    },
    /// The server is a replica.
    Replica {
        /// Of the server.
        address: String,
    },
    /// The server is a Sentinel, which knows where a primary is, and holds no locks.
    Sentinel {
        /// Of the Sentinel.
        address: String,
    },
    /// The server is a node of a Redis Cluster.
    ClusterNode {
        /// Of the node.
        address: String,
    },
    /// The server is an active replica of KeyDB, which merges what was written on both sides: each side grants the same lock.
    ActiveReplica {
        /// Of the server.
        address: String,
    },
    /// The server answered with another error.
    Refused {
        /// Of the server.
        address: String,
        /// The error.
        error: TransportError,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, cause, detail) = match self {
            ConnectError::Address(error) => return fmt::Display::fmt(error, f),
            ConnectError::Unreachable { address, detail } => (address, Cause::Unreachable, detail),
            ConnectError::TimedOut { address, detail } => (address, Cause::TimedOut, detail),
            ConnectError::BadCredentials { address, detail } => (address, Cause::NoAuth, detail),
            ConnectError::Tls { address, detail } => (address, Cause::Tls, detail),
            ConnectError::NotRedis { address, detail } => (address, Cause::Protocol, detail),
            ConnectError::TooOld { address, version } => {
                return write!(
                    f,
                    "{address} runs version {version}: locks need Redis {OLDEST_MAJOR} or newer, or Valkey"
                );
            }
            ConnectError::NoDiskWait {
                address,
                version,
                lack,
            } => {
                return write!(
                    f,
                    "{address} runs version {version}, and Wait::on_disk was set: {lack}"
                );
            }
            ConnectError::Replica { address } => {
                return write!(f, "{address} is a replica: give the address of its primary");
            }
            ConnectError::Sentinel { address } => {
                return write!(
                    f,
                    "{address} is a Sentinel: write redis+sentinel://host:port/NAME with the name of the primary that it watches, \
                     or give the address of that primary"
                );
            }
            ConnectError::ClusterNode { address } => {
                return write!(
                    f,
                    "{address} is a node of a Redis Cluster, which redis:// does not lead to: its keys are moved between nodes, and \
                     clusters are not supported yet. Give the address of a server that is in none"
                );
            }
            ConnectError::ActiveReplica { address } => {
                return write!(
                    f,
                    "{address} is an active replica of KeyDB, which merges the writes of both sides, so that each grants the same lock: \
                     set active-replica no"
                );
            }
            ConnectError::Refused { address, error } => return write!(f, "{address}: {error}"),
        };
        write!(f, "{address}: {}: {detail}", cause.advice())
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConnectError::Address(error) => Some(error),
            ConnectError::Refused { error, .. } => Some(error),
            _ => None,
        }
    }
}

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
