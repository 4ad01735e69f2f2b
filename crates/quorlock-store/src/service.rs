//! Serves the requests about one record: read, apply all that wait, write back if nothing has changed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use quorlock_core::marker::Process;
use quorlock_core::node::record::Record;
use quorlock_core::time::{Time, WallMillis};
use quorlock_core::transport::{Cause, Execution, TransportError};

use crate::desk::{Asked, Desk};
use crate::hub::Hubs;
use crate::remembered::{Remembered, Seen};
use crate::runtime::StoreRuntime;
use crate::store::{Draft, Key, Snapshot, Stamp, Store, Version, Written, decode};
use crate::sync::Mutex;
use crate::view::{Applied, Clock, View};

/// The pause after the first conflict. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// How long a record without any use is kept, in milliseconds: its messages may still be read.
const LEAST_KEPT: u64 = 10 * 60 * 1_000;

/// How often a client asks its store to sweep.
const SWEEP_EVERY: Duration = Duration::from_secs(10 * 60);

/// What the tasks of one transport share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) runtime: Arc<dyn StoreRuntime>,
    pub(crate) desk: Desk,
    pub(crate) hubs: Hubs,
    pub(crate) remembered: Mutex<Remembered>,
    swept: Mutex<Time>,
    /// How long a request waits for its reply. One call of the store may take half of it.
    pub(crate) call_timeout: Duration,
}

/// The end of one attempt to write.
enum Attempt {
    Stored(Process),
    Conflict,
    Failed(TransportError),
}

/// A write whose reply may be lost.
struct Sent<'a> {
    key: &'a Key,
    view: &'a View,
    applied: &'a Applied,
    draft: Draft,
    /// After this time no caller waits for the outcome.
    deadline: Time,
}

/// Ends the line of a key even if its task is dropped, so that later requests start another one.
struct Serving<'a>(&'a Desk, &'a Key);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}

