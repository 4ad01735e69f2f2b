//! Wake-ups: one stream reports the changes of all records with waiters.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{
    Error, EventType, WatchOptions, WatchRequestSender, WatchResponse, WatchResponseStream,
};
use futures_util::future::{Either, select};
use quorlock_core::transport::Subscription;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::error::Failure;
use super::session::{Link, Session, in_time};
use crate::store::{Key, Watcher};
use crate::sync::Mutex;

/// The pause before the next attempt to open a stream. It doubles with each one that fails.
const PAUSE: Duration = Duration::from_millis(250);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// How often it is looked whether the stream is used, and its member serves calls.
const LOOK: Duration = Duration::from_secs(1);

/// How long the server may take to open a stream.
const OPENED: Duration = Duration::from_secs(5);

/// The watchers of one store.
pub(super) struct Listening {
    link: Arc<Link>,
    prefix: Vec<u8>,
    state: Mutex<State>,
    /// Tells the task that a watcher has come or left.
    changed: Notify,
}

#[derive(Default)]
struct State {
    watchers: BTreeMap<Key, BTreeMap<u64, Arc<dyn Watcher>>>,
    last: u64,
    /// Whether there is a task.
    has_task: bool,
    /// The keys whose changes the server reports.
    live: BTreeSet<Key>,
}

/// The keys that the server was told of on one stream, by the numbers that the client has given to them.
#[derive(Default)]
struct Asked {
    keys: BTreeMap<i64, Key>,
    numbers: BTreeMap<Key, i64>,
    last: i64,
}

/// What the server has to be told.
enum Change {
    Begin(Key, i64),
    End(i64),
}

/// What happens next on a stream.
enum Next {
    /// The server was told, or there is something to tell.
    Told(Result<(), Error>),
    Answer(Result<Option<WatchResponse>, Error>),
    /// Nothing has happened for a while.
    Nothing,
}

impl Asked {
    fn begin(&mut self, key: &Key) -> Change {
        self.last += 1;
        self.keys.insert(self.last, key.clone());
        self.numbers.insert(key.clone(), self.last);
        Change::Begin(key.clone(), self.last)
    }

    fn end(&mut self, number: i64) -> Option<Key> {
        let key = self.keys.remove(&number)?;
        self.numbers.remove(&key);
        Some(key)
    }
}

impl Listening {
    pub(super) fn new(link: Arc<Link>, prefix: Vec<u8>) -> Self {
        Listening {
            link,
            prefix,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(super) fn add(self: &Arc<Self>, key: &Key, watcher: Arc<dyn Watcher>) -> Subscription {
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        let watchers = state.watchers.entry(key.clone()).or_default();
        watchers.insert(number, watcher.clone());
        let is_live = state.live.contains(key);
        let has_task = std::mem::replace(&mut state.has_task, true);
        drop(state);
        match (is_live, has_task) {
            (true, _) => watcher.live(),
            (false, true) => self.changed.notify_one(),
            (false, false) => {
                #[expect(clippy::disallowed_methods, reason = "a stream needs a task of tokio")]
                tokio::spawn(self.clone().run());
            }
        }
        let ended = Ended {
            listening: self.clone(),
            key: key.clone(),
            number,
        };
        Subscription::new(ended)
    }

    /// Listens while there are watchers.
    async fn run(self: Arc<Self>) {
        let mut pause = PAUSE;
        while !self.end_if_unused() {
            if let Ok(session) = self.link.session().await {
                // Without a stream, nothing is known of what it would have reported: each watch begins anew.
                if self.listen(&session).await.is_err() {
                    session.end();
                }
            }
            let was_live = !std::mem::take(&mut self.state.lock().live).is_empty();
            pause = if was_live {
                PAUSE
            } else {
                (pause * 2).min(LONGEST_PAUSE)
            };
            #[expect(
                clippy::disallowed_methods,
                reason = "waits for a server, decides nothing"
            )]
            sleep(pause).await;
        }
    }

    /// Listens until the stream ends, the member is left, or the last watcher has left.
    async fn listen(&self, session: &Session) -> Result<(), Failure> {
        let mut asked = Asked::default();
        let Some(Change::Begin(key, number)) = self.change(&mut asked) else {
            return Ok(());
        };
        let mut watch = session.watch.clone();
        let opened = watch.watch(self.name(&key), options(number));
        let (mut requests, mut answers) = in_time(OPENED, opened).await?.split();
        let mut change = None;
        loop {
            change = change.or_else(|| self.change(&mut asked));
            match self
                .next(&mut requests, change.as_ref(), &mut answers)
                .await
            {
                Next::Told(told) => {
                    told?;
                    change = None;
                }
                Next::Answer(answer) => match answer? {
                    Some(answer) => self.hear(&answer, &mut asked)?,
                    None => return Err(ended("the stream has ended")),
                },
                Next::Nothing if self.state.lock().watchers.is_empty() => return Ok(()),
                Next::Nothing => {}
            }
            if crate::links::Session::has_ended(session) {
                return Ok(());
            }
        }
    }

