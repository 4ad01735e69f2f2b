//! A holder that was suspended beyond its lease writes nevertheless; the store rejects it by its fencing token.
#![allow(
    clippy::disallowed_methods,
    reason = "an example is a program of its own"
)]

mod story;

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use quorlock::{ConnectError, EmbeddedNode, Locks, Token};
use story::{Start, Story};
use tokio::sync::oneshot;

const HELP: &str = "\
A holder is stopped beyond its lease, as by a long garbage collection or a suspended virtual machine,
and writes when it wakes up: it cannot know better. The store knows, by the fencing token.

  cargo run --example fenced_write                 with no server: a node inside the process
  cargo run --example fenced_write -- ADDRESS      on a Redis server
  cargo run --example fenced_write -- ADDRESS...   on a majority of several Redis servers

ADDRESS is redis://[user[:password]@]host[:port][/db]";

const NAME: &str = "example/report";
const LEASE: Duration = Duration::from_secs(2);

/// The resource that the lock protects. It remembers the largest token that it has seen, and rejects writes with a
/// smaller one.
///
/// In SQL: `UPDATE report SET text = $1, token = $2 WHERE id = $3 AND token <= $2`, and check the number of rows.
#[derive(Default)]
struct Store(Mutex<(Token, String)>);

impl Store {
    fn write(&self, token: Token, text: &str) -> Result<(), Stale> {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if token < stored.0 {
            return Err(Stale(token, stored.0));
        }
        *stored = (token, text.to_owned());
        Ok(())
    }

    fn text(&self) -> String {
        let stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stored.1.clone()
    }
}

/// The error of a write with a stale token.
#[derive(Debug)]
struct Stale(Token, Token);

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {} is older than {}", self.0, self.1)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match story::start(HELP, usize::MAX) {
        Start::Tell(story, servers) => story::end(tell(story, servers).await),
        Start::Exit(code) => code,
    }
}

/// A client of the same node or nodes.
async fn client(node: &EmbeddedNode, servers: &[String]) -> Result<Locks, ConnectError> {
    match servers {
        [] => Ok(Locks::on_node(node.clone())?),
        servers => Locks::builder().trust_fresh_nodes().quorum(servers).await,
    }
}

async fn tell(story: Story, servers: Vec<String>) -> Result<(), Box<dyn Error>> {
    let node = EmbeddedNode::new();
    if servers.is_empty() {
        story.say("no server was given: the lock is on a node inside this process");
    }
    let store = Arc::new(Store::default());

    // Alice has her own thread and runtime: suspending it suspends everything of hers, including her client.
    let (alices_store, alices_node, alices_servers) =
        (store.clone(), node.clone(), servers.clone());
    let (say_held, is_held) = oneshot::channel();
    let alice = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let locks = client(&alices_node, &alices_servers).await?;
            be_stopped(story, &locks, &alices_store, say_held).await
        })
    });
    // An error means that Alice never held the lock; she reports why at the end.
    let _ = is_held.await;

    let locks = client(&node, &servers).await?;
    story.say("Bob waits for the lock");
    let guard = locks.lock(NAME).wait(4 * LEASE).acquire().await?;
    let token = guard.fencing_token();
    story.say(format_args!(
        "Alice's lease has expired: Bob holds the lock, with token {token}"
    ));
    match store.write(token, "by Bob") {
        Ok(()) => story.say("the store took Bob's write"),
        Err(stale) => story.say(format_args!("the store refused Bob's write: {stale}")),
    }
    guard.release().await?;

    let alice = tokio::task::spawn_blocking(|| alice.join()).await?;
    alice
        .map_err(|_| "Alice's thread panicked")?
        .map_err(|error| error.to_string())?;
    story.say(format_args!("the store says: written {}", store.text()));
    locks.close().await;
    Ok(())
}

/// What Alice does. Her thread is stopped while she holds the lock.
async fn be_stopped(
    story: Story,
    locks: &Locks,
    store: &Store,
    say_held: oneshot::Sender<()>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let lock = locks.lock(NAME).lease(LEASE).wait(2 * LEASE);
    let guard = lock.acquire().await?;
    let token = guard.fencing_token();
    story.say(format_args!(
        "Alice holds {NAME} for {LEASE:?}, with token {token}"
    ));
    let _ = say_held.send(());
    story.say("Alice's thread is stopped for 3 s, in the middle of her work");
    let work = async {
        thread::sleep(Duration::from_secs(3));
        story.say("Alice continues where she was stopped, and writes");
        match store.write(token, "by Alice") {
            Ok(()) => story.say("the store took Alice's write"),
            Err(stale) => story.say(format_args!("the store refused it: {stale}")),
        }
    };
    if let Err(lost) = guard.while_held(async |_| work.await).await {
        story.say(format_args!("now Alice's client notices, too: {lost}"));
    }
    Ok(())
}
