//! The nodes of a client, and whether their votes count.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::beat::{Beat, Keep, Observations};
use quorlock_core::lease::{Lease, drift};
use quorlock_core::marker::{Act, Check, Nonce, Process, Restarts, Shown};
use quorlock_core::message::{AcquireReply, Channel, Freshness, Reply, Request, Ttl};
use quorlock_core::name::Name;
use quorlock_core::round::Answer;
use quorlock_core::time::{Time, millis_of};
use quorlock_core::transport::{
    Call, Cause, Execution, Listener, Subscription, Transport, TransportError,
};
use quorlock_core::trust::{Counts, Trust, Why};

use crate::error::Quarantine;
use crate::mutex::Mutex;
use crate::runtime::Runtime;
use crate::shared::alarm::Alarm;
use crate::shared::party::Party;
use crate::telemetry;

/// Which nodes' votes count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NodeTrust {
    /// Those whose process was watched for one [`longest_lease`](crate::LocksBuilder::longest_lease): a node that was
    /// restarted, flushed or failed over may have forgotten claims, and is quarantined for so long.
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
    /// restarted server with whatever ripe marker it has.
    AssertedDurable,
    /// Every node's: one that comes back without its data may give a lock to a second holder.
    Unwatched,
}

/// What a member is asked for by an acquire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asking {
    /// A new hold. That a claim is there already means that the request was delivered twice, and counts no more than
    /// the first delivery.
    NewHold,
    /// A hold that is held without this member. What it has there already is its own, whoever the node is.
    Missing,
}

/// When a request left, on the clock by which the node is judged. It is compared with what that clock shows later and
/// with nothing else: a lock may have members of several clients, each with a clock of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent(Time);

/// What an acquire says of the node that it goes to.
pub(crate) struct Question {
    /// The beat whose claim it may replace.
    pub(crate) replaces: Option<Beat>,
    /// What the node is to show of itself.
    pub(crate) check: Option<Check>,
    /// When it was asked for, which is before it leaves.
    pub(crate) sent: Sent,
}

/// A node: the way to it, and what this client thinks of it.
///
/// It reads the clock itself, and each time anew. What a reply shows is dated after the reply was handed over, what is
/// sent before it leaves, whatever reading the caller has.
pub(crate) struct Peer {
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

/// One node under watch.
struct Watch {
    index: usize,
    shared: Arc<Shared>,
}

/// What is to be told when a node has shown something.
#[derive(Clone, Copy)]
enum News {
    None,
    Quarantined(Quarantine, Time),
    Trusted,
}

/// What the nodes of one client under watch have in common.
struct Shared {
    /// Set to when the watch of one of them ends.
    alarm: Arc<Alarm>,
    longest: Lease,
    trusts_fresh: bool,
    restarts: Restarts,
    /// Which process each trusted node is.
    processes: Mutex<Vec<Option<Process>>>,
}

/// How nodes are watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watching {
    pub(crate) longest: Lease,
    pub(crate) trusts_fresh: bool,
    pub(crate) restarts: Restarts,
}

/// The nodes of a client, under watch or not.
pub(crate) fn peers(
    transports: Vec<Arc<dyn Transport>>,
    watching: Option<Watching>,
    margin: Duration,
    alarm: &Arc<Alarm>,
    runtime: &Arc<dyn Runtime>,
    party: &Arc<Party>,
) -> Arc<[Arc<Peer>]> {
    let shared = watching.map(|watching| {
        Arc::new(Shared {
            alarm: alarm.clone(),
            longest: watching.longest,
            trusts_fresh: watching.trusts_fresh,
            restarts: watching.restarts,
            processes: Mutex::new(vec![None; transports.len()]),
        })
    });
    let peer = |(index, transport)| {
        let watch = shared.as_ref().map(|shared| Watch {
            index,
            shared: shared.clone(),
        });
        let longest = watching.map_or(Duration::ZERO, |watching| watching.longest.length());
        Arc::new(Peer {
            transport,
            runtime: runtime.clone(),
            party: party.clone(),
            watch,
            margin,
            known: Mutex::new(Known {
                trust: Trust::new(longest),
                observed: Observations::new(),
            }),
        })
    };
    transports.into_iter().enumerate().map(peer).collect()
}

impl Peer {
    pub(crate) fn call(&self, request: Request) -> Call {
        self.transport.call(request)
    }

