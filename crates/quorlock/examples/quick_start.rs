//! One lock and two clients: which one holds it, which one waits, and what follows a release.
#![allow(
    clippy::disallowed_methods,
    reason = "an example is a program of its own"
)]

mod story;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use quorlock::{EmbeddedNode, Locks};
use story::{Start, Story};
use tokio::time::sleep;

const HELP: &str = "\
One lock, two clients: which one holds it, which one waits, and what follows a release.

  cargo run --example quick_start                              with no server: a node inside the process
  cargo run --example quick_start -- redis://127.0.0.1:6379    on a Redis server";

#[tokio::main]
async fn main() -> ExitCode {
    match story::start(HELP, 1) {
        Start::Tell(story, servers) => story::end(tell(story, servers.first()).await),
        Start::Exit(code) => code,
    }
}

async fn tell(story: Story, server: Option<&String>) -> Result<(), Box<dyn Error>> {
    // Two clients, as in two processes: each has its own identity.
    let (alice, bob) = match server {
        None => {
            story.say("no server was given: the lock is on a node inside this process");
            let node = EmbeddedNode::new();
            (Locks::on_node(node.clone())?, Locks::on_node(node)?)
        }
        Some(server) => {
            let clients = (Locks::connect(server).await?, Locks::connect(server).await?);
            story.say(format_args!("connected to {}", story::shown(server)));
            clients
        }
    };

    let name = "example/orders/42";
    let lock = alice.lock(name).wait(Duration::from_secs(3));
    let guard = lock.acquire().await?;
    let first = guard.fencing_token();
    story.say(format_args!(
        "Alice holds {name}: for at least {:.3?}, and longer, as it is renewed while she keeps the guard",
        guard.validity()
    ));

    match bob.lock(name).try_acquire().await? {
        None => story.say("Bob tries once: others hold it. That is an answer, not an error"),
        Some(_) => story.say("Bob tries once, and gets it: this must not happen"),
    }

    story.say("Bob waits, for at most 5 s; Alice works for half a second");
    let bobs = bob.lock(name).wait(Duration::from_secs(5));
    let waiting = tokio::spawn(async move { (bobs.acquire().await, story.elapsed()) });
    sleep(Duration::from_millis(500)).await;

    let released = story.elapsed();
    guard.release().await?; // An error would report that it had been lost before.
    story.say("Alice has released it; the answer says that it was hers until then");

    let (guard, acquired) = waiting.await?;
    let guard = guard?;
    story.say(format_args!(
        "Bob holds it, {:.1?} after Alice began to release it",
        acquired.saturating_sub(released)
    ));
    story.say(format_args!(
        "his fencing token is {}, hers was {first}: a later holder has a larger one",
        guard.fencing_token()
    ));

    drop(guard); // A drop releases, too: in the background and without a report.
    bob.close().await; // Waits for background releases.
    match alice.lock(name).try_acquire().await? {
        Some(_) => story.say("Bob has dropped the guard, and closed his client: the name is free"),
        None => story.say("Bob has dropped the guard, and another client already holds the name"),
    }
    alice.close().await;
    Ok(())
}
