//! The test of a store: everything that the locks rely on.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use quorlock_core::transport::Cause;

use crate::store::{Draft, Key, Store, Stored, Version, Watcher, Written};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// A rule that the store breaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The rule, as a sentence.
    pub rule: &'static str,
    /// What the store did instead.
    pub found: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.found)
    }
}

impl std::error::Error for Broken {}

/// How many clients write at the same moment.
const RIVALS: usize = 16;

/// How long a change may take to be reported.
const REPORTED: Duration = Duration::from_secs(10);

/// Checks that a store does what the locks rely on. It writes to keys that begin with `prefix`, which no other program
/// uses meanwhile, and leaves them there. Needs a tokio runtime with timers. Takes a few hundred calls.
///
/// # Errors
/// [`Broken`] with the first rule that the store breaks. A call that fails breaks a rule, too.
pub async fn check<S: Store>(store: Arc<S>, prefix: &str) -> Result<(), Broken> {
    let key = |name: &str| Key::new(format!("{prefix}{name}").as_bytes());
    writes_name_a_version(&*store, &key("version")).await?;
    bytes_stay_as_they_are(&*store, prefix).await?;
    one_of_many_writes_succeeds(&store, &key("rivals")).await?;
    keys_are_listed_once(&*store, &key("version"), &key("rivals")).await?;
    changes_are_reported(&*store, &key("watched")).await?;
    the_clock_advances(&*store, &key("clock")).await
}

/// Returns the record of a key.
async fn read(store: &dyn Store, key: &Key) -> Result<Option<Stored>, Broken> {
    let snapshot = store.read(key).await;
    let snapshot = snapshot.map_err(|error| broken("a read succeeds", error))?;
    Ok(snapshot.stored)
}

/// Writes, and returns whether the record was stored.
async fn write(
    store: &dyn Store,
    key: &Key,
    version: Option<&Version>,
    record: &[u8],
) -> Result<bool, Broken> {
    let draft = Draft {
        record: record.to_vec(),
        number: RandomState::new().hash_one(record),
        has_news: true,
        useful_until: None,
    };
    let written = store.write_if(key, version, draft).await;
    let written =
        written.map_err(|error| broken("a conditional write succeeds or conflicts", error))?;
    Ok(matches!(written, Written::Stored { .. }))
}

/// The outcome that a write must have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Stored,
    Conflict,
}

fn broken(rule: &'static str, found: impl fmt::Display) -> Broken {
    let found = found.to_string();
    Broken { rule, found }
}

fn holds(rule: &'static str, holds: bool, found: impl fmt::Debug) -> Result<(), Broken> {
    match holds {
        true => Ok(()),
        false => Err(broken(rule, format!("{found:?}"))),
    }
}

async fn writes_name_a_version(store: &dyn Store, key: &Key) -> Result<(), Broken> {
    use Wanted::{Conflict, Stored};

    let writes = async |version, record: &[u8], wanted, rule| {
        let stored = write(store, key, version, record).await?;
        holds(rule, stored == (wanted == Stored), stored)
    };
    let nothing = read(store, key).await?;
    let rule = "a key that was never written has no record (use a fresh prefix)";
    holds(rule, nothing.is_none(), &nothing)?;
    let strange = Version::from(u64::MAX);
    let rule = "a write that names a version conflicts where there is no record";
    writes(Some(&strange), b"a", Conflict, rule).await?;
    let rule = "a write that names no version is stored where there is no record";
    writes(None, b"a", Stored, rule).await?;

    let first = read(store, key).await?;
    let record = first.as_ref().map(|stored| &*stored.record);
    holds("a read sees the last write", record == Some(b"a"), record)?;
    let Some(first) = first else { return Ok(()) };
    let rule = "a write that names no version conflicts where there is a record";
    writes(None, b"b", Conflict, rule).await?;
    let present = "a write that names the present version is stored";
    writes(Some(&first.version), b"b", Stored, present).await?;
    let rule = "a write that names an earlier version conflicts";
    writes(Some(&first.version), b"c", Conflict, rule).await?;

    // The first record again: a version that is made of the content would come back.
    let second = read(store, key).await?;
    let version = second.map(|stored| stored.version);
    writes(version.as_ref(), b"a", Stored, present).await?;
    let rule = "no version comes back, also if a record does";
    writes(Some(&first.version), b"c", Conflict, rule).await
}

async fn bytes_stay_as_they_are(store: &dyn Store, prefix: &str) -> Result<(), Broken> {
    let rule = "keys and records are bytes";
    let all: Vec<u8> = (0..=u8::MAX).cycle().take(32 * 1024).collect();
    let long = "x".repeat(512usize.saturating_sub(prefix.len()));
    // A collation may take texts for equal that differ in case, in spaces, or in how an accent is written.
    let accents = ["\u{e9}".as_bytes(), "e\u{301}".as_bytes()];
    let names: [&[u8]; 5] = [b"a", b"A", b"a ", b"\xff\xfe", long.as_bytes()];
    for name in names.into_iter().chain(accents) {
        let key = Key::new([prefix.as_bytes(), name].concat());
        let record = [name, &all].concat();
        let stored = write(store, &key, None, &record).await?;
        holds(
            "keys that differ in any byte are different keys",
            stored,
            &key,
        )?;
        let found = read(store, &key).await?.map(|stored| stored.record);
        let found = found.unwrap_or_default();
        holds(rule, found == record, (key, found.len()))?;
    }
    Ok(())
}

