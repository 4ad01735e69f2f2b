//! Servers that answer with errors for a while: without memory, as replicas, in a long script, or while they load.

use std::io;
use std::time::Duration;

use super::clock;
use super::server_command::{config, connect_for, say, say_for};
use quorlock_sim_plan::fault::ServerError;

/// How much longer than planned a command may take.
const SLACK: Duration = Duration::from_secs(10);

/// Makes a server refuse everything, or every write, for a while.
pub(super) async fn refuse(port: u16, error: ServerError, lasts: Duration) -> io::Result<()> {
    let follow = |words: [&str; 2]| redis::cmd("REPLICAOF").arg(&words).clone();
    match error {
        ServerError::OutOfMemory => {
            say(port, &[config("maxmemory", "1")]).await;
            clock::sleep(lasts).await;
            say(port, &[config("maxmemory", "0")]).await;
        }
        ServerError::ReadOnly => {
            // The server cannot reach that primary, so it receives nothing and keeps its data.
            say(port, &[follow(["127.0.0.1", "1"])]).await;
            clock::sleep(lasts).await;
            say(port, &[follow(["NO", "ONE"])]).await;
        }
        ServerError::Busy => {
            let mut endless = redis::cmd("EVAL");
            let endless = [endless.arg("while true do end").arg(0).clone()];
            let _ = clock::within(lasts, say_for(port, lasts + SLACK, &endless)).await;
            say(port, &[redis::cmd("SCRIPT").arg("KILL").clone()]).await;
        }
        ServerError::Loading => load(port, lasts)
            .await
            .map_err(|error| io::Error::other(error.to_string()))?,
    }
    Ok(())
}

/// Makes a server write its data to disk and load it again, with many keys that each take a while to load. The server
/// keeps its data, its process and its connections. While it loads, it answers every command with `LOADING`.
async fn load(port: u16, lasts: Duration) -> redis::RedisResult<()> {
    const KEYS: u32 = 200;
    // Between two keys of this size, the server answers its clients.
    const BYTES: u32 = 2_048;
    let delay = (lasts / KEYS).as_micros().max(1).to_string();
    let mut populate = redis::cmd("DEBUG");
    populate.arg("POPULATE").arg(KEYS).arg("filler").arg(BYTES);
    let mut reload = redis::cmd("DEBUG");
    reload.arg("RELOAD");
    let mut delete = redis::cmd("UNLINK");
    for key in 0..KEYS {
        delete.arg(format!("filler:{key}"));
    }
    let commands = [
        config("rdbcompression", "no"),
        config("loading-process-events-interval-bytes", "1024"),
        populate,
        config("key-load-delay", &delay),
        reload,
        config("key-load-delay", "0"),
        delete,
    ];
    let mut connection = connect_for(port, lasts + SLACK).await?;
    for command in commands {
        let _: redis::Value = command.query_async(&mut connection).await?;
    }
    Ok(())
}