    pub(crate) fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        self.transport.subscribe(channel, listener)
    }

    pub(crate) fn address(&self) -> &str {
        self.transport.address()
    }

    /// What an acquire that is sent now is to say, of `name` if it may replace a claim there.
    pub(crate) fn ask(&self, name: Option<&Name>) -> Question {
        let mut known = self.known.lock();
        let now = self.now();
        let sent = Sent(now);
        let name = name.filter(|_| self.has_beats());
        let replaces = name.and_then(|name| known.observed.replaceable(now, name));
        let Some(watch) = &self.watch else {
            return Question {
                replaces,
                check: None,
                sent,
            };
        };
        let replaces = replaces.filter(|_| known.trust.quarantine().is_none());
        let trusted = known.trust.next_trusted(now);
        let known_nonce = known.trust.known();
        let wants_marker = known.trust.wants_marker();
        drop(known);
        // A node that may inherit a marker must be able to write another one over it: this client would only look,
        // and one that knows less would have the node inherit right behind it.
        let may_inherit = watch.shared.restarts == Restarts::KeepEverything;
        let act = if wants_marker || may_inherit {
            let nonce = Nonce::from_random(self.runtime.random());
            if wants_marker && watch.shared.trusts_fresh {
                Act::MarkFresh(nonce)
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

    /// How a claim is to be kept beyond its lease by the `number`-th request of its owner.
    pub(crate) fn keep(&self, number: u64) -> Option<Keep> {
        let margin_millis = millis_of(self.margin);
        (0 < margin_millis).then_some(Keep {
            margin_millis,
            number,
        })
    }

    /// Whether claims have beats.
    pub(crate) fn has_beats(&self) -> bool {
        !self.margin.is_zero()
    }

    /// By when a claim that nobody renews any more is gone: its margin goes by the node's clock.
    pub(crate) fn gone(&self, now: Time, lease: Lease) -> Time {
        let kept = lease.length().saturating_add(self.margin);
        now + kept + drift(kept)
    }

    /// What the answer to an acquire of `name` that was sent at `sent` is worth.
    pub(crate) fn vote(
        &self,
        sent: Sent,
        name: &Name,
        asking: Asking,
        result: &Result<Reply, TransportError>,
    ) -> Answer {
        let mut known = self.known.lock();
        // B's claim was renewed while this process was stopped, and the reply that shows it waited here. Dated by a
        // reading from before the stop, B would seem to be silent for as long.
        let now = self.now();
        let (mut answer, news) = self.counted(&mut known, now, sent, asking, result);
        if self.has_beats() {
            let is_quarantined = self.watch.is_some() && known.trust.quarantine().is_some();
            let observed = &mut known.observed;
            answer = observe(observed, now, name, answer, result, is_quarantined);
        }
        drop(known);
        self.tell(news);
        answer
    }

    /// What the answer is worth as a vote.
    fn counted(
        &self,
        known: &mut Known,
        now: Time,
        sent: Sent,
        asking: Asking,
        result: &Result<Reply, TransportError>,
    ) -> (Answer, News) {
        let answer = answer(result);
        let Some(watch) = &self.watch else {
            return (answer, News::None);
        };
        let Ok(Reply::Checked(reply, shown)) = result else {
            let answer = match answer {
                // Who does not say which process it is cannot be trusted.
                Answer::Granted(_) => Answer::Quarantined(None),
                answer => answer,
            };
            return (answer, News::None);
        };
        let trusted = known.trust.trusted();
        let (counts, news) = watch.hear(&mut known.trust, now, sent, *shown);
        if known.trust.trusted() != trusted {
            // Another process: what the one before has shown says nothing.
            known.observed.clear();
        }
        let answer = match reply {
            AcquireReply::Granted { freshness, .. }
                if counts == Counts::No
                    && (asking, *freshness) != (Asking::Missing, Freshness::AlreadyYours) =>
            {
                let quarantine = known.trust.quarantine();
                // Not the time: that is one of this clock, and the round may be one of another client.
                let until = quarantine.and_then(|(_, until)| until);
                Answer::Quarantined(until.map(|until| until.since(now)))
            }
            _ => answer,
        };
        (answer, news)
    }

    /// Says what has changed, and sees to it that a watch ends in time.
    fn tell(&self, news: News) {
        match news {
            News::None => {}
            News::Trusted => telemetry::trusted(self.address()),
            News::Quarantined(quarantine, due) => {
                telemetry::quarantined(self.address(), quarantine);
                if let Some(watch) = &self.watch {
                    watch.shared.alarm.set(due);
                }
            }
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

    /// What a probe that was sent at `sent` showed.
    pub(crate) fn seen(&self, sent: Sent, result: &Result<Reply, TransportError>) {
        if let (Some(watch), Ok(Reply::Probe(shown))) = (&self.watch, result) {
            let mut known = self.known.lock();
            let (_, news) = watch.hear(&mut known.trust, self.now(), sent, *shown);
            drop(known);
            self.tell(news);
        }
    }

    /// The request that ends the watch of the node, if it is due.
    pub(crate) fn next_ripening(&self) -> Option<(Request, Sent)> {
        let watch = self.watch.as_ref()?;
        let now = self.now();
        let nonce = self.known.lock().trust.next_ripening(now)?;
        let request = Request::Probe(watch.request(Act::Ripen(nonce)));
        Some((request, Sent(now)))
    }

    /// That request has come to its end.
    pub(crate) fn ripened(&self, sent: Sent, result: &Result<Reply, TransportError>) {
        self.known.lock().trust.handle_end(self.now());
        self.seen(sent, result);
    }

    /// When to call [`Peer::next_ripening`].
    pub(crate) fn poll_timeout(&self) -> Time {
        self.known.lock().trust.poll_timeout()
    }
}

impl Watch {
    fn request(&self, act: Act) -> Check {
        Check {
            longest_millis: self.shared.longest.millis(),
            act,
            trusted: None,
            restarts: self.shared.restarts,
            known: None,
        }
    }

    /// Whether a vote that came with this counts.
    fn hear(&self, trust: &mut Trust, now: Time, sent: Sent, shown: Shown) -> (Counts, News) {
        let (before, trusted) = (trust.quarantine(), trust.trusted());
        let mut counts = trust.handle_shown(now, sent.0, shown);
        if counts == Counts::Yes && trust.trusted() != trusted && !self.is_alone(shown.process) {
            trust.handle_twin(now, shown.process);
            counts = Counts::No;
        }
        let news = match trust.quarantine() {
            Some((why, until)) if Some((why, until)) != before => {
                let left = until.map(|until| until.since(now));
                News::Quarantined(Quarantine { why, left }, trust.poll_timeout())
            }
            None if before.is_some_and(|(why, _)| why != Why::Unknown) => News::Trusted,
            _ => News::None,
        };
        (counts, news)
    }

    /// Whether no other address of the quorum leads to this process.
    fn is_alone(&self, process: Process) -> bool {
        let mut processes = self.shared.processes.lock();
        let mut others = processes.iter().enumerate();
        let is_alone = !others.any(|(index, id)| index != self.index && *id == Some(process));
        if let Some(place) = processes.get_mut(self.index) {
            *place = is_alone.then_some(process);
        }
        is_alone
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transport.fmt(f)
    }
}

/// What a result says, as the answer to an acquire.
pub(crate) fn answer(result: &Result<Reply, TransportError>) -> Answer {
    match result {
        Ok(Reply::Acquire(reply) | Reply::Checked(reply, _)) => Answer::from(*reply),
        Ok(_) => Answer::Failed(Execution::Indeterminate),
        Err(error) => Answer::Failed(error.execution),
    }
}

/// Whether a server says this that goes on with the claims that it has. One that is loading, has become a replica or
/// wants a login may be another, or have forgotten some.
fn is_said_by_the_same(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::OutOfMemory
            | Cause::Busy
            | Cause::NoPermission
            | Cause::LongestLease
            | Cause::Misconfigured
            | Cause::NoReplicas
    )
}

/// Remembers what a refusal shows, and says when the claim in the way can be replaced if that is before it expires.
fn observe(
    observed: &mut Observations,
    now: Time,
    name: &Name,
    answer: Answer,
    result: &Result<Reply, TransportError>,
    is_quarantined: bool,
) -> Answer {
    let refusal = match result {
        Ok(Reply::Acquire(reply) | Reply::Checked(reply, _)) => match reply {
            AcquireReply::Refused { beat, .. } => Some(*beat),
            _ => None,
        },
        Ok(_) => None,
        Err(error) => {
            match error.cause {
                // Of this name alone.
                Cause::WrongType => observed.forget(name),
                cause if is_said_by_the_same(cause) => {}
                // The next answer may be that of another server.
                _ => observed.clear(),
            }
            return answer;
        }
    };
    let Some(beat) = refusal else {
        observed.forget(name);
        return answer;
    };
    if is_quarantined {
        observed.clear();
        return answer;
    }
    match (observed.handle_refused(now, name, beat), answer) {
        (Some(ends), Answer::Refused(ttl)) => {
            let left = Ttl::Millis(millis_of(ends.since(now)));
            Answer::Refused(ttl.min(left))
        }
        _ => answer,
    }
}
