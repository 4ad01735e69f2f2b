//! A server as a sentinel, and the results of elections that it receives.

use super::Server;
use crate::watch::{Place, Watch};

impl Server {
    /// Returns the same server as a sentinel. It has the commands that clients send to sentinels, and no keys.
    #[must_use]
    pub fn watching(self, watch: Watch) -> Self {
        self.0.data().watch = Some(watch);
        self
    }

    /// Makes a sentinel name another primary from now on and publish `+switch-master`. Does nothing on a server that is
    /// not a sentinel.
    pub fn switch(&mut self, primary: Place, epoch: u64) {
        let mut data = self.0.data();
        let former = data.former_primary.take();
        let Some(watch) = &mut data.watch else {
            return;
        };
        let named = std::mem::replace(&mut watch.primary, primary);
        let (host, port) = former.unwrap_or(named);
        watch.epoch = epoch;
        let (to, to_port) = &watch.primary;
        let news = format!("{} {host} {port} {to} {to_port}", watch.name);
        data.channels.publish(b"+switch-master", news.as_bytes());
        drop(data);
        self.deliver();
    }

    /// Makes the sentinel that promoted another server name it as the primary from now on and publish
    /// `+promoted-slave`. The other sentinels [learn](Self::switch) of it later, and so do clients that listen to
    /// `+switch-master`. Does nothing on a server that is not a sentinel.
    pub fn promoted(&mut self, primary: Place, epoch: u64) {
        let mut data = self.0.data();
        let Some(watch) = &mut data.watch else {
            return;
        };
        let (to, to_port) = primary.clone();
        let former = std::mem::replace(&mut watch.primary, primary);
        watch.epoch = epoch;
        let (host, port) = &former;
        let name = &watch.name;
        let news = format!("slave {to}:{to_port} {to} {to_port} @ {name} {host} {port}");
        data.channels.publish(b"+promoted-slave", news.as_bytes());
        data.former_primary = Some(former);
        drop(data);
        self.deliver();
    }
}
