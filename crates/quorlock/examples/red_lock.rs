//! A lock on a majority of five independent nodes, two of which go down while it is held.
#![allow(
    clippy::disallowed_methods,
    reason = "an example is a program of its own"
)]

mod story;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use quorlock::operate::Summary;
use quorlock::{EmbeddedNode, Locks, LocksBuilder};
use story::{Start, Story};
use tokio::time::sleep;

const HELP: &str = "\
A lock on a majority of five independent nodes (RedLock), two of which go down while it is held.

  cargo run --example red_lock                   with no server: five nodes inside the process
  cargo run --example red_lock -- ADDRESS...     on Redis servers; stop some of them while it runs

ADDRESS is redis://[user[:password]@]host[:port][/db]. Five servers to try it with, in the repository:

  docker compose up -d
  cargo run --example red_lock -- redis://127.0.0.1:7001 redis://127.0.0.1:7002 \\
      redis://127.0.0.1:7003 redis://127.0.0.1:7004 redis://127.0.0.1:7005";

const NAME: &str = "example/nightly-report";
const WAIT: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> ExitCode {
    match story::start(HELP, usize::MAX) {
        Start::Tell(story, servers) if servers.is_empty() => story::end(embedded(story).await),
        Start::Tell(story, servers) => story::end(real(story, &servers).await),
        Start::Exit(code) => code,
    }
}

/// A short lease, so that renewals are visible: one every second. The default is 30 s.
fn settings() -> LocksBuilder {
    // The nodes are new, and no other client uses them: there is nothing that they could have lost.
    Locks::builder()
        .trust_fresh_nodes()
        .watchdog_lease(Duration::from_secs(3))
}

async fn embedded(story: Story) -> Result<(), Box<dyn Error>> {
    let nodes: [_; 5] = std::array::from_fn(|_| EmbeddedNode::new());
    let (alice, bob) = (
        settings().on_nodes(nodes.clone())?,
        settings().on_nodes(nodes.clone())?,
    );
    story.say(
        "no server was given: five independent nodes inside this process, three are a majority",
    );

    let guard = alice.lock(NAME).acquire().await?;
    let began = story.elapsed();
    let granted = match bob.inspect(NAME).await?.summary() {
        Summary::Held { nodes, .. } => nodes,
        other => return Err(format!("{other:?}").into()),
    };
    story.say(format_args!(
        "Alice holds {NAME} on {} of 5 nodes, with a lease of 3 s that is renewed every second",
        granted
    ));

    let work = async {
        for node in &nodes[..2] {
            sleep(Duration::from_millis(800)).await;
            node.kill();
            story.say("a node is killed, with everything it knew; Alice works on");
        }
        sleep(Duration::from_millis(2_400)).await;
        match bob.lock(NAME).try_acquire().await {
            Ok(None) => story.say("Bob tries: refused, the other three nodes know who holds it"),
            other => story.say(format_args!("Bob tries: {other:?}")),
        }
        "the report"
    };
    match guard.while_held(async |_| work.await).await {
        Ok(report) => story.say(format_args!(
            "Alice has finished {}, after {:.1?}: the nodes that were left renewed the lock",
            report.output,
            story.elapsed() - began
        )),
        Err(lost) => story.say(format_args!("Alice's work was cancelled: {lost}")),
    }

    let guard = bob.lock(NAME).wait(WAIT).acquire().await?;
    story.say("Alice has released it, and Bob holds it, on the three nodes that are left");
    guard.release().await?;
    without_a_majority(story, &nodes[2], &bob).await?;
    alice.close().await;
    bob.close().await;
    Ok(())
}

/// Kills and restarts the third node of five.
async fn without_a_majority(
    story: Story,
    third: &EmbeddedNode,
    bob: &Locks,
) -> Result<(), Box<dyn Error>> {
    third.kill();
    story.say("a third node is killed: two of five are no majority");
    match bob.lock(NAME).try_acquire().await {
        Err(error) => story.say(format_args!("Bob tries: {error}")),
        Ok(guard) => story.say(format_args!("Bob tries: {guard:?}")),
    }

    third.restart();
    story.say("it is restarted, empty; no lock was held that it could have lost");
    let guard = bob.lock(NAME).wait(WAIT).acquire().await?;
    story.say("Bob holds the lock again");
    guard.release().await?;
    Ok(())
}

async fn real(story: Story, servers: &[String]) -> Result<(), Box<dyn Error>> {
    let needed = servers.len() / 2 + 1;
    let (alice, bob) = (
        settings().quorum(servers).await?,
        settings().quorum(servers).await?,
    );
    story.say(format_args!(
        "connected: {needed} of {} servers are a majority",
        servers.len()
    ));
    let guard = alice.lock(NAME).wait(2 * WAIT).acquire().await?;
    story.say(format_args!(
        "Alice holds {NAME}, with a lease of 3 s that is renewed every second"
    ));

    story.say(
        "this program cannot stop your servers. In the next 8 s, in another terminal, try one of",
    );
    for server in servers.iter().take(servers.len() - needed) {
        let server = story::shown(server);
        story.say(format_args!("    redis-cli -u {server} shutdown nosave"));
    }
    story.say("    docker compose stop node-1 node-2     (servers of the repository's docker-compose.yml)");

    for _ in 0..8 {
        sleep(Duration::from_secs(1)).await;
        if !guard.is_held() {
            break;
        }
        story.say(format_args!(
            "Alice works; if nothing more is renewed, the lock is hers for {:.1?}",
            guard.validity()
        ));
    }
    match guard.release().await {
        Ok(()) => story.say("Alice has finished and released the lock; it was hers all the time"),
        Err(error) => story.say(format_args!("Alice stops here. {error}")),
    }

    match bob.lock(NAME).wait(WAIT).acquire().await {
        Ok(guard) => {
            story.say("Bob holds it now");
            if let Err(error) = guard.release().await {
                story.say(error);
            }
        }
        Err(error) => story.say(format_args!("Bob does not get it: {error}")),
    }
    alice.close().await;
    bob.close().await;
    Ok(())
}