/// Each of several clients adds its own byte. All of them are there in the end, so no write was lost.
async fn one_of_many_writes_succeeds<S: Store>(store: &Arc<S>, key: &Key) -> Result<(), Broken> {
    let add = |byte: u8| {
        let (store, key) = (store.clone(), key.clone());
        async move {
            for _ in 0..1_000 {
                let stored = read(&*store, &key).await?;
                let version = stored.as_ref().map(|stored| stored.version.clone());
                let mut record = stored.map_or_else(Vec::new, |stored| stored.record);
                record.push(byte);
                if write(&*store, &key, version.as_ref(), &record).await? {
                    return Ok(());
                }
            }
            Err(broken(
                "one of several writes is stored",
                "1,000 conflicts in a row",
            ))
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "clients that run at the same time"
    )]
    let tasks = (0..RIVALS as u8).map(|byte| tokio::spawn(add(byte)));
    for ended in join_all(tasks).await {
        ended.unwrap_or_else(|error| Err(broken("a call does not panic", error)))?;
    }
    let mut record = read(&**store, key)
        .await?
        .map_or_else(Vec::new, |stored| stored.record);
    record.sort_unstable();
    let all: Vec<u8> = (0..RIVALS as u8).collect();
    holds(
        "of several writes that name one version, one is stored",
        record == all,
        record,
    )
}

/// Two keys that have records are in the list, and each key is in it once, in the order of their bytes.
async fn keys_are_listed_once(store: &dyn Store, one: &Key, other: &Key) -> Result<(), Broken> {
    let mut all: Vec<Key> = Vec::new();
    loop {
        let next = match store.keys(all.last()).await {
            // It lists no keys.
            Err(error) if error.cause == Cause::Unsupported => return Ok(()),
            next => next.map_err(|error| broken("keys are listed, or it is unsupported", error))?,
        };
        if next.is_empty() {
            break;
        }
        all.extend(next);
        let is_sorted = all.is_sorted_by(|before, after| before < after);
        let rule = "keys are listed once, in the order of their bytes, after the one that is named";
        holds(rule, is_sorted, all.last())?;
    }
    let are_there = all.contains(one) && all.contains(other);
    holds("a key with a record is listed", are_there, all.len())
}

#[derive(Default)]
struct Ear {
    lives: AtomicUsize,
    last: Mutex<Vec<u8>>,
}

impl Watcher for Ear {
    fn live(&self) {
        self.lives.fetch_add(1, Ordering::SeqCst);
    }

    fn changed(&self, record: Option<&[u8]>) {
        let mut last = self.last.lock();
        *last = record.unwrap_or_default().to_vec();
    }
}

async fn changes_are_reported(store: &dyn Store, key: &Key) -> Result<(), Broken> {
    let ear = Arc::new(Ear::default());
    let Some(watched) = store.watch(key, ear.clone()) else {
        return Ok(());
    };
    let live = until(|| 0 < ear.lives.load(Ordering::SeqCst)).await;
    holds(
        "a watcher is told that reports begin",
        live,
        "nothing in 10 s",
    )?;
    write(store, key, None, b"changed").await?;
    let heard = || {
        let last = ear.last.lock();
        *last == b"changed"
    };
    // A gap is no loss: the watcher is told to look again.
    let told = until(|| heard() || 1 < ear.lives.load(Ordering::SeqCst)).await;
    holds("a change is reported", told, "nothing in 10 s")?;
    drop(watched);
    Ok(())
}

async fn the_clock_advances(store: &dyn Store, key: &Key) -> Result<(), Broken> {
    let now = async || {
        let snapshot = store.read(key).await;
        snapshot
            .map(|snapshot| snapshot.stamp.now)
            .map_err(|error| broken("a read succeeds", error))
    };
    let Some(first) = now().await? else {
        return Ok(());
    };
    for _ in 0..1_000 {
        match now().await? {
            Some(later) if first < later => return Ok(()),
            Some(_) => pause().await,
            None => {
                return Err(broken(
                    "a store has a clock or has none",
                    "a read without a time",
                ));
            }
        }
    }
    Err(broken(
        "the clock of the store advances",
        format!("{first:?} for ten seconds"),
    ))
}

async fn until(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..REPORTED.as_millis() / 10 {
        if is_so() {
            return true;
        }
        pause().await;
    }
    is_so()
}

#[expect(clippy::disallowed_methods, reason = "a test waits for the store")]
async fn pause() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}
