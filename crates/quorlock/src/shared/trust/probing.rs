//! The requests that a client sends to learn about a node, or to introduce a longer lease, without an acquire.

use std::sync::Arc;

use quorlock_core::longest_lease::{LongestLease, Step};
use quorlock_core::marker::{Act, Check};
use quorlock_core::message::{Reply, Request};
use quorlock_core::time::Time;
use quorlock_core::transport::{Subscription, TransportError, Witness};
use quorlock_core::trust::{Probe, Trust};

use super::NodeHandle;
use super::watch::{Sent, TrustChange, Watch};

impl NodeHandle {
    /// The request that reads the node's marker and changes nothing; `None` if the node is not watched.
    pub(crate) fn look(&self) -> Option<(Request, Sent)> {
        let watch = self.watch.as_ref()?;
        let now = self.now();
        let figures = watch.stated(&mut self.known.lock().trust, now);
        Some((Request::Probe(watch.request(Act::Look, figures)), Sent(now)))
    }

    /// Handles the result of a probe. Returns the change of trust.
    #[must_use = "operators are told of a change"]
    pub(crate) fn seen(
        &self,
        sent: Sent,
        result: &Result<Reply, TransportError>,
    ) -> Option<TrustChange> {
        let (Some(watch), Ok(Reply::Probe(shown))) = (&self.watch, result) else {
            return None;
        };
        let mut known = self.known.lock();
        let (_, change) = known.hear((watch, &self.party.seen), self.now(), sent, *shown);
        let due = known.trust.poll_timeout();
        drop(known);
        self.set_alarm(change, due);
        change
    }

    /// The probe of the node that is due, if one is.
    pub(crate) fn next_probe(&self) -> Option<(Request, Sent)> {
        let watch = self.watch.as_ref()?;
        let mut known = self.known.lock();
        let now = self.now();
        let figures = watch.stated(&mut known.trust, now);
        let check = match self.next_step(watch, &mut known.trust, now) {
            Some(Step::Look) => self.check(watch, &mut known.trust, now, figures),
            Some(Step::Restate(marker, figures)) => Check {
                trusted: Some(marker),
                ..watch.request(Act::Restate, figures)
            },
            None => match known.trust.next_probe(now)? {
                Probe::Check => self.check(watch, &mut known.trust, now, figures),
                Probe::Confirm(nonce) => {
                    let figures = watch.longest(LongestLease::confirmed);
                    watch.request(Act::Confirm(nonce), figures)
                }
            },
        };
        Some((Request::Probe(check), Sent(now)))
    }

    /// The request to this node that is due to introduce a longer lease, if one is. It counts as a probe.
    fn next_step(&self, watch: &Watch, trust: &mut Trust, now: Time) -> Option<Step> {
        if trust.is_probing() {
            return None;
        }
        let step = watch.next_step(now)?;
        trust.begin_probe();
        Some(step)
    }

    /// Handles the result of that probe. Returns the change of trust.
    #[must_use = "operators are told of a change"]
    pub(crate) fn probed(
        &self,
        sent: Sent,
        result: &Result<Reply, TransportError>,
    ) -> Option<TrustChange> {
        let change = self.seen(sent, result);
        let random = self.runtime.random();
        self.known.lock().trust.handle_end(self.now(), random);
        change
    }

    /// When to call [`NodeHandle::next_probe`].
    pub(crate) fn poll_timeout(&self) -> Time {
        match &self.watch {
            Some(watch) => {
                let known = self.known.lock();
                let due = known.trust.poll_timeout();
                match known.trust.is_probing() {
                    true => due,
                    false => due.min(watch.step_timeout()),
                }
            }
            None => Time::NEVER,
        }
    }

    /// Keeps a connection to a watched node, and probes the node whenever it can be reached again, until the
    /// subscription is dropped. `None` if the node is not watched.
    pub(crate) fn attend_to_probe(self: &Arc<Self>) -> Option<Subscription> {
        self.watch.as_ref()?;
        Some(self.attend(Arc::new(Returns(self.clone()))))
    }
}

/// Probes a node when it can be reached again: it may have been restarted in between.
struct Returns(Arc<NodeHandle>);

impl Witness for Returns {
    fn reachable(&self) {
        let Some(watch) = &self.0.watch else {
            return;
        };
        let now = self.0.now();
        self.0.known.lock().trust.handle_return(now);
        watch.probe_at(now);
    }
}
