//! Finds the names that may be held, by SCAN.

use futures_util::future::join_all;
use quorlock_core::name::Name;
use quorlock_core::transport::{Cause, TransportError};
use redis::{Cmd, FromRedisValue as _, Value};

use crate::check::ConnectError;
use crate::error;
use crate::reserved;
use crate::server::Server;
use crate::transport::RedisTransport;

/// The number of keys that a server examines in one step.
const STEP: usize = 500;

/// The names on one server that may be held.
#[doc(hidden)]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScannedServer {
    /// The server's address, without credentials.
    pub address: String,
    /// The names, or the reason why they are not known.
    pub names: Result<Vec<Name>, TransportError>,
}

impl RedisTransport {
    /// Returns the names of keys that match a pattern of Redis behind the namespace, and expire, for each server that requests go to: one
    /// server, the primary of a Sentinel group, all owners of slots in a cluster, or the owner of a shard's tag. Of a
    /// shard these are the names without the tag.
    ///
    /// The servers are read in many small steps, each bounded by the call time-out. Names that are acquired or released
    /// in the meantime may be missing.
    ///
    /// # Errors
    /// [`ConnectError`] if the servers cannot be found.
    #[doc(hidden)]
    pub async fn scan(&self, pattern: &str) -> Result<Vec<ScannedServer>, ConnectError> {
        let namespace = &*self.config().namespace;
        let tag = self.routes().name_prefix();
        let prefix = [namespace, tag.as_bytes()].concat();
        // The namespace may contain characters that are special in a pattern.
        let literal = namespace.iter().flat_map(|byte| [b'\\', *byte]);
        let pattern = literal.chain(tag.bytes()).chain(pattern.bytes());
        let pattern: Vec<u8> = pattern.collect();
        let servers = self.servers().await?;
        let scans = servers.iter().map(|server| async {
            ScannedServer {
                address: server.target.shown().to_owned(),
                names: names(server, namespace, &prefix, &pattern).await,
            }
        });
        Ok(join_all(scans).await)
    }
}

async fn names(
    server: &Server,
    namespace: &[u8],
    prefix: &[u8],
    pattern: &[u8],
) -> Result<Vec<Name>, TransportError> {
    let mut names = Vec::new();
    let mut cursor = 0_u64;
    loop {
        let mut step = redis::cmd("SCAN");
        step.arg(cursor).arg("MATCH").arg(pattern);
        let answer = server.command(step.arg("COUNT").arg(STEP)).await?;
        let (next, keys) = <(u64, Vec<Vec<u8>>)>::from_redis_value(answer)
            .map_err(|_| error::no_reply("the reply to SCAN is of another kind"))?;
        let looks = keys.iter().map(|key| expires(server, key));
        for (key, expires) in keys.iter().zip(join_all(looks).await) {
            // A key that cannot be a name stores other data of a lock or of a server.
            if expires?
                && let Some(name) = key.strip_prefix(prefix)
                && let Ok(name) = Name::within(namespace, name)
                && let Some(stored) = key.strip_prefix(namespace)
                && let Ok(stored) = Name::within(namespace, stored)
                && [&stored, &name]
                    .iter()
                    .all(|name| reserved::kept_under(name).is_none())
            {
                names.push(name);
            }
        }
        cursor = next;
        if cursor == 0 {
            return Ok(names);
        }
    }
}

/// Whether a key expires, as every claim does.
async fn expires(server: &Server, key: &[u8]) -> Result<bool, TransportError> {
    let look: &mut Cmd = &mut redis::cmd("PTTL");
    match server.command(look.arg(key)).await {
        Ok(Value::Int(left)) => Ok(0 < left),
        Ok(_) => Err(error::no_reply("the reply to PTTL is of another kind")),
        // The slot of the key has moved since the step. Its new owner may have been scanned before that, so the key
        // counts as found: A's claim would be on neither list otherwise.
        Err(error) if error.cause == Cause::Cluster && is_redirect(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

fn is_redirect(error: &TransportError) -> bool {
    ["MOVED", "ASK", "TRYAGAIN"]
        .iter()
        .any(|word| error.detail.starts_with(word))
}
