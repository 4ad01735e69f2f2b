//! Wake-ups: one connection listens for all records with waiters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::StreamExt;
use quorlock_core::transport::Subscription;
use tokio_postgres::AsyncMessage;

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
}

#[derive(Default)]
struct State {
    watchers: BTreeMap<u64, (Key, Arc<dyn Watcher>)>,
    last: u64,
    connection: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// There is no task.
    #[default]
    None,
    Connecting,
    Live,
}

impl Listening {
    pub(super) fn new(dial: Arc<Dial>) -> Self {
        let state = Mutex::default();
        Listening { dial, state }
    }

    pub(super) fn add(self: &Arc<Self>, key: &Key, watcher: Arc<dyn Watcher>) -> Subscription {
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        state
            .watchers
            .insert(number, (key.clone(), watcher.clone()));
        let phase = state.connection;
        if phase == Phase::None {
            state.connection = Phase::Connecting;
        }
        drop(state);
        match phase {
            Phase::Live => watcher.live(),
            Phase::Connecting => {}
            Phase::None => {
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
            self.listen().await;
            self.set(Phase::Connecting);
            #[expect(
                clippy::disallowed_methods,
                reason = "waits for a server, decides nothing"
            )]
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Listens until the connection ends, or the last watcher has left.
    async fn listen(&self) {
        let Ok((client, mut messages)) = (self.dial)().await else {
            return;
        };
        let listens = execute_beside(&client, &mut messages, "LISTEN quorlock").await;
        if listens.is_err() {
            return;
        }
        self.set(Phase::Live);
        for watcher in self.watchers(None) {
            watcher.live();
        }
        loop {
            #[expect(
                clippy::disallowed_methods,
                reason = "looks whether it is used, decides nothing"
            )]
            let next = tokio::time::timeout(UNUSED, messages.next()).await;
            match next {
                Ok(Some(Ok(AsyncMessage::Notification(notice)))) => self.tell(notice.payload()),
                Ok(Some(Ok(_))) | Err(_) => {}
                Ok(Some(Err(_)) | None) => return,
            }
            if self.state.lock().watchers.is_empty() {
                return;
            }
        }
    }

    fn tell(&self, notice: &str) {
        if let Some((key, record)) = read(notice) {
            for watcher in self.watchers(Some(&key)) {
                watcher.changed(record);
            }
        }
    }

    fn watchers(&self, of: Option<&Key>) -> Vec<Arc<dyn Watcher>> {
        let state = self.state.lock();
        let watchers = state.watchers.values();
        let watchers = watchers.filter(|(key, _)| of.is_none_or(|of| of == key));
        watchers.map(|(_, watcher)| watcher.clone()).collect()
    }

    fn set(&self, phase: Phase) {
        self.state.lock().connection = phase;
    }

    fn end_if_unused(&self) -> bool {
        let mut state = self.state.lock();
        let is_unused = state.watchers.is_empty();
        if is_unused {
            state.connection = Phase::None;
        }
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
