//! The move of a slot from one real node of a cluster to another, key by key, while clients work.

use std::io;
use std::time::Duration;

use super::bystanders::is_moved_first;
use super::clock;
use super::server_command::ask;

/// The longest time that the end of a move may take.
const BOUND: Duration = Duration::from_secs(10);

/// The shortest time between two keys.
const BETWEEN_KEYS: u64 = 10_000_000;

/// A move of a slot. Before it begins, the nodes must agree on the owners of slots: a node that gets a slot takes the
/// next epoch after those that it knows, and a late message with a higher epoch would take the slot back.
#[derive(Debug)]
pub(super) struct SlotMove {
    pub(super) slot: u16,
    /// The port of the old owner.
    pub(super) from: u16,
    /// The port of the new owner.
    pub(super) to: u16,
    /// The ports of all nodes.
    pub(super) all: Vec<u16>,
    pub(super) lasts: Duration,
    /// Whether the move pauses when some of the bystanders have moved, and nothing else.
    pub(super) pauses: bool,
    /// How long the two owners name each other at the end of the move.
    pub(super) gap: Duration,
}

impl SlotMove {
    /// Moves the slot. The first key moves after a quarter of the time, each further key after half of the rest, and
    /// all other keys at the end, as in the simulator. In a move that pauses, the bystanders that are moved first move
    /// after a quarter of the time, and all other keys at the end.
    pub(super) async fn run(&self) -> io::Result<()> {
        let lasts = self.lasts.saturating_sub(self.gap).as_nanos();
        let lasts = u64::try_from(lasts).unwrap_or(u64::MAX);
        let until = clock::now() + lasts;
        let (old, new) = (id(self.from).await?, id(self.to).await?);
        self.set(self.to, &["IMPORTING", &old]).await?;
        self.set(self.from, &["MIGRATING", &new]).await?;
        clock::sleep(Duration::from_nanos(lasts / 4)).await;
        if self.pauses {
            let keys = self.keys().await.into_iter();
            let first: Vec<String> = keys.filter(|key| is_moved_first(key)).collect();
            self.move_keys(&first).await;
            clock::sleep_until(until).await;
        }
        while clock::now() < until {
            let keys = self.keys().await;
            self.move_keys(keys.get(..1).unwrap_or_default()).await;
            let rest = until.saturating_sub(clock::now());
            let pause = (rest / 2).max(BETWEEN_KEYS);
            clock::sleep(Duration::from_nanos(pause)).await;
        }
        let moved = clock::wait_for(BOUND, async || {
            self.move_keys(&self.keys().await).await;
            self.keys().await.is_empty().then_some(())
        });
        let moved = moved.await;
        moved.ok_or_else(|| io::Error::other("a slot still has keys at its old owner"))?;
        self.give(&new).await
    }

    /// Tells all nodes who owns the slot. With a gap, the old owner is told first.
    async fn give(&self, new: &str) -> io::Result<()> {
        let told: &[&str] = &["NODE", new];
        if self.gap.is_zero() {
            self.set(self.to, told).await?;
            // The old owner may have learned of the new one by itself.
            let _ = self.set(self.from, told).await;
        } else {
            self.set(self.from, told).await?;
            clock::sleep(self.gap).await;
            self.set(self.to, told).await?;
        }
        let others = self.all.iter();
        for other in others.filter(|port| ![self.from, self.to].contains(port)) {
            // Replicas refuse the command, and learn of the new owner from their primaries.
            let _ = self.set(*other, told).await;
        }
        Ok(())
    }

    async fn set(&self, port: u16, state: &[&str]) -> io::Result<()> {
        let slot = self.slot.to_string();
        let words = [&["CLUSTER", "SETSLOT", &slot], state].concat();
        let done: Option<redis::Value> = ask(port, &words).await;
        let why = || io::Error::other(format!("a node refused SETSLOT {}", state.concat()));
        done.map(|_| ()).ok_or_else(why)
    }

    /// Returns the keys of the slot that are still at the old owner.
    async fn keys(&self) -> Vec<String> {
        let slot = self.slot.to_string();
        let words = ["CLUSTER", "GETKEYSINSLOT", &slot, "1000"];
        ask(self.from, &words).await.unwrap_or_default()
    }

    async fn move_keys(&self, keys: &[String]) {
        if keys.is_empty() {
            return;
        }
        let to = self.to.to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &to, "", "0", "5000", "KEYS"];
        words.extend(keys.iter().map(String::as_str));
        // A key that has ended in the meantime is no error.
        let _: Option<redis::Value> = ask(self.from, &words).await;
    }
}

async fn id(port: u16) -> io::Result<String> {
    let id: Option<String> = ask(port, &["CLUSTER", "MYID"]).await;
    id.ok_or_else(|| io::Error::other("a node of the cluster does not answer"))
}
