//! The scripts of Quorlock without a client: one multiplexed connection to each server, and a wait for every reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Script, Value};

use super::program::Failure;

const ACQUIRE: &str = concat!(
    include_str!("../../../crates/quorlock-redis/lua/shared/clock.lua"),
    include_str!("../../../crates/quorlock-redis/lua/shared/counter.lua"),
    include_str!("../../../crates/quorlock-redis/lua/shared/value.lua"),
    include_str!("../../../crates/quorlock-redis/lua/acquire.lua"),
);
const RELEASE: &str = include_str!("../../../crates/quorlock-redis/lua/release.lua");
const CHECK: &str = include_str!("../../../crates/quorlock-redis/lua/check.lua");
const MARKER: &str = "quorlock_marker";

/// Without renewal, cancellation and errors. On several servers, the scripts check the process of the server and leave a
/// claim version, as those of Quorlock do there.
#[derive(Clone)]
pub(crate) struct Bare {
    servers: Vec<MarkedServer>,
    acquire: Arc<Script>,
    release: Arc<Script>,
    lease_millis: u64,
    next: Arc<AtomicU64>,
}

#[derive(Clone)]
struct MarkedServer {
    connection: MultiplexedConnection,
    /// The confirmed marker, if the scripts check the process of the server.
    marker: Option<String>,
}

/// A claim that is held.
pub(crate) struct BareClaim {
    bare: Bare,
    name: String,
    owner: String,
}

impl Bare {
    pub(crate) async fn connect(addresses: &[String], lease_millis: u64) -> Result<Bare, Failure> {
        let is_checked = 1 < addresses.len();
        let acquire = if is_checked {
            Script::new(&checked(ACQUIRE))
        } else {
            Script::new(ACQUIRE)
        };
        let release = Script::new(RELEASE);
        let mut servers = Vec::new();
        for address in addresses {
            let client = redis::Client::open(address.as_str())?;
            let mut connection = client.get_multiplexed_async_connection().await?;
            for script in [&acquire, &release] {
                script.load_async(&mut connection).await?;
            }
            let marker = match is_checked {
                true => Some(mark(&mut connection).await?),
                false => None,
            };
            servers.push(MarkedServer { connection, marker });
        }
        Ok(Bare {
            servers,
            acquire: Arc::new(acquire),
            release: Arc::new(release),
            lease_millis,
            next: Arc::default(),
        })
    }

    /// Sends a command to every server and waits for all replies.
    async fn send(&self, cmd: impl Fn(&MarkedServer) -> Cmd) -> Result<Vec<Value>, Failure> {
        let calls = self.servers.iter().map(|server| {
            let (mut connection, cmd) = (server.connection.clone(), cmd(server));
            async move { connection.send_packed_command(&cmd).await }
        });
        Ok(try_join_all(calls).await?)
    }

    pub(crate) async fn acquire(&self, name: &str) -> Result<BareClaim, Failure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let owner = format!("00000000-0000-4000-8000-000000000001:{number}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let (now, lease) = (u64::try_from(now)?, self.lease_millis);
        let replies = self.send(|server| {
            let mut cmd = redis::cmd("EVALSHA");
            cmd.arg(self.acquire.get_hash())
                .arg(if server.marker.is_some() { 4 } else { 3 })
                .arg(name)
                .arg(format!("redisson_lock_token:{{{name}}}"))
                .arg(format!("redisson_lock_queue:{{{name}}}"));
            if server.marker.is_some() {
                cmd.arg(MARKER);
            }
            // A claim with a version outlives its lease, so that others can observe that the version stays.
            let kept = if server.marker.is_some() {
                3 * lease
            } else {
                lease
            };
            cmd.arg(&owner).arg(1).arg(kept).arg(86_400_000);
            cmd.arg(now).arg(15_000);
            if let Some(marker) = &server.marker {
                cmd.arg(format!("1 {lease}")).arg("").arg("");
                cmd.arg(marker).arg("");
                cmd.arg("look").arg(0).arg(lease).arg(2 * lease);
            }
            cmd
        });
        for reply in replies.await? {
            // A reply other than a token is a table.
            if !matches!(reply, Value::Int(_)) {
                return Err(format!("not granted: {reply:?}").into());
            }
        }
        Ok(BareClaim {
            bare: self.clone(),
            name: name.to_owned(),
            owner,
        })
    }
}

impl BareClaim {
    pub(crate) async fn release(self) -> Result<(), Failure> {
        let replies = self.bare.send(|_| {
            let mut cmd = redis::cmd("EVALSHA");
            cmd.arg(self.bare.release.get_hash()).arg(1).arg(&self.name);
            cmd.arg(&self.owner)
                .arg(0)
                .arg(format!("redisson_lock__channel:{{{}}}", self.name));
            cmd
        });
        match replies.await?.iter().find(|reply| **reply != Value::Int(1)) {
            None => Ok(()),
            Some(other) => Err(format!("not freed: {other:?}").into()),
        }
    }
}

/// Returns a script that first checks the process of the server.
fn checked(script: &str) -> String {
    format!("local function execute()\n{script}\nend\n{CHECK}")
}

/// Returns the confirmed marker of a server. It is written if there is none.
async fn mark(connection: &mut MultiplexedConnection) -> Result<String, Failure> {
    let mut probe = redis::cmd("EVAL");
    probe.arg(checked("return false")).arg(1).arg(MARKER);
    probe.arg("").arg("");
    probe.arg("fresh").arg(1).arg(0).arg(60_000);
    let _: Value = probe.query_async(connection).await?;
    Ok(redis::cmd("GET")
        .arg(MARKER)
        .query_async(connection)
        .await?)
}