impl Service {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        runtime: Arc<dyn StoreRuntime>,
        call_timeout: Duration,
    ) -> Self {
        Service {
            store,
            desk: Desk::default(),
            hubs: Hubs::default(),
            remembered: Mutex::default(),
            swept: Mutex::new(runtime.now()),
            runtime,
            call_timeout,
        }
    }

    /// Serves the line of a key until it is empty.
    pub(crate) async fn serve(self: Arc<Self>, key: Key) {
        let serving = Serving(&self.desk, &key);
        let mut batch = Vec::new();
        while !self.desk.end_if_empty(&key) {
            self.serve_batch(&key, &mut batch).await;
        }
        // The line has ended: a new one may have begun, which is not this task's.
        std::mem::forget(serving);
    }

    async fn serve_batch(&self, key: &Key, batch: &mut Vec<Asked>) {
        let mut pause = FIRST_PAUSE;
        let mut may_remember = true;
        loop {
            batch.extend(self.desk.take(key));
            self.drop_late(batch);
            if batch.is_empty() {
                return;
            }
            let memory = self.remembered_view(key).filter(|_| may_remember);
            let view = match memory {
                Some(view) => view,
                None => match self.read_view(key).await {
                    Ok(view) => view,
                    Err(error) => return fail(batch, &error),
                },
            };
            let applied = view.apply(batch.iter().map(|asked| &asked.request));
            let process = view.process;
            let attempt = match (applied.is_changed, view.is_remembered) {
                (true, _) => self.write(key, &view, &applied, batch).await,
                (false, false) => Attempt::Stored(process),
                (false, true) => {
                    may_remember = false;
                    continue;
                }
            };
            match attempt {
                Attempt::Stored(process) => return answer(batch, applied, process),
                Attempt::Failed(error) => return fail(batch, &error),
                Attempt::Conflict => {
                    may_remember = false;
                    self.remembered.lock().forget(key);
                    // A's memory was old, so no other client is in A's way now. Otherwise B has just written, and both would
                    // go on to disturb each other.
                    if !view.is_remembered {
                        self.pause(&mut pause).await;
                    }
                }
            }
        }
    }

    /// Refuses the requests whose callers do not wait any more. None of them was written.
    fn drop_late(&self, batch: &mut Vec<Asked>) {
        let now = self.runtime.now();
        let (kept, late) = std::mem::take(batch)
            .into_iter()
            .partition(|asked| now < asked.deadline);
        *batch = kept;
        let error = TransportError::definite(
            Cause::Busy,
            "other clients have changed the record at each try",
        );
        fail(&mut { late }, &error);
    }

    fn remembered_view(&self, key: &Key) -> Option<View> {
        let now = self.runtime.now();
        let remembered = self.remembered.lock();
        let seen = remembered.get(key)?;
        let reading = remembered.reading(now, seen.process);
        View::remembered(seen, reading, now)
    }

    pub(crate) async fn read_view(&self, key: &Key) -> Result<View, TransportError> {
        let snapshot = self.read(key).await?;
        let process = snapshot.stamp.process;
        let Some(stored) = snapshot.stored else {
            let clock = snapshot.stamp.now;
            let clock = clock.map_or(Clock::Observed(WallMillis(0)), Clock::Store);
            return Ok(View {
                record: Record::default(),
                version: None,
                process,
                clock,
                is_remembered: false,
            });
        };
        let (record, write) = decode(key, &stored.record)?;
        let since = self.hubs.since(key, write);
        let seen = Seen {
            record,
            version: stored.version,
            process,
            since: since.unwrap_or_else(|| self.runtime.now()),
            is_observed: snapshot.stamp.now.is_none(),
        };
        let seen = self.remembered.lock().put(key, seen);
        let observed = || Clock::Observed(seen.observed(self.runtime.now()));
        Ok(View {
            clock: snapshot.stamp.now.map_or_else(observed, Clock::Store),
            record: seen.record,
            version: Some(seen.version),
            process,
            is_remembered: false,
        })
    }

    /// Reads a record. A read changes nothing, so its failure is definite.
    pub(crate) async fn read(&self, key: &Key) -> Result<Snapshot, TransportError> {
        let sent = self.runtime.now();
        let read = self.within_bound(self.store.read(key)).await;
        let snapshot = read.map_err(|error| error.with_execution(Execution::Definite))?;
        self.remembered.lock().read_clock(sent, snapshot.stamp);
        let record = snapshot.stored.as_ref().map(|stored| &*stored.record);
        self.hubs.read(self.runtime.now(), key, record);
        Ok(snapshot)
    }

    /// Writes what the requests have made of the record.
    async fn write(&self, key: &Key, view: &View, applied: &Applied, batch: &[Asked]) -> Attempt {
        let number = self.runtime.random();
        let record = applied.record.encode(number);
        let useful_until = view.clock.of_store().and_then(|now| {
            let until = applied.record.useful_until()?;
            Some(until.max(now.plus(LEAST_KEPT)))
        });
        let deadlines = batch.iter().map(|asked| asked.deadline);
        let sent = Sent {
            key,
            view,
            applied,
            draft: Draft {
                record: record.into_bytes(),
                number,
                has_news: view.record.published() != applied.record.published(),
                useful_until,
            },
            deadline: deadlines.max().unwrap_or_default(),
        };
        let first = self.runtime.now();
        match self.send(&sent).await {
            Ok(Written::Stored { version, stamp }) => self.stored(&sent, version, stamp, first),
            Ok(Written::Conflict) => Attempt::Conflict,
            Err(error) if error.execution == Execution::Definite => Attempt::Failed(error),
            Err(error) => self.resolve(&sent, error, first).await,
        }
    }

    async fn send(&self, sent: &Sent<'_>) -> Result<Written, TransportError> {
        let version = sent.view.version.as_ref();
        let write = self.store.write_if(sent.key, version, sent.draft.clone());
        self.within_bound(write).await
    }

    /// Finds out what became of a write that got no reply.
    async fn resolve(&self, sent: &Sent<'_>, error: TransportError, first: Time) -> Attempt {
        let mut pause = FIRST_PAUSE;
        while self.runtime.now() < sent.deadline {
            let Ok(snapshot) = self.read(sent.key).await else {
                self.pause(&mut pause).await;
                continue;
            };
            // A's write got no reply. If the record is A's text, it was executed.
            let stored = snapshot.stored.as_ref();
            if let Some(stored) = stored.filter(|stored| stored.record == sent.draft.record) {
                return self.stored(sent, stored.version.clone(), snapshot.stamp, first);
            }
            // If the record has another version than the one that A named, A's write may have been executed before that of
            // B, which is there now, or never. A must not repeat it: an acquire would be told that the claim is already
            // A's, which counts even where a fresh grant does not.
            let version = stored.map(|stored| &stored.version);
            if version != sent.view.version.as_ref() || snapshot.stamp.process != sent.view.process
            {
                break;
            }
            // If it has that version, A sends the same text again. The store executes one of the two at most, however late
            // the first one comes, and it does not matter which.
            if let Ok(Written::Stored { version, stamp }) = self.send(sent).await {
                return self.stored(sent, version, stamp, first);
            }
            self.pause(&mut pause).await;
        }
        self.remembered.lock().forget(sent.key);
        Attempt::Failed(error.with_execution(Execution::Indeterminate))
    }

    /// Handles a write that was executed. `first` is when it was sent for the first time.
    fn stored(&self, sent: &Sent<'_>, version: Version, stamp: Stamp, first: Time) -> Attempt {
        let (key, view, now) = (sent.key, sent.view, self.runtime.now());
        let lost = |detail| {
            self.remembered.lock().forget(key);
            Attempt::Failed(TransportError::indeterminate(Cause::Closed, detail))
        };
        if stamp.process != view.process {
            // The server that executed the write may lack what the one that was read had.
            return lost("another server took over during the request");
        }
        if let (Clock::Reckoned(reading, _), Some(shown)) = (view.clock, stamp.now)
            && reading.at_most(now) < shown
        {
            // The clock was set forward since it was read. The claim would end when the old clock shows the end of the lease,
            // which is too early by the step.
            self.remembered.lock().forget_clock();
            return lost("the clock of the store was set forward");
        }
        {
            let mut remembered = self.remembered.lock();
            remembered.read_clock(first, stamp);
            let seen = Seen {
                record: sent.applied.record.clone(),
                version,
                process: stamp.process,
                since: now,
                is_observed: stamp.now.is_none(),
            };
            remembered.put(key, seen);
        }
        self.hubs.written(key, &view.record, &sent.applied.record);
        self.sweep_sometimes(now);
        Attempt::Stored(stamp.process)
    }

    fn sweep_sometimes(&self, now: Time) {
        let mut swept = self.swept.lock();
        if now.since(*swept) < SWEEP_EVERY {
            return;
        }
        *swept = now;
        drop(swept);
        let sweep = self.store.sweep();
        self.runtime.spawn(Box::pin(async move {
            // Another sweep follows, of this client or of another one.
            let _ = sweep.await;
        }));
    }

    /// Bounds the time of a call of the store.
    async fn within_bound<T>(
        &self,
        call: impl Future<Output = Result<T, TransportError>> + Unpin,
    ) -> Result<T, TransportError> {
        let bound = self.call_timeout / 2;
        match select(call, self.runtime.sleep(bound)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(TransportError::indeterminate(
                Cause::TimedOut,
                format!("no answer in {bound:?}"),
            )),
        }
    }

    /// Waits for a random part of the pause, and doubles it.
    async fn pause(&self, pause: &mut Duration) {
        // Half of it at least: two clients that conflict must not both come back at once.
        let part = u32::try_from(self.runtime.random() >> 48).unwrap_or(0);
        self.runtime
            .sleep(*pause / 2 + *pause * part / 0x2_0000)
            .await;
        *pause = (*pause * 2).min(LONGEST_PAUSE);
    }
}

fn answer(batch: &mut Vec<Asked>, applied: Applied, process: Process) {
    for (asked, reply) in batch.drain(..).zip(applied.replies) {
        // A caller that does not wait any more needs no reply.
        let _ = asked.answer.send(reply.map(|reply| (reply, process)));
    }
}

fn fail(batch: &mut Vec<Asked>, error: &TransportError) {
    for asked in batch.drain(..) {
        let _ = asked.answer.send(Err(error.clone()));
    }
}
