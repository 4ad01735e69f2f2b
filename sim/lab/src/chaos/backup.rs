//! Backups by replication, and the identity of a server that changes without a restart.

use std::io;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::clock;
use super::server_command::{config, connect};

/// The longest time that a backup, or the end of a backlog, may take.
const BOUND: Duration = Duration::from_secs(10);

/// Reads all data of a server as a replica does, and leaves, like `redis-cli --rdb`. A server without a replication
/// backlog then draws a new `master_replid`, and keeps the backlog for an hour.
pub(super) async fn back_up(port: u16) -> io::Result<()> {
    let read = clock::within(BOUND, read_all(port)).await;
    read.unwrap_or_else(|| Err(io::Error::other("a backup took too long")))
}

async fn read_all(port: u16) -> io::Result<()> {
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?);
    stream.get_mut().write_all(b"SYNC\r\n").await?;
    // The server sends empty lines until its data is ready, and then the length of the data.
    let length = loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::Error::other("a backup was ended by its server"));
        }
        let line = line.trim();
        if !line.is_empty() {
            let length = line
                .strip_prefix('$')
                .and_then(|length| length.parse().ok());
            break length.ok_or_else(|| io::Error::other(format!("no backup: {line}")))?;
        }
    };
    let read = tokio::io::copy(&mut stream.take(length), &mut tokio::io::sink()).await?;
    match read == length {
        true => Ok(()),
        false => Err(io::Error::other("a backup was cut short by its server")),
    }
}

/// Makes a server without replicas free its replication backlog and draw a new `master_replid`. A server without a
/// backlog is backed up instead, with the same effect.
pub(super) async fn free_backlog(port: u16) -> io::Result<()> {
    let wrong = |error: redis::RedisError| io::Error::other(error.to_string());
    let mut connection = connect(port).await.map_err(wrong)?;
    let (before, backlog) = replication(&mut connection).await.map_err(wrong)?;
    if backlog == Backlog::Missing {
        return back_up(port).await;
    }
    let in_a_second = config("repl-backlog-ttl", "1");
    let done: redis::RedisResult<()> = in_a_second.query_async(&mut connection).await;
    done.map_err(wrong)?;
    let is_another = async || {
        let (id, _) = replication(&mut connection).await.ok()?;
        (id != before).then_some(())
    };
    let changed = clock::wait_for(BOUND, is_another).await;
    let in_an_hour = config("repl-backlog-ttl", "3600");
    let done: redis::RedisResult<()> = in_an_hour.query_async(&mut connection).await;
    done.map_err(wrong)?;
    changed.ok_or_else(|| io::Error::other("the server did not free its backlog"))
}

/// Whether a server has a replication backlog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Backlog {
    Active,
    Missing,
}

/// Returns the `master_replid` of a server, and whether the server has a backlog.
async fn replication(
    connection: &mut MultiplexedConnection,
) -> redis::RedisResult<(String, Backlog)> {
    let mut info = redis::cmd("INFO");
    let info: String = info.arg("replication").query_async(connection).await?;
    let field = |name: &str| {
        let mut lines = info.lines();
        lines.find_map(|line| line.strip_prefix(name))
    };
    let id = field("master_replid:").unwrap_or_default().trim();
    let backlog = match field("repl_backlog_active:").unwrap_or_default().trim() {
        "1" => Backlog::Active,
        _ => Backlog::Missing,
    };
    Ok((id.to_owned(), backlog))
}
