//! A view of the leader for processes that are not candidates.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use quorlock_core::fencing::Token;
use quorlock_core::message::{Found, Inspect, InspectReply, Reply, Request};
use quorlock_core::owner::OwnerId;
use quorlock_core::time::Time;

use crate::locks::source::LockSource;
use crate::operate::ask;
use crate::runtime::Timer;
use crate::shared::layout::Layout;
use crate::shared::wake_ups::WakeUps;

/// The leader as the nodes showed it at some moment of the last look.
///
/// **A view describes the past, and promises nothing.** The leader in it may have lost its term since, or may not
/// know of its election yet. Where correctness depends on the leader, the resource must compare terms.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LeaderView {
    /// As many nodes as a leader needs show this owner.
    #[non_exhaustive]
    Led {
        /// The owner, as the nodes store it: [`Leadership::owner_id`](crate::Leadership::owner_id) as text, or the id
        /// of a Redisson client.
        owner: String,
        /// The leader's term, if enough of these nodes store the same one. While a term is being agreed upon it may
        /// be missing, or smaller than the final one.
        term: Option<Token>,
        /// The number of nodes that show the owner.
        nodes: usize,
    },
    /// There is no leader: enough nodes are free for a candidate to win.
    Vacant,
    /// Enough nodes answered, but no owner has a quorum: an election is in progress, or claims were left behind.
    Undecided,
    /// Too few nodes answered.
    Unknown,
}

impl LeaderView {
    /// Returns the owner that leads, if the nodes show one.
    #[must_use]
    pub fn leader(&self) -> Option<&str> {
        match self {
            LeaderView::Led { owner, .. } => Some(owner),
            _ => None,
        }
    }

    /// Summarizes the answers of the nodes; a leader needs `needed` of them.
    fn of(answers: &[Option<InspectReply>], needed: usize) -> Self {
        let mut owners: BTreeMap<&str, Vec<Option<Token>>> = BTreeMap::new();
        let (mut free, mut replies) = (0, 0);
        for reply in answers.iter().flatten() {
            replies += 1;
            match &reply.found {
                Found::Plain { owner, .. } => owners.entry(owner).or_default().push(reply.token),
                Found::Nothing => free += 1,
                // A lock of another kind, or a key that is not a lock: it belongs to no candidate and blocks
                // all of them.
                _ => {}
            }
        }
        let leader = owners.into_iter().find(|(_, nodes)| needed <= nodes.len());
        match leader {
            Some((owner, tokens)) => LeaderView::Led {
                owner: owner.to_owned(),
                term: agreed(&tokens, needed),
                nodes: tokens.len(),
            },
            None if needed <= free => LeaderView::Vacant,
            None if replies < needed => LeaderView::Unknown,
            None => LeaderView::Undecided,
        }
    }

    /// Whether an observer would learn nothing new from the other view.
    fn is_same(&self, other: &LeaderView) -> bool {
        match (self, other) {
            // A change in the number of nodes that show the same leader is not reported.
            (
                LeaderView::Led { owner, term, .. },
                LeaderView::Led {
                    owner: o, term: t, ..
                },
            ) => (owner, term) == (o, t),
            _ => self == other,
        }
    }
}

/// The token that at least `needed` nodes store. A node that granted late may have a larger one from its own counter,
/// which is not a term.
fn agreed(tokens: &[Option<Token>], needed: usize) -> Option<Token> {
    let mut known: Vec<Token> = tokens.iter().copied().flatten().collect();
    known.sort_unstable();
    let runs = known.chunk_by(|a, b| a == b);
    let mut enough = runs.filter(|run| needed <= run.len());
    enough.next().and_then(|run| run.first().copied())
}

