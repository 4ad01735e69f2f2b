//! A thread of the JVM that repeats what a failover makes fail.

use std::time::Instant;

use quorlock_testbed::wait::BOUND;

use super::jvm::{Answer, Exception, Jvm};

/// The exception of a release by a thread that does not hold the lock.
const NOT_HELD: &str = "IllegalMonitorStateException";

/// A thread of the JVM that uses one lock. After a failover, Redisson throws until it knows the new primary, and also
/// when the primary has done what was asked, but no replica has confirmed it.
#[derive(Clone, Debug)]
pub(crate) struct Patient {
    jvm: &'static Jvm,
    thread: String,
    words: String,
}

impl Patient {
    /// Creates a thread that uses the reentrant lock `name` at an address of Redisson's clients.
    pub(crate) fn new(jvm: &'static Jvm, name: &str, address: &str) -> Patient {
        Patient {
            jvm,
            thread: format!("patient-{name}"),
            words: format!("reentrant {name} {address}"),
        }
    }

    async fn ask(&self, verb: &str, lease: &str) -> Answer {
        let words = format!("{verb} {} {lease}", self.words);
        self.jvm.ask(&self.thread, words).await
    }

    /// Waits for the lock, in one call.
    pub(crate) async fn acquire(&self) -> Answer {
        self.ask("acquire", "30000").await
    }

    /// Acquires the lock, which is free. A failed call may have acquired it, so the next one would enter it again.
    pub(crate) async fn acquire_at_last(&self) {
        let begun = Instant::now();
        while let Err(error) = self.acquire().await {
            check_time(begun, &error);
            self.at_last("force").await;
        }
    }

    /// Returns whether the thread acquires the lock at once. It must not hold the lock.
    pub(crate) async fn is_let_in(&self) -> bool {
        self.at_last("try").await == "true"
    }

    /// Releases the lock. A failed call may have released it, so the next one does not find it held.
    pub(crate) async fn release_at_last(&self) {
        let begun = Instant::now();
        while let Err(error) = self.ask("release", "").await {
            if error.class == NOT_HELD {
                return;
            }
            check_time(begun, &error);
        }
    }

    /// Waits until the thread sleeps.
    pub(crate) async fn is_asleep(&self) {
        let begun = Instant::now();
        while self.jvm.ask(&self.thread, "sleeps").await.unwrap() != "true" {
            assert!(begun.elapsed() < BOUND, "it does not sleep");
        }
    }

    async fn at_last(&self, verb: &str) -> String {
        let begun = Instant::now();
        loop {
            match self.ask(verb, "1000").await {
                Ok(said) => return said,
                Err(error) => check_time(begun, &error),
            }
        }
    }
}

fn check_time(begun: Instant, error: &Exception) {
    assert!(begun.elapsed() < 2 * BOUND, "still: {error:?}");
}
