//! Wake-ups: one connection listens for all records with waiters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::StreamExt;
use quorlock_core::transport::Subscription;
use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Error};

use super::quiet::{self, bucket};
use super::session::{Dial, execute_beside};
use crate::store::{Key, Watcher};
use crate::sync::Mutex;

/// The pause before the next attempt to connect.
const PAUSE: Duration = Duration::from_millis(250);

/// A connection without watchers is closed within this time.
const UNUSED: Duration = Duration::from_secs(5);

/// The watchers of one store.
pub(super) struct Listening {
    dial: Arc<Dial>,
    state: Mutex<State>,
    /// Tells the task that a watcher has come.
    came: Notify,
}

#[derive(Default)]
struct State {
    watchers: BTreeMap<u64, (Key, Arc<dyn Watcher>)>,
    last: u64,
    /// Whether there is a task.
    has_task: bool,
    /// The buckets whose changes the server reports.
    live: BTreeSet<i32>,
}

impl State {
    fn of_bucket(&self, wanted: i32) -> impl Iterator<Item = &Arc<dyn Watcher>> {
        let watchers = self.watchers.values();
        let watchers = watchers.filter(move |(key, _)| bucket(key) == wanted);
        watchers.map(|(_, watcher)| watcher)
    }
}

/// The buckets to begin and to end with.
struct Changes {
    begin: Vec<i32>,
    end: Vec<i32>,
}

impl Listening {
    pub(super) fn new(dial: Arc<Dial>) -> Self {
        Listening {
            dial,
            state: Mutex::default(),
            came: Notify::new(),
        }
    }

    pub(super) fn add(self: &Arc<Self>, key: &Key, watcher: Arc<dyn Watcher>) -> Subscription {
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        let entry = (key.clone(), watcher.clone());
        state.watchers.insert(number, entry);
        let is_live = state.live.contains(&bucket(key));
        let has_task = std::mem::replace(&mut state.has_task, true);
        drop(state);
        match (is_live, has_task) {
            (true, _) => watcher.live(),
            (false, true) => self.came.notify_one(),
            (false, false) => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the driver of a connection needs a task of tokio"
                )]
                tokio::spawn(self.clone().run());
            }
        }
        let listening = self.clone();
        Subscription::new(Ended { listening, number })
    }

    /// Listens while there are watchers.
    async fn run(self: Arc<Self>) {
        while !self.end_if_unused() {
            let _ = self.listen().await;
            self.state.lock().live.clear();
            #[expect(
                clippy::disallowed_methods,
                reason = "waits for a server, decides nothing"
            )]
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Listens until the connection ends, or the last watcher has left.
    async fn listen(&self) -> Result<(), Error> {
        let (client, mut messages) = (self.dial)().await?;
        let hear = |message| self.hear(message);
        execute_beside(&client, &mut messages, "LISTEN quorlock", hear).await?;
        loop {
            let Changes { begin, end } = self.changes();
            if !begin.is_empty() {
                execute_beside(&client, &mut messages, &quiet::begin(&begin), hear).await?;
                self.begun(&begin);
            }
            if !end.is_empty() {
                execute_beside(&client, &mut messages, &quiet::end(&end), hear).await?;
            }
            let came = std::pin::pin!(self.came.notified());
            let next = std::pin::pin!(select(messages.next(), came));
            #[expect(
                clippy::disallowed_methods,
                reason = "looks whether it is used, decides nothing"
            )]
            match tokio::time::timeout(UNUSED, next).await {
                Ok(Either::Left((Some(message), _))) => hear(message?),
                Ok(Either::Left((None, _))) => return Ok(()),
                Ok(Either::Right(_)) | Err(_) => {}
            }
            if self.state.lock().watchers.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns what the server has to be told of the watchers that have come and left.
    fn changes(&self) -> Changes {
        let mut state = self.state.lock();
        let wanted = state.watchers.values().map(|(key, _)| bucket(key));
        let wanted: BTreeSet<i32> = wanted.collect();
        let begin = wanted.difference(&state.live).copied().collect();
        // From now on a watcher of such a bucket waits until it has begun again.
        let end: Vec<i32> = state.live.difference(&wanted).copied().collect();
        state.live.retain(|bucket| wanted.contains(bucket));
        Changes { begin, end }
    }

    /// Handles that changes of these buckets are reported.
    fn begun(&self, buckets: &[i32]) {
        let watchers: Vec<_> = {
            let mut state = self.state.lock();
            state.live.extend(buckets);
            let watchers = buckets.iter().flat_map(|bucket| state.of_bucket(*bucket));
            watchers.cloned().collect()
        };
        for watcher in watchers {
            watcher.live();
        }
    }

    fn hear(&self, message: AsyncMessage) {
        let AsyncMessage::Notification(notice) = message else {
            return;
        };
        let Some((key, record)) = read(notice.payload()) else {
            return;
        };
        let watchers: Vec<_> = {
            let state = self.state.lock();
            let watchers = state.watchers.values().filter(|(of, _)| *of == key);
            watchers.map(|(_, watcher)| watcher.clone()).collect()
        };
        for watcher in watchers {
            watcher.changed(record);
        }
    }

    fn end_if_unused(&self) -> bool {
        let mut state = self.state.lock();
        let is_unused = state.watchers.is_empty();
        state.has_task = !is_unused;
        is_unused
    }
}

struct Ended {
    listening: Arc<Listening>,
    number: u64,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let watcher = self.listening.state.lock().watchers.remove(&self.number);
        drop(watcher);
    }
}

/// Reads the text of a notification.
fn read(text: &str) -> Option<(Key, Option<&[u8]>)> {
    let (hex, record) = match text.split_once(' ') {
        Some((hex, record)) => (hex, Some(record.as_bytes())),
        None => (text, None),
    };
    let bytes = hex.as_bytes().chunks(2).map(|digits| {
        let digits = std::str::from_utf8(digits).ok()?;
        u8::from_str_radix(digits, 16).ok()
    });
    Some((Key::new(bytes.collect::<Option<Vec<_>>>()?), record))
}
