//! A party that acquires and releases locks, on one side or the other.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quorlock::operate::Found;
use quorlock::{Guard, Lock, Locks, Lost, Owner, ReleaseError};

use super::jvm::{Answer, Exception, Jvm};
use super::mode::Mode;

/// One identity with one lock: a thread of the JVM, or an [`Owner`] of ours.
#[derive(Debug)]
pub(crate) enum Party {
    Jvm(JvmParty),
    Rust(RustParty),
}

/// A thread of the JVM.
#[derive(Clone, Debug)]
pub(crate) struct JvmParty {
    jvm: &'static Jvm,
    thread: String,
    mode: Mode,
    name: String,
}

/// An owner, and its guards.
#[derive(Debug)]
pub(crate) struct RustParty {
    locks: Locks,
    owner: Owner,
    mode: Mode,
    name: String,
    guards: Vec<Guard>,
}

/// A way to check whether a party waits for a release, while the party is busy waiting.
#[derive(Clone, Debug)]
pub(crate) enum Watch {
    Jvm(&'static Jvm, String),
    Rust,
}

impl Watch {
    /// Returns whether the party sleeps. It checks only what the server does not show.
    ///
    /// A thread of the JVM that has subscribed tries once more and then goes to sleep. It can miss a message in
    /// between. Our client subscribes before it tries again, and receives all messages.
    pub(crate) async fn sees_it_sleep(&self) -> bool {
        match self {
            Watch::Jvm(jvm, thread) => jvm.ask(thread, "sleeps").await.unwrap() == "true",
            Watch::Rust => true,
        }
    }
}

/// The outcome of a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Released {
    Yes,
    /// The caller no longer held the lock.
    NotHeld,
}

impl Party {
    /// Creates a thread, with its connections established.
    pub(crate) async fn jvm(jvm: &'static Jvm, mode: Mode, name: &str) -> Party {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let thread = format!("thread-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let party = JvmParty {
            jvm,
            thread,
            mode,
            name: name.to_owned(),
        };
        party.ask("connect", "").await.expect("the JVM connects");
        Party::Jvm(party)
    }

    /// Creates an owner.
    pub(crate) fn rust(locks: &Locks, mode: Mode, name: &str) -> Party {
        Party::Rust(RustParty {
            locks: locks.clone(),
            owner: locks.owner(),
            mode,
            name: name.to_owned(),
            guards: Vec::new(),
        })
    }

    /// Returns the same identity with another lock on the name.
    pub(crate) fn also(&self, mode: Mode) -> Party {
        match self {
            Party::Jvm(party) => Party::Jvm(JvmParty {
                mode,
                ..party.clone()
            }),
            Party::Rust(party) => Party::Rust(RustParty {
                locks: party.locks.clone(),
                owner: party.owner.clone(),
                mode,
                name: party.name.clone(),
                guards: Vec::new(),
            }),
        }
    }

    /// Returns a watch on the party, for use while it waits.
    pub(crate) fn watch(&self) -> Watch {
        match self {
            Party::Jvm(party) => Watch::Jvm(party.jvm, party.thread.clone()),
            Party::Rust(_) => Watch::Rust,
        }
    }

    /// Waits until the party has the lock. With `None` as the lease, the watchdog renews the lock.
    ///
    /// Returns the token, if there is one.
    pub(crate) async fn acquire(&mut self, lease: Option<Duration>) -> Option<u64> {
        match self {
            Party::Jvm(party) => {
                let token = party.ask("acquire", &millis(lease)).await;
                token.expect("the JVM acquires").parse().ok()
            }
            Party::Rust(party) => {
                let guard = party.lock(lease).acquire().await.expect("we acquire");
                let token = guard.fencing_token().0;
                party.guards.push(guard);
                Some(token)
            }
        }
    }

    /// Tries once, without waiting.
    pub(crate) async fn try_acquire(&mut self, lease: Option<Duration>) -> bool {
        match self {
            Party::Jvm(party) => {
                let answer = party.ask("try", &millis(lease)).await;
                answer.expect("the JVM tries") == "true"
            }
            Party::Rust(party) => {
                let guard = party.lock(lease).try_acquire().await.expect("we try");
                let is_ours = guard.is_some();
                party.guards.extend(guard);
                is_ours
            }
        }
    }

    /// Releases one entry.
    pub(crate) async fn release(&mut self) -> Released {
        match self {
            Party::Jvm(party) => match party.ask("release", "").await {
                Ok(_) => Released::Yes,
                Err(Exception { class, message }) => {
                    assert_eq!(class, "IllegalMonitorStateException", "{message}");
                    Released::NotHeld
                }
            },
            Party::Rust(party) => {
                let guard = party.guards.pop().expect("it has one");
                match guard.release().await {
                    Ok(()) => Released::Yes,
                    Err(ReleaseError::NotHeld { .. }) => Released::NotHeld,
                    Err(error) => panic!("we release: {error}"),
                }
            }
        }
    }

    /// Frees the name, whichever party holds it.
    pub(crate) async fn force_release(&self) {
        match self {
            Party::Jvm(party) => {
                let freed = party.ask("force", "").await.expect("the JVM forces");
                assert_ne!(freed, "0");
            }
            Party::Rust(party) => {
                for name in party.mode.names(&party.name) {
                    let report = party.locks.force_release(name).await.expect("we force");
                    assert!(0 < report.freed(), "{report}");
                }
            }
        }
    }

    /// Returns the hold counts under the names, whichever party has them.
    pub(crate) async fn counts(&self) -> Vec<u64> {
        match self {
            Party::Jvm(party) => {
                let counts = party.ask("counts", "").await.expect("the JVM looks");
                let counts = counts.split(',').filter(|count| !count.is_empty());
                counts.map(|count| count.parse().unwrap()).collect()
            }
            Party::Rust(party) => party.counts().await,
        }
    }

    /// Makes a thread of the JVM do something under the lock, repeatedly, until the number has reached the limit.
    ///
    /// Returns how often the thread did it.
    pub(crate) async fn count_up(&self, verb: &str, number: &str, limit: u64) -> u64 {
        let Party::Jvm(party) = self else {
            panic!("we count for ourselves")
        };
        let count = party.ask(verb, &format!("{number} {limit}")).await;
        count.expect("the JVM counts").parse().unwrap()
    }

    /// Waits until the party is notified that it has lost the lock. Redisson notifies no holder.
    pub(crate) async fn is_told_of_the_loss(&self) {
        if let Party::Rust(party) = self {
            let lost = party.guards.last().expect("it has one").lost().await;
            assert_eq!(lost, Lost::Taken);
        }
    }

    /// Returns how long the party still relies on the lock. For a JVM, this is unknown.
    pub(crate) fn validity(&self) -> Option<Duration> {
        match self {
            Party::Jvm(_) => None,
            Party::Rust(party) => party.guards.last().map(Guard::validity),
        }
    }

    /// Returns whether unlocking a lock that is not held throws. Redisson's RedLock swallows all exceptions.
    pub(crate) fn admits_that_it_is_not_held(&self) -> bool {
        !matches!(self, Party::Jvm(party) if party.mode == Mode::Red)
    }
}

