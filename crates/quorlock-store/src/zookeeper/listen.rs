//! Wake-ups: a watch of each record with waiters.

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::transport::Subscription;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use zookeeper_client::{Client, Error, EventType, OneshotWatcher};

use super::error::Failure;
use super::session::Link;
use super::znode::Found;
use crate::store::Watcher;

/// The pause before the next attempt to watch. It doubles with each one that fails.
const PAUSE: Duration = Duration::from_millis(250);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Ends the watch when it is dropped.
struct Watching(JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reports the changes of a record until the subscription is dropped.
pub(super) fn watch(link: Arc<Link>, path: String, watcher: Arc<dyn Watcher>) -> Subscription {
    #[expect(clippy::disallowed_methods, reason = "a watch needs a task of tokio")]
    let task = tokio::spawn(async move {
        let mut pause = PAUSE;
        loop {
            let mut is_live = false;
            // Without its session, nothing is known of what would have been reported: the watch begins anew.
            let _ = follow(&link, &path, &*watcher, &mut is_live).await;
            pause = match is_live {
                true => PAUSE,
                false => (pause * 2).min(LONGEST_PAUSE),
            };
            #[expect(
                clippy::disallowed_methods,
                reason = "waits for a server, decides nothing"
            )]
            sleep(pause).await;
        }
    });
    Subscription::new(Watching(task))
}

/// Reports changes until the session ends. A watch is for one change: the next one is set by the read of what has changed, so no change
/// falls between.
async fn follow(
    link: &Link,
    path: &str,
    watcher: &dyn Watcher,
    is_live: &mut bool,
) -> Result<(), Failure> {
    let Ok(session) = link.session().await else {
        return Ok(());
    };
    loop {
        let (record, change) = look(&session.client, path).await?;
        match std::mem::replace(is_live, true) {
            false => watcher.live(),
            true => watcher.changed(record.as_deref()),
        }
        if change.changed().await.event_type == EventType::Session {
            return Ok(());
        }
    }
}

/// Reads a record, and watches it.
async fn look(client: &Client, path: &str) -> Result<(Option<Vec<u8>>, OneshotWatcher), Failure> {
    loop {
        match client.get_and_watch_data(path).await {
            Ok((data, stat, change)) => {
                let found = Found::parse(path, data, &stat).ok();
                return Ok((found.map(|found| found.record), change));
            }
            Err(Error::NoNode) => {}
            Err(error) => return Err(error.into()),
        }
        let (stat, change) = client.check_and_watch_stat(path).await?;
        if stat.is_none() {
            return Ok((None, change));
        }
        // It was made in between.
    }
}
