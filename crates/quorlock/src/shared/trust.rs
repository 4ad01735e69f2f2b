//! The nodes of a client, and whether their votes count.

mod observe;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::claim_version::{ClaimVersion, ClockMargin, Observations};
use quorlock_core::lease::{Lease, drift};
use quorlock_core::marker::{Act, Check, Nonce, Restarts, Shown};
use quorlock_core::message::{AcquireReply, Channel, Freshness, Reply, Request};
use quorlock_core::name::Name;
use quorlock_core::round::Answer;
use quorlock_core::slot::{Slot, UnfitName};
use quorlock_core::time::{Time, millis_of};
use quorlock_core::transport::{Call, Listener, Subscription, Transport, TransportError, Witness};
use quorlock_core::trust::{Counts, Trust};

pub(crate) use self::observe::answer;
use self::observe::observe;
use self::watch::Watch;
pub(crate) use self::watch::{Sent, TrustChange, Watching};
use crate::error::Quarantine;
use crate::mutex::Mutex;
use crate::runtime::Runtime;
use crate::shared::alarm::Alarm;
use crate::shared::party::Party;

/// Which nodes' votes count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NodeTrust {
    /// Those whose process was watched for one [`longest_lease`](crate::LocksBuilder::longest_lease): a node that was
    /// restarted, flushed or failed over may have forgotten claims, and is quarantined for this time.
    Watched,
    /// As [`NodeTrust::Watched`], and a node that was restarted is trusted at once if it still has its marker.
    ///
    /// **By this the operator asserts two things of every node**, and two clients hold one lock if either is false:
    /// restarts keep every write that was acknowledged (Redis: `appendonly yes` *and* `appendfsync always`, on a disk
    /// that does not lose what it has confirmed), and no other server ever takes its address: no replica that is promoted,
    /// no copy of its disk, no new machine behind its name. All clients of a deployment must agree: a node that one
    /// client trusts, all do.
    ///
    /// A node that shows that the second is false is quarantined all the same: one that has replicas, was one itself
    /// (its `master_replid2` is not zeros), or is restarted with another nonce in its marker than the client trusted
    /// last at this address. So is one without its marker. A client that has just begun knows no nonce, and trusts a
    /// restarted server with whatever confirmed marker it has.
    AssertedDurable,
    /// Every node's: one that comes back without its data may give a lock to a second holder.
    Unwatched,
}

/// What a member is asked for by an acquire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A new hold. That a claim is there already means that the request was delivered twice, and counts no more than
    /// the first delivery.
    NewHold,
    /// A hold that is held without this member. What it has there already is its own, whichever process the node is.
    Missing,
}

/// What an acquire says of the node that it goes to.
pub(crate) struct Question {
    /// The claim version whose claim it may replace.
    pub(crate) replaces: Option<ClaimVersion>,
    /// What the node is to show of itself.
    pub(crate) check: Option<Check>,
    /// When it was asked for, which is before it leaves.
    pub(crate) sent: Sent,
}

/// What an answer to an acquire amounts to.
#[must_use = "operators are told of a change"]
pub(crate) struct Voted {
    pub(crate) answer: Answer,
    /// What has changed for the node that gave it.
    pub(crate) change: Option<TrustChange>,
}

/// A node: the way to it, and what this client thinks of it.
///
/// It reads the clock itself, and each time anew. What a reply shows is dated after the reply was handed over, what is
/// sent before it leaves, whatever reading the caller has.
pub(crate) struct NodeHandle {
    transport: Arc<dyn Transport>,
    /// That of the client that keeps the node.
    runtime: Arc<dyn Runtime>,
    /// The client that keeps the node.
    pub(crate) party: Arc<Party>,
    watch: Option<Watch>,
    /// For how much longer than its lease the node keeps a claim.
    margin: Duration,
    known: Mutex<Known>,
}

/// What a client knows of a node.
struct Known {
    /// Of a node under watch.
    trust: Trust,
    /// What it has shown of the claims in the way; of use only with a margin.
    observed: Observations,
}