impl JvmParty {
    /// Makes the thread do something with the lock.
    async fn ask(&self, verb: &str, argument: &str) -> Answer {
        let lock = self.mode.words(&self.name);
        let words = format!("{verb} {lock} {argument}");
        self.jvm.ask(&self.thread, words).await
    }
}

impl RustParty {
    /// Abandons the lock of the party without a release, as if the party were dead.
    pub(crate) fn leak(self) {
        self.guards.into_iter().for_each(Guard::leak);
    }

    fn lock(&self, lease: Option<Duration>) -> Lock {
        let lock = self.mode.lock(&self.owner, &self.name);
        let lock = lock.expect("the names can be locked");
        match lease {
            Some(lease) => lock.lease(lease),
            None => lock,
        }
    }

    async fn counts(&self) -> Vec<u64> {
        let mut counts = Vec::new();
        for name in self.mode.names(&self.name) {
            let inspection = self.locks.inspect(name).await.unwrap();
            for node in inspection.nodes {
                match node.found.unwrap().found {
                    Found::Nothing => {}
                    Found::Plain { count, .. } => counts.push(count),
                    Found::ReadWrite {
                        writer: Some((_, count)),
                        readers: 0,
                        ..
                    } => counts.push(count),
                    // An inspection does not report how often each reader has entered.
                    Found::ReadWrite {
                        writer: None,
                        readers: 1,
                        ..
                    } => counts.extend(self.entries_of_the_reader()),
                    other => panic!("{other:?}"),
                }
            }
        }
        counts
    }

    fn entries_of_the_reader(&self) -> Option<u64> {
        let server = &self.mode.servers()[0];
        let fields: Vec<(String, String)> = server.command(&["HGETALL", &self.name]);
        let reader = fields.into_iter().find(|(field, _)| field != "mode");
        reader.map(|(_, entries)| entries.parse().unwrap())
    }
}

/// Formats a lease for the driver.
fn millis(lease: Option<Duration>) -> String {
    lease.unwrap_or_default().as_millis().to_string()
}
