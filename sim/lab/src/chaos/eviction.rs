//! Eviction of a claim by the server itself, which has no memory left.

use std::io;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use redis::{Cmd, Pipeline};

use super::clock;
use super::lock_under_test;
use super::outcome::Struck;
use super::server_command::{ask, config, connect};

/// The longest time that the server may take to evict the claim.
const BOUND: Duration = Duration::from_secs(1);

/// The longest time that it may take to remove the limit, on a loaded machine.
const RESTORED: Duration = Duration::from_secs(30);

/// How much more memory the server may use than it uses when the fault begins, in bytes.
const HEADROOM: u64 = 4_096;

/// The number of keys that are written before the server has a limit. The server evicts these, and not all of its
/// claims, if the buffers of its connections grow in the meantime.
const BALLAST: usize = 256;

/// The number of keys that are written in one round after the server has a limit.
const ROUND: usize = 4;

/// The length of the value of a key that fills the memory, in bytes.
const BYTES: usize = 1_024;

/// The TTL of such a key, in seconds. The server evicts the key with the shortest TTL first: claims last for seconds,
/// and counters and markers for days.
const TTL: u64 = 3_600;

/// Makes a server evict the claim of a name. The server gets a limit just above the memory that it uses, and new keys
/// exceed the limit until the server reports that it has evicted the claim. Calls `began` at that time.
///
/// The fault has no effect, and counts as passed over, if the server has no claim of the name, or if the claim ends in
/// another way first.
pub(super) async fn evict(port: u16, name: u16, began: impl FnOnce()) -> Struck {
    let key = lock_under_test::name(name);
    let there: Option<u64> = ask(port, &["EXISTS", &key]).await;
    if there != Some(1) {
        return Struck::PassedOver;
    }
    let mut keys = Filler::default();
    let evicted = fill(port, &key, &mut keys).await;
    let is_evicted = matches!(evicted, Ok(Some(())));
    if is_evicted {
        began();
    }
    if restore(port, &keys).await.is_none() {
        return Struck::Lacks("a server kept its limit of memory".to_owned());
    }
    match evicted {
        Ok(Some(())) => Struck::Yes,
        Ok(None) => Struck::PassedOver,
        Err(error) => Struck::Lacks(error.to_string()),
    }
}

/// Removes the limit and the keys. Tries again while the server does not answer in time: a server that kept the limit
/// would evict claims for the rest of the run, and these would not be counted as faults.
async fn restore(port: u16, keys: &Filler) -> Option<()> {
    let mut commands = vec![
        config("maxmemory", "0"),
        config("maxmemory-policy", "noeviction"),
        config("notify-keyspace-events", ""),
    ];
    if 0 < keys.written {
        commands.push(keys.remove());
    }
    let attempt = async || {
        let mut connection = connect(port).await.ok()?;
        for command in &commands {
            let _: redis::Value = command.query_async(&mut connection).await.ok()?;
        }
        Some(())
    };
    clock::wait_for(RESTORED, attempt).await
}

/// Fills the server's memory. Returns `None` if the server does not evict the key in time.
async fn fill(port: u16, key: &str, keys: &mut Filler) -> io::Result<Option<()>> {
    let wrong = |error: redis::RedisError| io::Error::other(error.to_string());
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/")).map_err(wrong)?;
    let mut events = client.get_async_pubsub().await.map_err(wrong)?;
    events
        .subscribe("__keyevent@0__:evicted")
        .await
        .map_err(wrong)?;
    let mut connection = connect(port).await.map_err(wrong)?;
    let settings = [
        config("notify-keyspace-events", "Ee"),
        config("maxmemory-policy", "volatile-ttl"),
        // With this number of samples, the server compares all of its claims.
        config("maxmemory-samples", "64"),
    ];
    for setting in settings {
        let _: redis::Value = setting.query_async(&mut connection).await.map_err(wrong)?;
    }
    let ballast = keys.next(BALLAST);
    let _: redis::Value = ballast.query_async(&mut connection).await.map_err(wrong)?;
    let mut info = redis::cmd("INFO");
    let info: String = info
        .arg("memory")
        .query_async(&mut connection)
        .await
        .map_err(wrong)?;
    let limit = used(&info).map(|used| (used + HEADROOM).to_string());
    let limit = limit.ok_or_else(|| io::Error::other("a server does not report its memory"))?;
    let limit = config("maxmemory", &limit);
    let _: redis::Value = limit.query_async(&mut connection).await.map_err(wrong)?;
    let writing = async {
        loop {
            // The server answers with an error when it has nothing left to evict.
            let more = keys.next(ROUND);
            let _: Result<redis::Value, _> = more.query_async(&mut connection).await;
            clock::sleep(Duration::from_millis(1)).await;
        }
    };
    let mut messages = events.on_message();
    let reported = async {
        while let Some(message) = messages.next().await {
            if message.get_payload_bytes() == key.as_bytes() {
                return Some(());
            }
        }
        None
    };
    let (reported, writing) = (pin!(reported), pin!(writing));
    Ok(
        match clock::within(BOUND, select(reported, writing)).await {
            Some(Either::Left((reported, _))) => reported,
            _ => None,
        },
    )
}

/// Keys that fill the memory of a server.
#[derive(Debug, Default)]
struct Filler {
    /// The number of keys that were written.
    written: usize,
}

impl Filler {
    fn key(number: usize) -> String {
        format!("filler:{number}")
    }

    /// Returns the command that writes the next keys.
    fn next(&mut self, many: usize) -> Pipeline {
        let value = "x".repeat(BYTES);
        let mut commands = redis::pipe();
        for number in self.written..self.written + many {
            let mut set = redis::cmd("SET");
            set.arg(Filler::key(number)).arg(&value).arg("EX").arg(TTL);
            commands.add_command(set).ignore();
        }
        self.written += many;
        commands
    }

    /// Returns the command that removes all keys.
    fn remove(&self) -> Cmd {
        let mut unlink = redis::cmd("UNLINK");
        for number in 0..self.written {
            unlink.arg(Filler::key(number));
        }
        unlink
    }
}

/// Reads how much memory a server uses, in bytes.
fn used(info: &str) -> Option<u64> {
    let mut lines = info.lines();
    let line = lines.find_map(|line| line.strip_prefix("used_memory:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_server_is_read_from_its_report() {
        let info = "# Memory\r\nused_memory:1073792\r\nused_memory_human:1.02M\r\n";
        assert_eq!(used(info), Some(1_073_792));
        assert_eq!(used("# Memory\r\nused_memory_rss:1\r\n"), None);
    }

    #[test]
    fn every_key_that_was_written_is_removed() {
        let mut keys = Filler::default();
        let _ = (keys.next(2), keys.next(1));
        let words: Vec<_> = keys
            .remove()
            .args_iter()
            .map(|word| format!("{word:?}"))
            .collect();
        assert_eq!(words.len(), 4, "{words:?}");
    }
}