impl Known {
    /// The node has shown this of itself.
    fn hear(
        &mut self,
        watch: &Watch,
        now: Time,
        sent: Sent,
        shown: Shown,
    ) -> (Counts, Option<TrustChange>) {
        let trusted = self.trust.trusted();
        let heard = watch.hear(&mut self.trust, now, sent, shown);
        if self.trust.trusted() != trusted {
            // Another process, or none that is trusted: what the one before has shown says nothing, and a node under
            // quarantine shows nothing that is remembered. So no request asks such a node to replace a claim.
            self.observed.clear();
        }
        heard
    }
}

/// The nodes of a client, under watch or not.
pub(crate) fn peers(
    transports: Vec<Arc<dyn Transport>>,
    watching: Option<Watching>,
    margin: Duration,
    alarm: &Arc<Alarm>,
    runtime: &Arc<dyn Runtime>,
    party: &Arc<Party>,
) -> Arc<[Arc<NodeHandle>]> {
    let watches = watching.map(|watching| watching.begin(transports.len(), alarm));
    let mut watches = watches.into_iter().flatten();
    let longest = watching.map_or(Duration::ZERO, |watching| watching.longest.length());
    let peer = |transport| {
        Arc::new(NodeHandle {
            transport,
            runtime: runtime.clone(),
            party: party.clone(),
            watch: watches.next(),
            margin,
            known: Mutex::new(Known {
                trust: Trust::new(longest),
                observed: Observations::new(),
            }),
        })
    };
    transports.into_iter().map(peer).collect()
}

impl NodeHandle {
    pub(crate) fn call(&self, request: Request) -> Call {
        self.transport.call(request)
    }

