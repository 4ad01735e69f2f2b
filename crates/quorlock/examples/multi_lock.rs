//! Two names on two servers, taken together: all of them or none, and no deadlock.
#![allow(
    clippy::disallowed_methods,
    reason = "an example is a program of its own"
)]

mod story;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quorlock::{EmbeddedNode, Lock, Locks};
use story::{Start, Story};
use tokio::time::sleep;

const HELP: &str = "\
Transfers between two accounts, each protected by its own lock: both locks are taken together,
by some tasks in one order and by others in the other. No task blocks another one for ever.

  cargo run --example multi_lock                       with no server: two nodes inside the process
  cargo run --example multi_lock -- ADDRESS            both locks on one Redis server
  cargo run --example multi_lock -- ADDRESS ADDRESS    each lock on a Redis server of its own

ADDRESS is redis://[user[:password]@]host[:port][/db]";

const TRANSFERS: i64 = 25;

#[tokio::main]
async fn main() -> ExitCode {
    match story::start(HELP, 2) {
        Start::Tell(story, servers) => story::end(tell(story, &servers).await),
        Start::Exit(code) => code,
    }
}

/// Connects to the servers of the two accounts.
async fn connect(story: &Story, servers: &[String]) -> Result<(Locks, Locks), Box<dyn Error>> {
    Ok(match servers {
        [] => {
            story.say("no server was given: two nodes inside this process");
            let node = EmbeddedNode::new;
            (Locks::on_node(node())?, Locks::on_node(node())?)
        }
        [one] => {
            let locks = Locks::connect(one).await?;
            (locks.clone(), locks)
        }
        [one, other, ..] => (Locks::connect(one).await?, Locks::connect(other).await?),
    })
}

async fn tell(story: Story, servers: &[String]) -> Result<(), Box<dyn Error>> {
    let (left, right) = connect(&story, servers).await?;
    let alice = left.lock("example/account/alice");
    let bob = right.lock("example/account/bob");

    // For names on one server there is `locks.all(["a", "b"])`; `and` combines locks of any clients.
    let wait = Duration::from_secs(8);
    let forth = alice.clone().and([bob.clone()]).wait(wait);
    let back = bob.clone().and([alice.clone()]).wait(wait);

    transfer(story, &forth, &back).await?;

    let only_bob = bob.wait(wait).acquire().await?;
    story.say("now another guard holds Bob's lock alone");
    match forth.try_acquire().await? {
        None => story.say("both together: refused, for one of them is held"),
        Some(_) => story.say("both together: granted, this must not happen"),
    }
    let only_alice = alice.wait(wait).acquire().await?;
    story.say("Alice's lock alone can be had: nothing stayed behind of the refused attempt");

    only_alice.release().await?;
    only_bob.release().await?;
    left.close().await;
    right.close().await;
    Ok(())
}

/// Moves money between two accounts from four tasks, which lock them in both orders.
async fn transfer(story: Story, forth: &Lock, back: &Lock) -> Result<(), Box<dyn Error>> {
    let accounts = Arc::new((AtomicI64::new(1_000), AtomicI64::new(1_000)));
    story.say("four tasks transfer money: two lock Alice and Bob, two lock Bob and Alice");
    let tasks = [(forth, 3), (back, -2), (forth, 5), (back, -4)].map(|(both, amount)| {
        let (both, accounts) = (both.clone(), accounts.clone());
        tokio::spawn(async move {
            for _ in 0..TRANSFERS {
                let guard = both.acquire().await?;
                // Read, pause, write: without the lock the four tasks would overwrite each other's results.
                let (alice, bob) = &*accounts;
                let before = (alice.load(Ordering::Relaxed), bob.load(Ordering::Relaxed));
                sleep(Duration::from_millis(1)).await;
                alice.store(before.0 - amount, Ordering::Relaxed);
                bob.store(before.1 + amount, Ordering::Relaxed);
                guard.release().await?;
            }
            Ok::<_, Box<dyn Error + Send + Sync>>(())
        })
    });
    for task in tasks {
        task.await?.map_err(|error| error.to_string())?;
    }
    let (alices, bobs) = (
        accounts.0.load(Ordering::Relaxed),
        accounts.1.load(Ordering::Relaxed),
    );
    let moved = TRANSFERS * (3 - 2 + 5 - 4);
    story.say(format_args!(
        "{} transfers are done: Alice has {alices}, Bob has {bobs}",
        4 * TRANSFERS
    ));
    story.say(if (alices, bobs) == (1_000 - moved, 1_000 + moved) {
        "that is what the transfers add up to: not one was overwritten"
    } else {
        "that is NOT what the transfers add up to"
    });
    Ok(())
}
