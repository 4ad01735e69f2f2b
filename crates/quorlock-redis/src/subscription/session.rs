//! The task that has the wake-up connection.
//!
//! The wake-up connection is a separate one, so that messages cannot delay the replies to calls. The connection's
//! driver passes messages to the registry; this task subscribes to the channels that the registry requests.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join_all;
use quorlock_core::transport::{Cause, TransportError};
use redis::{Cmd, ServerErrorKind, Value};

use crate::error;
use crate::link::{Connection, Usage};
use crate::source::{Ways, Wrong};
use crate::subscription::claims::WatchedClaim;
use crate::subscription::registry::{Channel, Order, Registry, SessionGuard};
use crate::target::Target;
use crate::timer::{self, Instant};

/// How long a server that reports no changes of keys, or not to this user, is not asked again.
const REFUSED: Duration = Duration::from_secs(60);

/// The maximum number of channels in one round of subscriptions.
const BATCH: usize = 128;

/// Connects, serves the registry, and reconnects, until there was no listener for a while or the transport was dropped.
pub(crate) async fn run(target: Arc<Target>, guard: SessionGuard) {
    let mut failures = 0;
    let mut asks_for_reports = target.config().watches_claims;
    loop {
        if let Some(link) = open(&target, guard.registry()).await {
            let mut session = Session::new(&target, guard.registry(), link);
            session.asks_for_reports = asks_for_reports;
            session.serve().await;
            // A server or a proxy that ends the connection at this question is not asked by the next one.
            asks_for_reports = target.config().watches_claims && !session.asks_for_reports;
            if session.was_confirmed {
                failures = 0;
            }
        }
        guard.registry().forget();
        if guard.is_over() {
            return;
        }
        failures += 1;
        timer::sleep_until(timer::now() + target.source().rest(failures)).await;
        if guard.is_over() {
            return;
        }
    }
}

/// Opens the wake-up connection. An error is not reported here, because the next call to the same server reports it.
async fn open(target: &Arc<Target>, registry: &Arc<Registry>) -> Option<Connection> {
    let deadline = timer::now() + target.config().connect_timeout;
    let open = |lead| {
        let usage = Usage::WakeUps(Arc::clone(registry));
        Connection::open(target, lead, usage, deadline)
    };
    timer::by(deadline, target.open(deadline, open)).await?.ok()
}

/// One connection, from its first request to its end.
struct Session<'a> {
    target: &'a Target,
    registry: &'a Registry,
    link: Connection,
    /// Channels that the server refused; requested again at the next ping.
    refused: Vec<Channel>,
    /// Channels whose slot the server does not have. They are requested again at the next ping.
    ///
    /// The client may find no other node for them: the slot may have come back to the server, or the queried node may
    /// not know of the change yet. Without the second request, the client would miss what Redisson publishes to the
    /// shard until the connection ends.
    unserved: BTreeSet<Channel>,
    /// Channels of `unserved` that are requested next.
    due: BTreeSet<Channel>,
    /// Whether the server must be asked to report changes of keys.
    asks_for_reports: bool,
    /// Whether the server reports changes of keys.
    has_reports: bool,
    idle_since: Option<Instant>,
    was_confirmed: bool,
}

type SessionReply = Result<Value, TransportError>;

/// Requests in flight, and their replies in the same order.
type Pending = Pin<Box<dyn Future<Output = Vec<SessionReply>> + Send>>;

/// The purpose of requests.
enum Purpose {
    /// Ask the server to report changes of keys.
    Report,
    Join(Vec<Channel>),
    Leave,
    /// Look whether these claims are there.
    Look(Vec<WatchedClaim>),
    Ping,
}

/// The next event of a session.
enum Event {
    Answered(Vec<SessionReply>),
    /// A listener was added or removed, or the connection was closed.
    Changed,
    PingIsDue,
    LookIsDue,
}

impl<'a> Session<'a> {
    fn new(target: &'a Target, registry: &'a Registry, link: Connection) -> Self {
        Session {
            target,
            registry,
            link,
            refused: Vec::new(),
            unserved: BTreeSet::new(),
            due: BTreeSet::new(),
            asks_for_reports: false,
            has_reports: false,
            idle_since: None,
            was_confirmed: false,
        }
    }

    /// Serves the registry until the connection is of no further use.
    async fn serve(&mut self) {
        let mut ping_at = self.next_ping();
        let mut ping_is_due = false;
        let mut under_way = self.first_request();
        loop {
            if self.registry.is_closed() || self.link.is_closed() {
                return;
            }
            if under_way.is_none() {
                under_way = if ping_is_due {
                    ping_is_due = false;
                    ping_at = self.next_ping();
                    Some((Purpose::Ping, self.ask([redis::cmd("PING")])))
                } else {
                    self.next_request()
                };
            }
            let pending = under_way.as_mut().map(|(_, pending)| pending);
            match self.next_event(pending, ping_at).await {
                Event::Answered(replies) => {
                    if let Some((purpose, _)) = under_way.take()
                        && !self.settle(purpose, replies)
                    {
                        return;
                    }
                }
                Event::LookIsDue => {}
                Event::Changed => self.look_elsewhere(self.registry.take_parted()),
                Event::PingIsDue => {
                    if self.has_lingered() {
                        return;
                    }
                    self.registry.recall(std::mem::take(&mut self.refused));
                    self.due.append(&mut self.unserved);
                    ping_is_due = true;
                }
            }
        }
    }