/// A stream of [`LeaderView`]s: the first view, and another one whenever the leader or its term changes. See
/// [`Locks::observe_leader`](crate::Locks::observe_leader).
///
/// It looks at the nodes every [second](LeaderObserver::every), and as soon as one of them publishes the release of
/// the name or tells that the leader's claim was [removed](crate::LocksBuilder::watch_claims). After a change or a release it looks up to four more times in between. A look is one small request to
/// each node. Leaders that come and go between two looks are not seen, but the term shows that there were some. The
/// stream ends when the client is closed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use quorlock::{EmbeddedNode, LeaderView, Locks};
/// # let locks = Locks::on_node(EmbeddedNode::new())?;
/// # let guard = locks.lock("scheduler").acquire().await?;
/// let mut observer = locks.observe_leader("scheduler")?;
/// while let Some(view) = observer.next().await {
///     if let LeaderView::Led { owner, term, .. } = view {
///         println!("{owner} leads in term {term:?}");
/// #       assert_eq!(term, Some(guard.fencing_token()));
/// #       break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct LeaderObserver {
    source: LockSource,
    layout: Arc<Layout>,
    every: Duration,
    ears: WakeUps,
    /// The leader in the last view, and those who tell of the loss of its claims.
    losses: Option<(OwnerId, WakeUps)>,
    /// Until when looks at losses are used up, at one for each tenth of the usual pause.
    spared: Time,
    /// The owner under which it subscribes.
    owner: OwnerId,
    /// The pause before the next look, unless a wake-up shortens it.
    pause: Duration,
    glance: Glance,
    timer: Box<dyn Timer>,
    last: Option<LeaderView>,
}

enum Glance {
    Looking(Look),
    /// Waiting for the next look. The value is the time of the last one.
    Waiting(Time),
}

type Look = Pin<Box<dyn Future<Output = LeaderView> + Send>>;

/// The usual pause between looks divided by this number is the shortest pause.
const CLOSEST: u32 = 10;

/// The shortest usual pause between looks, to limit the load on the nodes.
const SHORTEST: Duration = Duration::from_millis(50);

impl LeaderObserver {
    pub(crate) fn new(source: LockSource, layout: Arc<Layout>) -> Self {
        let every = Duration::from_secs(1);
        LeaderObserver {
            ears: WakeUps::new(&layout),
            losses: None,
            spared: Time::ZERO,
            owner: source.client().fresh_owner_id(),
            glance: Glance::Looking(look(&source, &layout)),
            timer: source.client().runtime.timer(),
            pause: every / CLOSEST,
            every,
            last: None,
            layout,
            source,
        }
    }

    /// Sets the usual pause between looks if no node publishes a release; at least 50 ms. Default: one second.
    ///
    /// Together with the lease it bounds how late an observer learns that a leader died. The pause between looks is
    /// never shorter than a tenth of it.
    pub fn every(mut self, span: Duration) -> Self {
        self.every = span.max(SHORTEST);
        self.pause = self.every / CLOSEST;
        self
    }

    /// Returns the next view; `None` if the client was closed.
    ///
    /// # Cancel safety
    /// If the future is dropped early, no view is lost.
    pub async fn next(&mut self) -> Option<LeaderView> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns the view if it is new. After a change the next look follows soon; each look without a change doubles
    /// the pause.
    fn seen(&mut self, view: LeaderView) -> Option<LeaderView> {
        let now = self.source.client().now();
        self.glance = Glance::Waiting(now);
        if self.last.as_ref().is_some_and(|last| last.is_same(&view)) {
            self.pause = (self.pause * 2).clamp(self.every / CLOSEST, self.every);
            return None;
        }
        self.pause = self.every / CLOSEST;
        self.watch(&view);
        self.last = Some(view.clone());
        Some(view)
    }

    /// The pause before a look at a loss: none, unless there were such looks lately. A program that rewrites a key all the
    /// time would cost a look each time.
    fn soonest(&mut self) -> Duration {
        let now = self.source.client().now();
        if self.spared <= now {
            self.spared = now;
        }
        let spared = self.spared.since(now);
        if spared < self.every {
            self.spared = self.spared + self.every / CLOSEST;
            return Duration::ZERO;
        }
        self.every / CLOSEST
    }

    /// Listens for the loss of the claims of the leader in this view.
    fn watch(&mut self, view: &LeaderView) {
        let leader = view.leader().and_then(|leader| leader.parse().ok());
        let is_known = self.losses.as_ref().map(|(owner, _)| *owner) == leader;
        if !is_known {
            let watched = leader.filter(|_| self.source.client().config.watches_claims);
            self.losses = watched.map(|owner| (owner, WakeUps::new(&self.layout)));
        }
    }
}