    async fn next(
        &self,
        requests: &mut WatchRequestSender,
        change: Option<&Change>,
        answers: &mut WatchResponseStream,
    ) -> Next {
        let told = pin!(self.tell(requests, change));
        let answer = pin!(answers.message());
        #[expect(
            clippy::disallowed_methods,
            reason = "looks whether it is used, decides nothing"
        )]
        match timeout(LOOK, select(told, answer)).await {
            Ok(Either::Left((told, _))) => Next::Told(told),
            Ok(Either::Right((answer, _))) => Next::Answer(answer),
            Err(_) => Next::Nothing,
        }
    }

    /// Returns the next thing that the server has to be told, which has to be told then.
    fn change(&self, asked: &mut Asked) -> Option<Change> {
        let mut state = self.state.lock();
        let mut numbers = asked.keys.iter();
        let left = numbers.find(|(_, key)| !state.watchers.contains_key(*key));
        if let Some(number) = left.map(|(number, _)| *number) {
            // From now on a watcher of this key waits until its watch has begun again.
            if let Some(key) = asked.end(number) {
                state.live.remove(&key);
            }
            return Some(Change::End(number));
        }
        let mut wanted = state.watchers.keys();
        let came = wanted.find(|key| !asked.numbers.contains_key(*key))?;
        Some(asked.begin(came))
    }

    /// Tells the server something, or else waits until there is something to tell.
    async fn tell(
        &self,
        requests: &mut WatchRequestSender,
        change: Option<&Change>,
    ) -> Result<(), Error> {
        match change {
            Some(Change::Begin(key, number)) => {
                requests.watch(self.name(key), options(*number)).await
            }
            Some(Change::End(number)) => requests.cancel(*number).await,
            None => {
                self.changed.notified().await;
                Ok(())
            }
        }
    }

    fn hear(&self, answer: &WatchResponse, asked: &mut Asked) -> Result<(), Failure> {
        let number = answer.watch_id();
        if answer.created() {
            // A server refuses a watch without its number, and one before version 3.4 gives numbers of its own.
            if answer.canceled() || !(1..=asked.last).contains(&number) {
                return Err(ended(answer.cancel_reason()));
            }
            if let Some(key) = asked.keys.get(&number) {
                self.begun(key);
            }
        } else if answer.canceled() {
            // The server has no more of the changes that it has not reported yet, so the watch begins again.
            if let Some(key) = asked.end(number) {
                self.state.lock().live.remove(&key);
            }
        } else if let Some(key) = asked.keys.get(&number) {
            for event in answer.events() {
                let record = match event.event_type() {
                    EventType::Put => event.kv().map(etcd_client::KeyValue::value),
                    EventType::Delete => None,
                };
                for watcher in self.watchers_of(key) {
                    watcher.changed(record);
                }
            }
        }
        Ok(())
    }

    /// Handles that changes of this key are reported.
    fn begun(&self, key: &Key) {
        let watchers = {
            let mut state = self.state.lock();
            state.live.insert(key.clone());
            state.of(key)
        };
        for watcher in watchers {
            watcher.live();
        }
    }

    fn watchers_of(&self, key: &Key) -> Vec<Arc<dyn Watcher>> {
        self.state.lock().of(key)
    }

    fn name(&self, key: &Key) -> Vec<u8> {
        [&self.prefix, key.as_bytes()].concat()
    }

    fn end_if_unused(&self) -> bool {
        let mut state = self.state.lock();
        let is_unused = state.watchers.is_empty();
        state.has_task = !is_unused;
        is_unused
    }
}

impl State {
    fn of(&self, key: &Key) -> Vec<Arc<dyn Watcher>> {
        let watchers = self.watchers.get(key).into_iter();
        watchers.flat_map(BTreeMap::values).cloned().collect()
    }
}

fn options(number: i64) -> Option<WatchOptions> {
    Some(WatchOptions::new().with_watch_id(number))
}

fn ended(reason: &str) -> Failure {
    Error::WatchError(reason.to_owned()).into()
}

struct Ended {
    listening: Arc<Listening>,
    key: Key,
    number: u64,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let watcher = {
            let mut state = self.listening.state.lock();
            let Some(watchers) = state.watchers.get_mut(&self.key) else {
                return;
            };
            let watcher = watchers.remove(&self.number);
            if watchers.is_empty() {
                state.watchers.remove(&self.key);
            }
            watcher
        };
        drop(watcher);
        self.listening.changed.notify_one();
    }
}
