//! A server as a sentinel: what it is told of elections.

use super::Server;
use crate::watch::{Place, Watch};

impl Server {
    /// The same as a sentinel: it has the commands that clients ask sentinels, and no keys.
    #[must_use]
    pub fn watching(self, watch: Watch) -> Self {
        self.0.data().watch = Some(watch);
        self
    }

    /// A sentinel names another primary from now on, and publishes `+switch-master`. A server that is no sentinel does nothing.
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

    /// The sentinel that has made another server the primary names it from now on, and publishes `+promoted-slave`. The others
    /// [hear](Self::switch) of it later, and so does a client that listens to `+switch-master`. A server that is no sentinel does
    /// nothing.
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
