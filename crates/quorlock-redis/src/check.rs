//! Whether a server will do.

use std::fmt;

use quorlock_core::transport::{Cause, Execution, Transport as _, TransportError};
use redis::Value;

use crate::address::AddressError;
use crate::config::RedisConfig;
use crate::transport::RedisTransport;
use crate::wait::Wait;

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
        let mut info = String::new();
        let wait = self.wait();
        let needs_disk = wait.is_some_and(Wait::needs_disk);
        let persistence = needs_disk.then_some("persistence");
        for section in ["server", "replication"].into_iter().chain(persistence) {
            match self.command(redis::cmd("INFO").arg(section)).await {
                Ok(Value::BulkString(text)) => info.push_str(&String::from_utf8_lossy(&text)),
                Ok(Value::SimpleString(text)) => info.push_str(&text),
                Ok(Value::VerbatimString { text, .. }) => info.push_str(&text),
                Ok(_) => return Err(self.not_redis("INFO was answered with no text".into())),
                Err(error) if error.cause == Cause::NoPermission => return Ok(Checked::default()),
                Err(error) => return Err(self.refused(error)),
            }
        }
        self.judge(&info)
    }

    fn judge(&self, info: &str) -> Result<Checked, ConnectError> {
        let field = |name: &str| {
            info.lines()
                .filter_map(|line| line.trim_end().split_once(':'))
                .find_map(|(key, value)| (key == name).then(|| value.to_owned()))
        };
        let address = self.address().to_owned();
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