    pub(crate) fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        self.transport.subscribe(channel, listener)
    }

    pub(crate) fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        self.transport.attend(witness)
    }

    /// In which slot of the node the keys of a name lie.
    ///
    /// # Errors
    /// For a name that the node cannot keep.
    pub(crate) fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        self.transport.slot(name)
    }

    pub(crate) fn address(&self) -> &str {
        self.transport.address()
    }

    /// What an acquire that is sent now is to say, of `name` if it may replace a claim there.
    pub(crate) fn ask(&self, name: Option<&Name>) -> Question {
        let mut known = self.known.lock();
        let now = self.now();
        let sent = Sent(now);
        let name = name.filter(|_| self.has_versions());
        let replaces = name.and_then(|name| known.observed.replaceable(now, name));
        let Some(watch) = &self.watch else {
            return Question {
                replaces,
                check: None,
                sent,
            };
        };
        let trusted = known.trust.next_trusted(now);
        let known_nonce = known.trust.known();
        let wants_marker = known.trust.wants_marker();
        drop(known);
        // A node that may inherit a marker must be able to write another one over it: this client would only look,
        // and one that knows less would have the node inherit right behind it.
        let may_inherit = watch.restarts() == Restarts::KeepEverything;
        let act = if wants_marker || may_inherit {
            let nonce = Nonce::from_random(self.runtime.random());
            if wants_marker {
                watch.mark(nonce)
            } else {
                Act::Mark(nonce)
            }
        } else {
            Act::Look
        };
        let check = Check {
            trusted,
            known: known_nonce,
            ..watch.request(act)
        };
        Question {
            replaces,
            check: Some(check),
            sent,
        }
    }

    fn now(&self) -> Time {
        self.runtime.now()
    }

    /// How a node keeps a claim beyond its lease by the `number`-th request of its owner.
    pub(crate) fn keep(&self, number: u64) -> Option<ClockMargin> {
        let margin_millis = millis_of(self.margin);
        (0 < margin_millis).then_some(ClockMargin {
            margin_millis,
            number,
        })
    }

    /// Whether claims have claim versions.
    pub(crate) fn has_versions(&self) -> bool {
        !self.margin.is_zero()
    }

    /// By when a claim that is not renewed any more is gone: its margin goes by the node's clock.
    pub(crate) fn gone(&self, now: Time, lease: Lease) -> Time {
        let kept = lease.length().saturating_add(self.margin);
        now + kept + drift(kept)
    }

    /// What the answer to an acquire of `name` that was sent at `sent` is worth.
    pub(crate) fn vote(
        &self,
        sent: Sent,
        name: &Name,
        asking: Purpose,
        result: &Result<Reply, TransportError>,
    ) -> Voted {
        let mut known = self.known.lock();
        // B's claim was renewed while this process was stopped, and the reply that shows it waited here. Dated by a
        // reading from before the stop, B would seem to be silent for as long.
        let now = self.now();
        let (mut answer, change) = self.counted(&mut known, now, sent, asking, result);
        if self.has_versions() {
            let is_quarantined = self.watch.is_some() && known.trust.quarantine().is_some();
            let observed = &mut known.observed;
            answer = observe(observed, now, name, answer, result, is_quarantined);
        }
        let due = known.trust.poll_timeout();
        drop(known);
        self.set_alarm(change, due);
        Voted { answer, change }
    }

    /// What the answer is worth as a vote.
    fn counted(
        &self,
        known: &mut Known,
        now: Time,
        sent: Sent,
        asking: Purpose,
        result: &Result<Reply, TransportError>,
    ) -> (Answer, Option<TrustChange>) {
        let answer = answer(result);
        let Some(watch) = &self.watch else {
            return (answer, None);
        };
        let Ok(Reply::Checked(reply, shown)) = result else {
            let answer = match answer {
                // Who does not say which process it is cannot be trusted.
                Answer::Granted(_) => Answer::Quarantined(None),
                answer => answer,
            };
            return (answer, None);
        };
        let (counts, change) = known.hear(watch, now, sent, *shown);
        let answer = match reply {
            AcquireReply::Granted { freshness, .. }
                if counts == Counts::No
                    && (asking, *freshness) != (Purpose::Missing, Freshness::AlreadyYours) =>
            {
                let quarantine = known.trust.quarantine();
                // Not the time: that is one of this clock, and the round may be one of another client.
                let until = quarantine.and_then(|(_, until)| until);
                Answer::Quarantined(until.map(|until| until.since(now)))
            }
            _ => answer,
        };
        (answer, change)
    }

    /// Sees to it that the watch of a node that was quarantined ends in time. The alarm wakes a task: no mutex is held.
    fn set_alarm(&self, change: Option<TrustChange>, due: Time) {
        if let (Some(watch), Some(TrustChange::Quarantined(_))) = (&self.watch, change) {
            watch.ends_at(due);
        }
    }

    /// Why its votes are not counted; `None` when they are.
    pub(crate) fn quarantine(&self) -> Option<Quarantine> {
        self.watch.as_ref()?;
        let (why, until) = self.known.lock().trust.quarantine()?;
        let left = until.map(|until| until.since(self.now()));
        Some(Quarantine { why, left })
    }

    /// The request that asks the node about itself and changes nothing.
    pub(crate) fn look(&self) -> Option<(Request, Sent)> {
        let watch = self.watch.as_ref()?;
        let request = Request::Probe(watch.request(Act::Look));
        Some((request, Sent(self.now())))
    }

    /// What a probe that was sent at `sent` showed, and what has changed by it.
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
        let (_, change) = known.hear(watch, self.now(), sent, *shown);
        let due = known.trust.poll_timeout();
        drop(known);
        self.set_alarm(change, due);
        change
    }

    /// The request that ends the watch of the node, if it is due.
    pub(crate) fn next_confirmation(&self) -> Option<(Request, Sent)> {
        let watch = self.watch.as_ref()?;
        let now = self.now();
        let nonce = self.known.lock().trust.next_confirmation(now)?;
        let request = Request::Probe(watch.request(Act::Confirm(nonce)));
        Some((request, Sent(now)))
    }

    /// That request has come to its end, and this has changed by it.
    #[must_use = "operators are told of a change"]
    pub(crate) fn confirmed(
        &self,
        sent: Sent,
        result: &Result<Reply, TransportError>,
    ) -> Option<TrustChange> {
        self.known.lock().trust.handle_end(self.now());
        self.seen(sent, result)
    }

    /// When to call [`NodeHandle::next_confirmation`].
    pub(crate) fn poll_timeout(&self) -> Time {
        self.known.lock().trust.poll_timeout()
    }
}

impl fmt::Debug for NodeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transport.fmt(f)
    }
}
