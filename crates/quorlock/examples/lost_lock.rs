//! A holder is cut off from most nodes: its work is cancelled before they grant the lock to another client.
#![allow(
    clippy::disallowed_methods,
    reason = "an example is a program of its own"
)]

mod story;

use std::error::Error;
use std::future::pending;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorlock::transport::{Cause, Intercept, Transport, TransportError};
use quorlock::{AcquireError, EmbeddedNode, Guard, Locks, LocksBuilder, RetryPolicy};
use story::{Start, Story};
use tokio::time::{sleep, timeout};

const HELP: &str = "\
A holder is cut off from most nodes. Its work is cancelled before they could grant the lock to another client.

  cargo run --example lost_lock                   with no server: five nodes inside the process
  cargo run --example lost_lock -- ADDRESS...     on Redis servers; make some of them hang while it runs

ADDRESS is redis://[user[:password]@]host[:port][/db]";

const NAME: &str = "example/import";

#[tokio::main]
async fn main() -> ExitCode {
    match story::start(HELP, usize::MAX) {
        Start::Tell(story, servers) if servers.is_empty() => story::end(embedded(story).await),
        Start::Tell(story, servers) => story::end(real(story, &servers).await),
        Start::Exit(code) => code,
    }
}

/// A short lease, so that the example does not take half a minute. The default is 30 s.
fn settings() -> LocksBuilder {
    // The nodes are new, and no other client uses them: there is nothing that they could have lost.
    Locks::builder()
        .trust_fresh_nodes()
        .watchdog_lease(Duration::from_secs(3))
}

async fn embedded(story: Story) -> Result<(), Box<dyn Error>> {
    // Bob reaches every node directly. Alice reaches them through cables that can be cut.
    let nodes: [_; 5] = std::array::from_fn(|_| EmbeddedNode::new());
    let cables: [_; 5] = std::array::from_fn(|_| Cable::default());
    let ways = cables.iter().zip(nodes.clone());
    let alice = settings().on_nodes(ways.map(|(cable, node)| cable.to(node)))?;
    let bob = settings().on_nodes(nodes)?;
    story.say(
        "no server was given: five independent nodes inside this process, three are a majority",
    );

    let cut = async {
        sleep(Duration::from_millis(1_500)).await;
        for cable in &cables[..3] {
            cable.cut();
        }
        story.say("Alice is cut off from three of the five nodes; Bob is not");
    };
    let ((), told) = tokio::join!(cut, both(story, &alice, &bob, Duration::from_secs(60)));
    told
}

async fn real(story: Story, servers: &[String]) -> Result<(), Box<dyn Error>> {
    let alice = settings().quorum(servers).await?;
    // By default an unbounded wait fails after 30 s without a quorum. Bob waits through any outage.
    let patient = RetryPolicy::default().without_quorum(Duration::MAX);
    let bob = settings().retry(patient).quorum(servers).await?;
    let needed = servers.len() / 2 + 1;
    story.say(format_args!(
        "connected: {needed} of {} servers are a majority",
        servers.len()
    ));
    story
        .say("this program cannot disturb your servers. In the next 3 s, in another terminal, try");
    for server in servers.iter().take(needed) {
        let server = story::shown(server);
        story.say(format_args!("    redis-cli -u {server} client pause 4000"));
    }
    both(story, &alice, &bob, Duration::from_secs(6)).await
}

/// Alice works under the lock for `long`, unless she loses it; Bob waits for it.
async fn both(
    story: Story,
    alice: &Locks,
    bob: &Locks,
    long: Duration,
) -> Result<(), Box<dyn Error>> {
    let wait = Duration::from_secs(10);
    let guard = alice.lock(NAME).wait(wait).acquire().await?;
    story.say(format_args!(
        "Alice holds {NAME}, with a lease of 3 s that is renewed every second"
    ));
    let work = async {
        story.say("Alice works, a piece every 0.4 s; Bob waits for the lock");
        let pieces = async {
            loop {
                sleep(Duration::from_millis(400)).await;
                story.say("Alice: another piece");
            }
        };
        let _ = timeout(long, pieces).await;
        story.elapsed()
    };
    let alices = async {
        match guard.while_held(async |_| work.await).await {
            Ok(ended) => {
                story.say("Alice has finished, and released the lock: nothing disturbed her");
                ended.output
            }
            Err(lost) => {
                let ended = story.elapsed();
                story.say(format_args!("Alice's work is cancelled: {lost}"));
                ended
            }
        }
    };
    let bobs = async {
        let guard = bob.lock(NAME).wait(wait).acquire().await?;
        let acquired = story.elapsed();
        story.say(format_args!(
            "Bob holds the lock, token {}",
            guard.fencing_token()
        ));
        Ok::<_, AcquireError>((guard, acquired))
    };
    let (ended, acquired) = tokio::join!(alices, bobs);
    compare(&story, ended, acquired).await;
    alice.close().await;
    bob.close().await;
    Ok(())
}

/// Says whether Bob got the lock after Alice had stopped, and releases it.
async fn compare(
    story: &Story,
    ended: Duration,
    acquired: Result<(Guard, Duration), AcquireError>,
) {
    match acquired {
        Ok((guard, acquired)) => {
            story.say(match acquired.checked_sub(ended) {
                Some(gap) => {
                    format!("Bob got it {gap:.1?} after Alice had stopped: they never both held it")
                }
                None => format!(
                    "Bob got it {:.1?} BEFORE Alice had stopped",
                    ended - acquired
                ),
            });
            if let Err(error) = guard.release().await {
                story.say(error);
            }
        }
        Err(error) => story.say(format_args!("Bob does not get it: {error}")),
    }
}

/// A way to a node that can be cut: then requests are lost silently.
#[derive(Clone, Debug, Default)]
struct Cable(Arc<AtomicBool>);

impl Cable {
    fn cut(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns the transport to a node through this cable.
    fn to(&self, node: EmbeddedNode) -> Intercept<EmbeddedNode> {
        let is_cut = Arc::clone(&self.0);
        Intercept::new(node).on_call(move |node, request| {
            let call = if is_cut.load(Ordering::Relaxed) {
                Box::pin(pending())
            } else {
                node.call(request)
            };
            // Every call ends with an error, and the client does not know whether the request was executed.
            Box::pin(async move {
                let answer = timeout(Duration::from_millis(500), call).await;
                answer.unwrap_or_else(|_| {
                    Err(TransportError::indeterminate(
                        Cause::TimedOut,
                        "the cable is cut",
                    ))
                })
            })
        })
    }
}