/// Looks at all nodes once.
fn look(source: &LockSource, layout: &Layout) -> Look {
    let source = source.clone();
    let name = layout.names().next().cloned();
    Box::pin(async move {
        let Some(name) = name else {
            return LeaderView::Unknown;
        };
        let request = Request::Inspect(Inspect::of(name));
        let answers = ask::all(&source, &request, |reply| match reply {
            Reply::Inspect(reply) => Some(reply),
            _ => None,
        });
        let answers = answers.await.into_iter();
        let answers: Vec<_> = answers.map(|(_, answer)| answer.ok()).collect();
        LeaderView::of(&answers, source.threshold().needed())
    })
}

impl Stream for LeaderObserver {
    type Item = LeaderView;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<LeaderView>> {
        let this = self.get_mut();
        loop {
            if this.source.client().is_closed() {
                return Poll::Ready(None);
            }
            this.ears.subscribe(&this.layout, this.owner);
            let (mut is_woken, mut is_lost) = (false, false);
            this.ears.listen(cx, |_| is_woken = true);
            if let Some((leader, losses)) = &mut this.losses {
                losses.subscribe_to_losses(&this.layout, *leader);
                losses.listen(cx, |_| is_lost = true);
            }
            if is_woken {
                this.pause = this.every / CLOSEST;
            }
            if is_lost {
                this.pause = this.pause.min(this.soonest());
            }
            match &mut this.glance {
                Glance::Looking(look) => {
                    let Poll::Ready(view) = look.as_mut().poll(cx) else {
                        return Poll::Pending;
                    };
                    if let Some(view) = this.seen(view) {
                        return Poll::Ready(Some(view));
                    }
                }
                Glance::Waiting(since) => {
                    // Pause after a wake-up, too: where a name changes hands all the time, each release would cost a
                    // look.
                    let at = *since + this.pause;
                    if this.timer.poll_until(cx, at).is_pending() {
                        return Poll::Pending;
                    }
                    this.glance = Glance::Looking(look(&this.source, &this.layout));
                }
            }
        }
    }
}

impl fmt::Debug for LeaderObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderObserver")
            .field("name", &self.layout)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_core::message::Ttl;

    fn claim(owner: &str, token: u64) -> Option<InspectReply> {
        let found = Found::Plain {
            owner: owner.into(),
            count: 1,
            ttl: Ttl::Millis(20_000),
        };
        Some(InspectReply::new(found, 0, Some(Token(token))))
    }

    fn free() -> Option<InspectReply> {
        Some(InspectReply::new(Found::Nothing, 0, Some(Token(4))))
    }

    #[test]
    fn a_view_names_the_owner_of_a_quorum_and_the_term_that_a_quorum_has() {
        let led = |term: Option<u64>, nodes| LeaderView::Led {
            owner: "x".into(),
            term: term.map(Token),
            nodes,
        };
        for (answers, view) in [
            (
                [claim("x", 5), claim("x", 5), claim("x", 5)],
                led(Some(5), 3),
            ),
            // The third node granted late, from its own counter.
            (
                [claim("x", 5), claim("x", 5), claim("x", 9)],
                led(Some(5), 3),
            ),
            // The nodes granted with different tokens, and one is being agreed upon.
            ([claim("x", 5), claim("x", 1), claim("y", 1)], led(None, 2)),
            ([claim("x", 5), claim("y", 5), None], LeaderView::Undecided),
            ([claim("x", 5), free(), free()], LeaderView::Vacant),
            ([claim("x", 5), None, None], LeaderView::Unknown),
        ] {
            assert_eq!(LeaderView::of(&answers, 2), view, "{answers:?}");
        }
    }

    #[test]
    fn one_node_more_is_no_other_leader_and_another_term_is() {
        let of = |answers: [_; 3]| LeaderView::of(&answers, 2);
        let two = of([claim("x", 5), claim("x", 5), None]);
        let three = of([claim("x", 5), claim("x", 5), claim("x", 5)]);
        let later = of([claim("x", 6), claim("x", 6), None]);
        assert!(two.is_same(&three) && !two.is_same(&later));
    }
}
