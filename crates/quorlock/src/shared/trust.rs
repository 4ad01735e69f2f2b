//! The nodes of a client, and whether their votes count.

mod observe;
mod probing;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::claim_version::{ClaimVersion, ClockMargin, Observations};
use quorlock_core::lease::{Lease, drift};
use quorlock_core::longest_lease::LongestLease;
use quorlock_core::marker::{Act, Check, Figures, Nonce, Restarts, Shown};
use quorlock_core::message::{AcquireReply, Channel, Freshness, Reply, Request};
use quorlock_core::name::Name;
use quorlock_core::round::Answer;
use quorlock_core::slot::{ServerNumber, Slot, UnfitName};
use quorlock_core::time::{Time, millis_of};
use quorlock_core::transport::{
    Call, Cause, Execution, Listener, Subscription, Transport, TransportError, Witness,
};
use quorlock_core::trust::{Counts, Trust, Why};

pub(crate) use self::observe::answer;
use self::observe::observe;
use self::watch::Watch;
pub(crate) use self::watch::{Sent, TrustChange, Watching};
use crate::error::Quarantine;
use crate::mutex::Mutex;
use crate::runtime::Runtime;
use crate::shared::alarm::Alarm;
use crate::shared::party::Party;
use crate::shared::seen_tokens::SeenTokens;

/// The policy by which nodes' votes count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NodeTrust {
    /// Counts nodes whose process was watched for one [`longest_lease`](crate::LocksBuilder::longest_lease). A node
    /// that was restarted, flushed or failed over may have lost claims, and is quarantined for this time.
    Watched,
    /// Like [`NodeTrust::Watched`], but a restarted node is trusted at once if it still has its marker.
    ///
    /// **With this policy the operator asserts two things about every node**, and two clients may hold one lock if
    /// either is false. First, restarts keep every acknowledged write (Redis: `appendonly yes` *and* `appendfsync
    /// always`, on a disk that does not lose what it has confirmed). Second, no other server ever takes the node's
    /// address: no promoted replica, no copy of its disk, no new machine behind its name. All clients of a
    /// deployment must use the same policy, because a node that one client trusts is trusted by all.
    ///
    /// A node that shows that the second assertion is false is quarantined nevertheless. This applies to a node
    /// that has replicas, to one that was a replica (its `master_replid2` is not zeros), and to one that was
    /// restarted with a marker whose nonce differs from the one that the client trusted last at this address. A
    /// node without its marker is quarantined, too. A new client knows no nonce, and trusts a restarted server with
    /// any confirmed marker.
    AssertedDurable,
    /// Counts every node. A node that restarts without its data may give a lock to a second holder.
    Unwatched,
}

/// Why an acquire is sent to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// To win a new hold. "Already yours" then means that the request was delivered twice, and counts no more than
    /// the first delivery.
    NewHold,
    /// To add a member to an existing hold. A claim that already exists there belongs to this hold, whichever
    /// process the node is.
    Missing,
}

/// What an acquire states to its node about trust and take-over.
pub(crate) struct Question {
    /// The claim version of a claim that the request may replace.
    pub(crate) replaces: Option<ClaimVersion>,
    /// What the node must show about itself.
    pub(crate) check: Option<Check>,
    /// When the question was made, which is before the request is sent.
    pub(crate) sent: Sent,
}

/// The vote that an answer to an acquire amounts to.
#[must_use = "operators are told of a change"]
pub(crate) struct Voted {
    pub(crate) answer: Answer,
    /// How long the node was watched, as its marker has stated with this vote, in milliseconds.
    pub(crate) watched_millis: u64,
    /// The change of trust in the node that answered.
    pub(crate) change: Option<TrustChange>,
}

/// A node: its transport, and this client's observations of it.
/// It reads the clock itself for every event: after it was handed a reply, and before a request is sent, whatever
/// the caller read earlier.
pub(crate) struct NodeHandle {
    transport: Arc<dyn Transport>,
    /// The runtime of the client that owns the node.
    runtime: Arc<dyn Runtime>,
    /// The client that owns the node.
    pub(crate) party: Arc<Party>,
    watch: Option<Watch>,
    /// How much longer than its lease the node keeps a claim.
    margin: Duration,
    known: Mutex<Known>,
}

/// A client's observations of a node.
struct Known {
    /// The trust in the node. Used only if the node is watched.
    trust: Trust,
    /// The claim versions that the node has shown for claims in the way. Used only with a margin.
    observed: Observations,
}