    fn next_ping(&self) -> Instant {
        timer::now() + self.target.config().ping_interval
    }

    /// Waits for the next event. It polls in a fixed order, so that runs can be repeated.
    async fn next_event(&self, mut pending: Option<&mut Pending>, ping_at: Instant) -> Event {
        let mut changed = pin!(self.registry.changed());
        let mut ping = pin!(timer::sleep_until(ping_at));
        let look_at = match self.has_reports {
            true => self.registry.next_look(),
            false => None,
        };
        let mut look = pin!(timer::sleep_until(look_at.unwrap_or(ping_at)));
        poll_fn(|cx| {
            if let Some(pending) = &mut pending
                && let Poll::Ready(replies) = pending.as_mut().poll(cx)
            {
                return Poll::Ready(Event::Answered(replies));
            }
            if changed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Changed);
            }
            // Requests in flight serve as a probe.
            if pending.is_none() && ping.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::PingIsDue);
            }
            if pending.is_none() && look_at.is_some() && look.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::LookIsDue);
            }
            Poll::Pending
        })
        .await
    }

    /// Asks the server to report the changes of those keys that this connection asks for. Only in RESP3 does a connection
    /// receive messages and ask questions at the same time.
    fn first_request(&self) -> Option<(Purpose, Pending)> {
        self.asks_for_reports.then(|| {
            let mut hello = redis::cmd("HELLO");
            hello.arg(3);
            let mut tracking = redis::cmd("CLIENT");
            tracking.arg("TRACKING").arg("ON").arg("OPTIN");
            (Purpose::Report, self.ask([hello, tracking]))
        })
    }

    fn next_request(&mut self) -> Option<(Purpose, Pending)> {
        match self.registry.next_order(BATCH) {
            Some(Order::Subscribe(channels)) => Some(self.request(channels)),
            Some(Order::Unsubscribe(channels)) => {
                let pending = self.ask(self.about_all(["UNSUBSCRIBE", "SUNSUBSCRIBE"], &channels));
                Some((Purpose::Leave, pending))
            }
            None => self.next_renewal().or_else(|| self.next_look()),
        }
    }

    /// Looks whether claims are there whose keys have changed.
    fn next_look(&self) -> Option<(Purpose, Pending)> {
        let claims = match self.has_reports {
            true => self.registry.next_claims(BATCH),
            false => Vec::new(),
        };
        let cmds: Vec<Cmd> = claims.iter().flat_map(look).collect();
        (!claims.is_empty()).then(|| (Purpose::Look(claims), self.ask(cmds)))
    }

    fn request(&self, channels: Vec<Channel>) -> (Purpose, Pending) {
        let pending = self.ask(self.about_all(["SUBSCRIBE", "SSUBSCRIBE"], &channels));
        (Purpose::Join(channels), pending)
    }

    /// Subscribes again to channels whose slot the server did not have.
    fn next_renewal(&mut self) -> Option<(Purpose, Pending)> {
        while !self.due.is_empty() {
            let channels = std::iter::from_fn(|| self.due.pop_first());
            let channels = self.registry.renew(channels.take(BATCH).collect());
            if !channels.is_empty() {
                return Some(self.request(channels));
            }
        }
        None
    }

    /// Returns for each channel the commands of the ways in which this client listens.
    fn about_all(&self, verbs: [&str; 2], channels: &[Channel]) -> Vec<Cmd> {
        let verbs = verbs.into_iter().take(self.ways());
        let cmds = channels
            .iter()
            .flat_map(|channel| verbs.clone().map(|verb| about(verb, channel)));
        cmds.collect()
    }

    /// The number of ways in which this client listens to a channel: once, or also on the shard.
    fn ways(&self) -> usize {
        match self.target.source().ways() {
            Ways::Plain => 1,
            Ways::Both => 2,
        }
    }

    /// Sends requests, each of which gets one reply.
    fn ask(&self, cmds: impl IntoIterator<Item = Cmd>) -> Pending {
        let now = timer::now();
        let patience = self.target.config().call_bound();
        let answers = cmds.into_iter().map(|cmd| {
            let sent = self.link.send(now, &cmd, now + patience, patience);
            async move { sent?.await }
        });
        Box::pin(join_all(answers))
    }

    /// Applies replies. Returns whether the connection is still usable; a refusal does not make it unusable.
    fn settle(&mut self, purpose: Purpose, replies: Vec<SessionReply>) -> bool {
        let Ok(replies) = replies.into_iter().collect::<Result<Vec<_>, _>>() else {
            return false;
        };
        if replies.iter().any(is_logged_out) {
            return false;
        }
        let is_refusal = |reply: &Value| matches!(reply, Value::ServerError(_));
        match purpose {
            Purpose::Ping => true,
            Purpose::Report => self.settle_reports(&replies),
            Purpose::Look(claims) => {
                self.was_confirmed = true;
                for (claim, reply) in claims.iter().zip(replies.iter().skip(1).step_by(2)) {
                    self.looked(claim, reply);
                }
                true
            }
            // The second way may be refused again if it was refused before: the server does not have it, or the user
            // has no permission for it.
            Purpose::Leave => !replies.iter().step_by(self.ways()).any(is_refusal),
            Purpose::Join(channels) => {
                if 1 < self.ways() {
                    let others = replies.iter().skip(1).step_by(self.ways());
                    let unserved = channels
                        .iter()
                        .zip(others)
                        .filter(|(_, reply)| is_unserved(reply));
                    let unserved = unserved.map(|(channel, _)| Arc::clone(channel));
                    self.look_elsewhere(unserved.collect());
                }
                let answered = channels
                    .into_iter()
                    .zip(replies.iter().step_by(self.ways()));
                let (refused, joined): (Vec<_>, Vec<_>) =
                    answered.partition(|(_, reply)| is_refusal(reply));
                self.join(channels_of(joined));
                self.put_off(channels_of(refused));
                true
            }
        }
    }

    /// Handles whether the server reports changes of keys. Returns whether the connection is usable.
    fn settle_reports(&mut self, replies: &[Value]) -> bool {
        self.asks_for_reports = false;
        let mut refusals = replies.iter().filter_map(|reply| match reply {
            Value::ServerError(refusal) => Some(error::server(refusal).cause),
            _ => None,
        });
        // The second question is the one that a server may be too busy for.
        let refusal = refusals.next_back();
        // A server that is busy or loading says so, and is asked again by another connection.
        if matches!(refusal, Some(Cause::Busy | Cause::Loading)) {
            return false;
        }
        self.has_reports = refusal.is_none();
        self.registry.has_reports(self.has_reports, REFUSED);
        true
    }

    /// Handles whether a claim is there.
    fn looked(&self, claim: &WatchedClaim, reply: &Value) {
        match reply {
            Value::Int(0) => self.registry.is_gone(claim),
            Value::Int(_) => {}
            Value::ServerError(refusal) => match error::server(refusal).cause {
                Cause::WrongType => self.registry.is_gone(claim),
                // Of a server that does not say it to this user, the next renewal finds out.
                Cause::NoPermission => {}
                Cause::Cluster => {
                    let source = self.target.source();
                    source.was_wrong(self.link.whence(), Wrong::Channel);
                    self.registry.look_later(claim);
                }
                // It was not executed, so the server does not track the key.
                _ => self.registry.look_later(claim),
            },
            _ => self.registry.look_later(claim),
        }
    }

    /// Requests a look, because the node does not have the slots of these channels. The client still receives messages
    /// that are published to all nodes.
    fn look_elsewhere(&mut self, mut channels: BTreeSet<Channel>) {
        if channels.is_empty() {
            return;
        }
        self.unserved.append(&mut channels);
        let source = self.target.source();
        source.was_wrong(self.link.whence(), Wrong::Channel);
    }

    fn join(&mut self, channels: Vec<Channel>) {
        self.was_confirmed |= !channels.is_empty();
        self.registry.confirmed(&channels);
    }

    fn put_off(&mut self, channels: Vec<Channel>) {
        self.registry.refused(&channels);
        self.registry.put_off(&channels);
        self.refused.extend(channels);
    }

    /// Whether the connection has had no listener for long enough.
    fn has_lingered(&mut self) -> bool {
        if !self.registry.is_idle() {
            self.idle_since = None;
            return false;
        }
        let now = timer::now();
        let since = *self.idle_since.get_or_insert(now);
        since + self.target.config().linger <= now
    }
}

/// Whether the server no longer accepts this client's login: it would refuse every further request on this connection.
fn is_logged_out(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(refusal) if error::server(refusal).cause == Cause::NoAuth)
}

/// Whether another node owns the channel's slot, or none does.
fn is_unserved(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(refusal) if matches!(
        refusal.kind(),
        Some(ServerErrorKind::Moved | ServerErrorKind::ClusterDown)
    ))
}

/// Asks whether a claim is there, and for a report of the next change of its key.
fn look(claim: &WatchedClaim) -> [Cmd; 2] {
    let mut caching = redis::cmd("CLIENT");
    caching.arg("CACHING").arg("YES");
    let mut exists = redis::cmd("HEXISTS");
    exists.arg(&*claim.key).arg(&*claim.field);
    [caching, exists]
}

fn about(verb: &str, channel: &Channel) -> Cmd {
    let mut cmd = redis::cmd(verb);
    cmd.arg(&**channel);
    cmd
}

fn channels_of(answered: Vec<(Channel, &Value)>) -> Vec<Channel> {
    answered.into_iter().map(|(channel, _)| channel).collect()
}
