//! Tests which caller makes a connection, and which witnesses are notified.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::address::tests::server;
use crate::config::RedisConfig;
use crate::connect::{ByteStream, Connect, Connecting, Endpoint};
use crate::script;

/// Connects to a server of the test, once.
#[derive(Debug)]
struct Once(Mutex<Option<DuplexStream>>);

impl Connect for Once {
    fn connect(&self, _: &Endpoint) -> Connecting {
        let stream = self.0.lock().unwrap().take();
        let stream = stream.map(|stream| Box::new(stream) as Box<dyn ByteStream>);
        Box::pin(async { stream.ok_or_else(|| std::io::ErrorKind::ConnectionRefused.into()) })
    }
}

/// Answers the greeting at the other end of a connection.
async fn greet(server: &mut DuplexStream) {
    let mut heard = String::new();
    let loads = script::load().count();
    while heard.matches("LOAD").count() < loads {
        let mut bytes = [0; 4096];
        let count = server.read(&mut bytes).await.unwrap();
        heard += &String::from_utf8_lossy(&bytes[..count]);
    }
    let answers = "+OK\r\n".repeat(loads);
    server.write_all(answers.as_bytes()).await.unwrap();
}

/// Connects to servers that answer the greeting and close the connection.
#[derive(Debug, Default)]
struct Curt(Arc<AtomicUsize>);

impl Connect for Curt {
    fn connect(&self, _: &Endpoint) -> Connecting {
        self.0.fetch_add(1, Ordering::Relaxed);
        let (client, mut server) = duplex(1 << 16);
        timer::spawn(async move { greet(&mut server).await });
        Box::pin(async { Ok(Box::new(client) as Box<dyn ByteStream>) })
    }
}

/// Counts its notifications.
#[derive(Default)]
struct Waiter(AtomicUsize);

impl Witness for Waiter {
    fn reachable(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn to(network: impl Connect) -> Arc<ConnectionManager> {
    let config = RedisConfig::default().network(network);
    let address = server("redis://a/");
    ConnectionManager::new(Arc::new(Target::new(address, config)))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_up_after_the_greeting_is_connected_to_less_and_less() {
    let made = Arc::<AtomicUsize>::default();
    let (connection, waiter) = (to(Curt(Arc::clone(&made))), Arc::<Waiter>::default());
    let attendance = connection.attend(waiter.clone());
    timer::sleep_until(timer::now() + Duration::from_secs(10)).await;
    // Pauses of 0.05, 0.1, 0.2, 0.4, 0.8 s, and then of one second each.
    let count = made.load(Ordering::Relaxed);
    assert!((10..=15).contains(&count), "{count}");
    drop(attendance);
    timer::sleep_until(timer::now() + Duration::from_secs(10)).await;
    let after = made.load(Ordering::Relaxed);
    assert!(after <= count + 1, "{count} {after}");
}

/// Refuses each connection, and counts them.
#[derive(Debug, Default)]
struct Closed(Arc<AtomicUsize>);

impl Connect for Closed {
    fn connect(&self, _: &Endpoint) -> Connecting {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Err(std::io::ErrorKind::ConnectionRefused.into()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_lease_is_short_does_not_wait_for_the_end_of_a_long_pause() {
    for (longest, pauses) in [
        // Pauses of 0.05, 0.1, 0.2, 0.4, 0.8 s, and then of one second each.
        (Duration::MAX, 13..=15),
        (Duration::from_millis(75), 110..=135),
    ] {
        let made = Arc::<AtomicUsize>::default();
        let connection = to(Closed(Arc::clone(&made)));
        let end = timer::now() + Duration::from_secs(10);
        while timer::now() < end {
            let (now, deadline) = (timer::now(), timer::now() + timer::delay(1));
            assert!(connection.next(now, deadline, longest).await.is_err());
            timer::sleep_until(now + Duration::from_millis(5)).await;
        }
        let count = made.load(Ordering::Relaxed);
        assert!(pauses.contains(&count), "{count}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_witness_is_told_at_once_of_a_connection_that_is_there() {
    let (client, mut server) = duplex(1 << 16);
    let connection = to(Once(Mutex::new(Some(client))));
    timer::spawn(async move {
        greet(&mut server).await;
        std::future::pending::<()>().await;
    });
    let waiter = Arc::<Waiter>::default();
    let first = connection.attend(waiter.clone());
    assert_eq!(waiter.0.load(Ordering::Relaxed), 0);
    timer::sleep_until(timer::now() + Duration::from_secs(1)).await;
    assert_eq!(waiter.0.load(Ordering::Relaxed), 1);
    let second = connection.attend(waiter.clone());
    assert_eq!(waiter.0.load(Ordering::Relaxed), 2);
    drop((first, second));
    assert!(connection.lock().witnesses.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_waited_for_a_connection_sends_in_the_order_in_which_they_came() {
    let (client, mut server) = duplex(1 << 16);
    let connection = to(Once(Mutex::new(Some(client))));
    let callers: Vec<_> = (0..20)
        .map(|number| {
            let connection = Arc::clone(&connection);
            timer::spawn(async move {
                let (now, deadline) = (timer::now(), timer::now() + timer::delay(9));
                let link = connection.next(now, deadline, Duration::MAX).await.unwrap();
                let cmd = redis::cmd(&format!("CALLER{number}."));
                let patience = timer::delay(9);
                let _ = link.send(now, &cmd, deadline, patience).unwrap().await;
            })
        })
        .collect();
    let mut heard = String::new();
    let mut greeted = false;
    while !heard.contains("CALLER19.") {
        let mut bytes = [0; 4096];
        let count = server.read(&mut bytes).await.unwrap();
        heard += &String::from_utf8_lossy(&bytes[..count]);
        let loads = script::load().count();
        if !greeted && heard.matches("LOAD").count() == loads {
            greeted = true;
            let answers = "+OK\r\n".repeat(loads);
            server.write_all(answers.as_bytes()).await.unwrap();
        }
        if heard.matches("CALLER").count() == 20 {
            break;
        }
    }
    let sent: Vec<usize> = (0..20)
        .map(|number| heard.find(&format!("CALLER{number}.")).unwrap())
        .collect();
    assert!(sent.is_sorted(), "{heard}");
    callers.iter().for_each(|caller| caller.abort());
}
