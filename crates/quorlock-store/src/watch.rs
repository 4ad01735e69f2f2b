//! Watching a record, by the store's own reports or by reading it again from time to time.

use std::sync::{Arc, Weak};
use std::time::Duration;

use quorlock_core::message::Channel;
use quorlock_core::node::record::Topic;
use quorlock_core::transport::{Listener, Subscription};

use crate::service::Service;
use crate::store::{Key, Watcher};

/// Subscribes a listener to the messages of one channel.
pub(crate) fn subscribe(
    service: &Arc<Service>,
    channel: &Channel,
    listener: Arc<dyn Listener>,
    poll_every: Duration,
) -> Subscription {
    // The loss of a claim is noticed by the next renewal.
    let Some(topic) = Topic::of(channel) else {
        return Subscription::new(());
    };
    let key = Key::new(channel.name().stem());
    let added = service.hubs.add(&key, topic, listener);
    let ended = Ended {
        service: service.clone(),
        key: key.clone(),
        number: added.number,
    };
    if added.is_first {
        let reports = Arc::new(Reports {
            service: Arc::downgrade(service),
            key: key.clone(),
        });
        match service.store.watch(&key, reports) {
            Some(watch) => service.hubs.keep(&key, watch),
            None => poll(service, &key, poll_every),
        }
    }
    Subscription::new(ended)
}

/// Passes the reports of the store on.
struct Reports {
    service: Weak<Service>,
    key: Key,
}

impl Watcher for Reports {
    fn live(&self) {
        if let Some(service) = self.service.upgrade() {
            service.hubs.live(&self.key);
        }
    }

    fn changed(&self, record: Option<&[u8]>) {
        let Some(service) = self.service.upgrade() else {
            return;
        };
        match record {
            Some(record) => {
                let now = service.runtime.now();
                service.hubs.changed(now, &self.key, record);
            }
            None => look(&service, &self.key),
        }
    }
}

/// Reads a record that has changed in a way that the store did not tell. If each waiter asked instead, and a request of A changed
/// the record, B would be told of it and ask, and A of B's: they would never come to rest.
fn look(service: &Arc<Service>, key: &Key) {
    if !service.hubs.begin_look(key) {
        return;
    }
    let (service, key) = (service.clone(), key.clone());
    service.runtime.clone().spawn(Box::pin(async move {
        loop {
            // What is read reaches the listeners; a read that fails is a gap.
            if service.read_view(&key).await.is_err() {
                service.hubs.gap(&key);
            }
            if service.hubs.end_look(&key) {
                return;
            }
        }
    }));
}

/// Ends a subscription when it is dropped.
struct Ended {
    service: Arc<Service>,
    key: Key,
    number: u64,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.service.hubs.remove(&self.key, self.number);
    }
}

/// Reads a record of a store that cannot notify its clients every so often, while it has listeners.
fn poll(service: &Arc<Service>, key: &Key, every: Duration) {
    // The watch ends when this value is dropped.
    let alive = Arc::new(());
    let (alive_while, weak) = (Arc::downgrade(&alive), Arc::downgrade(service));
    service.hubs.keep(key, Subscription::new(alive));
    let (runtime, key) = (service.runtime.clone(), key.clone());
    service.runtime.spawn(Box::pin(async move {
        let mut is_live = false;
        loop {
            if alive_while.strong_count() == 0 {
                return;
            }
            let Some(service) = weak.upgrade() else {
                return;
            };
            // What is read reaches the listeners; a read that fails is a gap.
            let has_read = service.read(&key).await.is_ok();
            if has_read && !is_live {
                service.hubs.live(&key);
            }
            is_live = has_read;
            drop(service);
            runtime.sleep(every).await;
        }
    }));
}