impl Known {
    /// Handles what the node has shown about itself.
    fn hear(
        &mut self,
        (watch, seen): (&Watch, &SeenTokens),
        now: Time,
        sent: Sent,
        shown: Shown,
    ) -> (Counts, Option<TrustChange>) {
        let watched = |trust: &Trust| trust.trusted().map(|it| (it.process, it.nonce));
        let before = watched(&self.trust);
        let heard = watch.hear(&mut self.trust, now, sent, shown);
        if watched(&self.trust) != before {
            // The node is another process, or is not trusted. A's observations of the old process prove nothing
            // about the new one, which may have lost a renewal by B: replacing B's claim now would break B's hold.
            // A quarantined node's answers are not remembered either, so no request asks it to replace a claim.
            self.observed.clear();
            // Nor do tokens: its counters may be older than those of the old process.
            seen.clear();
        }
        heard
    }
}

/// Creates the nodes of a client, watched or not.
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
    let unwatched = LongestLease::new(Duration::ZERO, false, 0);
    let peer = |transport| {
        let watch = watches.next();
        let trust = match &watch {
            Some(watch) => watch.trust(),
            None => Trust::new(&unwatched),
        };
        Arc::new(NodeHandle {
            transport,
            runtime: runtime.clone(),
            party: party.clone(),
            watch,
            margin,
            known: Mutex::new(Known {
                trust,
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

    /// Returns the slot of the node in which the keys of a name are stored.
    ///
    /// # Errors
    /// [`UnfitName`] if the node cannot store the name.
    pub(crate) fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        self.transport.slot(name)
    }

    /// Returns the server that would execute a request about names in this slot now.
    pub(crate) fn server(&self, slot: Slot) -> ServerNumber {
        self.transport.server(slot)
    }

    pub(crate) fn address(&self) -> &str {
        self.transport.address()
    }

    /// Returns what an acquire that is sent now states about the node. With a name it may replace a claim on that name.
    pub(crate) fn ask(&self, name: Option<&Name>) -> Question {
        let mut known = self.known.lock();
        // Under the mutex, so that times agree with the order of requests and replies. A reply to a request that was
        // made before trust was withdrawn must not restore it.
        let now = self.now();
        let sent = Sent(now);
        let name = name.filter(|_| self.has_versions());
        // Take-over: a request may replace only a version that was shown unchanged for a lease before this moment, in
        // which the request has not left yet. If A renews from here on, the version on the node changes, and the
        // node refuses the request.
        let replaces = name.and_then(|name| known.observed.replaceable(now, name));
        let check = self.watch.as_ref();
        let check = check.map(|watch| {
            let figures = watch.stated(&mut known.trust, now);
            self.check(watch, &mut known.trust, now, figures)
        });
        Question {
            replaces,
            check,
            sent,
        }
    }

    /// Returns the check of a request that is sent now, and states these figures.
    fn check(&self, watch: &Watch, trust: &mut Trust, now: Time, figures: Figures) -> Check {
        let trusted = trust.next_trusted(now);
        let wants_marker = trust.wants_marker();
        // If markers may be inherited, every request writes a marker where the node's own is missing. Otherwise:
        // another server takes this address and is restarted with its own marker. A, which trusted another nonce
        // here, only looks. Then B, a new client that knows no nonce, makes the node inherit that marker, and the
        // node is trusted without a quarantine.
        let may_inherit = watch.restarts() == Restarts::KeepEverything;
        let act = if wants_marker || may_inherit {
            let nonce = Nonce::from_random(self.runtime.random());
            if trust.wants_new_marker() {
                Act::MarkAnew(nonce)
            } else if wants_marker {
                watch.mark(nonce)
            } else {
                Act::Mark(nonce)
            }
        } else {
            Act::Look
        };
        Check {
            trusted,
            known: trust.known(),
            ..watch.request(act, figures)
        }
    }

    fn now(&self) -> Time {
        self.runtime.now()
    }

    /// The clock margin for a claim, with the number of the owner's request; `None` without a margin.
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

    /// When a claim that is no longer renewed, and that nodes keep for this long, is certainly gone, including the margin,
    /// which the node measures.
    pub(crate) fn gone(&self, now: Time, kept: Duration) -> Time {
        let kept = kept.saturating_add(self.margin);
        now + kept + drift(kept)
    }

    /// Returns the vote that an answer to an acquire of `name` amounts to.
    pub(crate) fn vote(
        &self,
        sent: Sent,
        name: &Name,
        asking: Purpose,
        result: &Result<Reply, TransportError>,
    ) -> Voted {
        let mut known = self.known.lock();
        // Read the clock now. B's claim was renewed while this process was suspended, and the reply that shows it
        // waited here. Dated by a reading from before the suspension, B's claim would seem unchanged for that time,
        // and this client would replace it too early.
        let now = self.now();
        let (mut answer, change) = self.counted(&mut known, now, sent, asking, result);
        if self.has_versions() {
            let is_quarantined = self.watch.is_some() && known.trust.quarantine().is_some();
            let observed = &mut known.observed;
            answer = observe(observed, now, name, answer, result, is_quarantined);
        }
        let trusted = known.trust.trusted();
        let watched_millis = trusted.map_or(0, |marker| marker.figures.watched_millis);
        let due = known.trust.poll_timeout();
        drop(known);
        self.set_alarm(change, due);
        Voted {
            answer,
            watched_millis,
            change,
        }
    }

    /// The vote before claim versions are taken into account.
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
            let is_too_long = |error: &TransportError| error.cause == Cause::LongestLease;
            let answer = match answer {
                // A node that does not show its process cannot be trusted.
                Answer::Granted(_) => Answer::Quarantined(None),
                // The longest lease is being raised.
                _ if result.as_ref().is_err_and(is_too_long) => {
                    let granted = watch.longest(LongestLease::granted_from);
                    // If it is not known when that ends, as while a node is down, this node is as good as down, too.
                    let failed = Answer::Failed(Execution::Definite);
                    granted.map_or(failed, |from| Answer::Quarantined(Some(from.since(now))))
                }
                answer => answer,
            };
            return (answer, None);
        };
        let (counts, change) = known.hear((watch, &self.party.seen), now, sent, *shown);
        // The marker: node 1 restarts empty and grants B what it had granted to A. With 4 and 5 B would have a
        // majority, like A with 1, 2 and 3. So this grant does not count. In contrast, an existing hold that finds
        // its own claim there has not lost it.
        let answer = match reply {
            AcquireReply::Granted { freshness, .. }
                if counts == Counts::No
                    && (asking, *freshness) != (Purpose::Missing, Freshness::AlreadyYours) =>
            {
                let quarantine = known.trust.quarantine();
                // A duration, because the round may use the clock of another client.
                let until = quarantine.and_then(|(_, until)| until);
                Answer::Quarantined(until.map(|until| until.since(now)))
            }
            _ => answer,
        };
        (answer, change)
    }

    /// Sets the alarm for the next probe, if a change of trust has made it earlier. Call it without the mutex: the
    /// alarm may run the keeper's task on this thread, which locks it to read when the probe is due.
    fn set_alarm(&self, change: Option<TrustChange>, due: Time) {
        if let Some(watch) = &self.watch {
            watch.attend_to_steps();
        }
        if let (Some(watch), Some(TrustChange::Quarantined(_))) = (&self.watch, change) {
            watch.probe_at(due);
        }
    }

    /// Why the node's votes do not count; `None` if they do.
    pub(crate) fn quarantine(&self) -> Option<Quarantine> {
        self.watch.as_ref()?;
        let (why, until) = self.known.lock().trust.quarantine()?;
        let left = until.map(|until| until.since(self.now()));
        Some(Quarantine { why, left })
    }

    /// Why the node refuses a lease that the client may request; `None` if it does not.
    pub(crate) fn raising(&self, lease: Lease) -> Option<Quarantine> {
        let watch = self.watch.as_ref()?;
        let now = self.now();
        watch.longest(|longest| {
            let granted_millis = longest.granted_millis()?;
            (granted_millis < lease.millis()).then(|| Quarantine {
                why: Why::Raising,
                left: longest.granted_from().map(|from| from.since(now)),
            })
        })
    }

    /// How far ahead of the node's clock a token may be.
    pub(crate) fn slack_millis(&self) -> u64 {
        let own = || millis_of(self.party.longest_lease) / 4;
        let watch = self.watch.as_ref();
        watch.map_or_else(own, |watch| watch.longest(LongestLease::slack_millis))
    }

    /// How long a node must have been watched for its vote to count, in milliseconds.
    pub(crate) fn needed_millis(&self) -> u64 {
        let watch = self.watch.as_ref();
        watch.map_or(0, |watch| watch.longest(LongestLease::needed_millis))
    }

    /// How often the client has learned that a longer watch is needed.
    pub(crate) fn rises(&self) -> u64 {
        let watch = self.watch.as_ref();
        watch.map_or(0, |watch| watch.longest(LongestLease::rises))
    }
}

impl fmt::Debug for NodeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transport.fmt(f)
    }
}
