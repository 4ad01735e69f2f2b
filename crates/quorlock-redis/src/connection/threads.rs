//! Tests callers on several threads, over connections that end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorlock_explore::{Pace, draw, explore};
use redis::Value;
use shuttle::future::spawn;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::address::tests::server;
use crate::config::RedisConfig;
use crate::connect::{ByteStream, Connect, Connecting, Endpoint};

/// Makes streams in memory. The server of the first one ends after `ends_after` answers to calls.
#[derive(Debug)]
struct InMemory {
    ends_after: usize,
    made: Arc<AtomicUsize>,
}

impl Connect for InMemory {
    fn connect(&self, _: &Endpoint) -> Connecting {
        let (stream, server) = duplex(256);
        let ends_after = match self.made.fetch_add(1, Ordering::SeqCst) {
            0 => self.ends_after,
            _ => usize::MAX,
        };
        drop(spawn(serve(server, ends_after)));
        Box::pin(async move { Ok(Box::new(stream) as Box<dyn ByteStream>) })
    }
}

/// Answers `SCRIPT LOAD` with "OK", and a call, which is a number, with that number.
async fn serve(mut stream: DuplexStream, ends_after: usize) {
    let mut answered = 0;
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        heard.extend_from_slice(&buffer[..read]);
        while let Some((words, used)) = request(&heard) {
            heard.drain(..used);
            let answer = match words.as_slice() {
                [call] => format!(":{call}\r\n"),
                _ => "+OK\r\n".to_owned(),
            };
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
            answered += usize::from(words.len() == 1);
            if ends_after <= answered {
                return;
            }
        }
    }
}

/// Returns the words of a complete request, and its length in bytes.
fn request(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    let line = |from: usize| {
        let rest = bytes.get(from..)?;
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let number = std::str::from_utf8(rest.get(1..end)?).ok()?;
        Some((number.parse::<usize>().ok()?, from + end + 2))
    };
    let (many, mut at) = line(0)?;
    let mut words = Vec::new();
    for _ in 0..many {
        let (length, from) = line(at)?;
        let word = bytes.get(from..from + length)?;
        bytes.get(from + length + 1)?;
        words.push(String::from_utf8_lossy(word).into_owned());
        at = from + length + 2;
    }
    Some((words, at))
}

async fn callers() {
    let ends_after = match draw() % 2 {
        0 => usize::MAX,
        _ => 2,
    };
    let made = Arc::<AtomicUsize>::default();
    let config = RedisConfig::default().network(InMemory {
        ends_after,
        made: made.clone(),
    });
    let address = server("redis://a/");
    let connection = ConnectionManager::new(Arc::new(Target::new(address, config)));
    let callers = (0..3).map(|number: i64| {
        let connection = connection.clone();
        spawn(async move {
            let mut answered = 0;
            for _ in 0..8 {
                let now = timer::now();
                let (deadline, patience) = (now + Duration::from_secs(2), Duration::from_secs(2));
                let link = match connection.current(now) {
                    Some(link) => link,
                    None => match connection.next(now, deadline, Duration::MAX).await {
                        Ok(link) => link,
                        Err(error) => panic!("a server always takes the connection: {error}"),
                    },
                };
                let cmd = redis::cmd(&number.to_string());
                let Ok(answer) = link.send(now, &cmd, deadline, patience) else {
                    connection.retire(&link);
                    continue;
                };
                match answer.await {
                    Ok(value) => {
                        assert_eq!(value, Value::Int(number));
                        answered += 1;
                        if answered == 2 {
                            return;
                        }
                    }
                    Err(_) => connection.retire(&link),
                }
            }
            panic!("no answer after so many connections");
        })
    });
    let callers: Vec<_> = callers.collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let most = if ends_after == usize::MAX { 1 } else { 2 };
    let made = made.load(Ordering::SeqCst);
    assert!(made <= most, "{made} connections, where {most} are enough");
}

/// All callers share one connection, and its successor: no caller waits forever, and none gets the reply to another's
/// request.
#[test]
fn callers_share_each_connection_until_it_ends() {
    let name = "callers_share_each_connection_until_it_ends";
    // The scripts are put together once per process, and so not within a schedule.
    crate::script::load().for_each(drop);
    timer::with_timers(|| explore(name, Pace::Untimed, callers));
}
