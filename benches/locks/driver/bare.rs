//! The scripts of Quorlock, called over one multiplexed connection without a client: what they cost by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use redis::Script;
use redis::aio::MultiplexedConnection;

use crate::Failure;

const ACQUIRE: &str = concat!(
    include_str!("../../../../crates/quorlock-redis/lua/shared/clock.lua"),
    include_str!("../../../../crates/quorlock-redis/lua/shared/counter.lua"),
    include_str!("../../../../crates/quorlock-redis/lua/acquire.lua"),
);
const RELEASE: &str = include_str!("../../../../crates/quorlock-redis/lua/release.lua");

/// One server, without renewal, cancellation and errors.
#[derive(Clone)]
pub(crate) struct Bare {
    connection: MultiplexedConnection,
    acquire: Arc<Script>,
    release: Arc<Script>,
    lease_millis: u64,
    next: Arc<AtomicU64>,
}

/// A claim that is held.
pub(crate) struct BareClaim {
    bare: Bare,
    name: String,
    owner: String,
}

impl Bare {
    pub(crate) async fn connect(address: &str, lease_millis: u64) -> Result<Bare, Failure> {
        let client = redis::Client::open(address)?;
        Ok(Bare {
            connection: client.get_multiplexed_async_connection().await?,
            acquire: Arc::new(Script::new(ACQUIRE)),
            release: Arc::new(Script::new(RELEASE)),
            lease_millis,
            next: Arc::default(),
        })
    }

    pub(crate) async fn acquire(&self, name: &str) -> Result<BareClaim, Failure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let owner = format!("00000000-0000-4000-8000-000000000001:{number}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let mut call = self.acquire.key(name);
        call.key(format!("redisson_lock_token:{{{name}}}"))
            .key(format!("redisson_lock_queue:{{{name}}}"))
            .arg(&owner)
            .arg(1)
            .arg(self.lease_millis)
            .arg(86_400_000)
            .arg(u64::try_from(now)?)
            .arg(15_000);
        // A reply other than a token is a table, which is not a number.
        let _token: u64 = call.invoke_async(&mut self.connection.clone()).await?;
        Ok(BareClaim {
            bare: self.clone(),
            name: name.to_owned(),
            owner,
        })
    }
}

impl BareClaim {
    pub(crate) async fn release(mut self) -> Result<(), Failure> {
        let channel = format!("redisson_lock__channel:{{{}}}", self.name);
        let mut call = self.bare.release.key(&self.name);
        call.arg(&self.owner).arg(0).arg(channel);
        match call.invoke_async::<u64>(&mut self.bare.connection).await? {
            1 => Ok(()),
            other => Err(format!("not freed: {other}").into()),
        }
    }
}
