//! Rounds: one attempt at all members.

mod expiry;
mod token;
mod turns;

use std::rc::Rc;
use std::time::Duration;

use quorlock::runtime::{Runtime, Time};
use quorlock::transport::{AcquireReply, Execution, Reply};
use quorlock::{OwnerId, Token};
use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;
use quorlock_core::message::Ttl;

use super::client::LockClient;
use super::hold::ModelHold;
use super::layout::Layout;
use super::orphans::Orphans;
use super::release::Release;
use super::requests::{ConcurrentRequests, MemberReply};
use quorlock_sim_plan::variant::Flaw;

pub(super) use turns::TryLock;

/// The largest distance between a token floor and a node's clock, in milliseconds.
const SLACK_MILLIS: u64 = 15_000;

/// One round: it reads the clock, sends requests to the members, counts grants, and compares their terms with the
/// clock.
///
/// Dropping a round before it is won releases the claims that it may have made.
pub(super) struct Round {
    pub(super) client: Rc<LockClient>,
    pub(super) layout: Rc<Layout>,
    pub(super) owner: OwnerId,
    pub(super) lease: Lease,
    /// The vote of each member.
    pub(super) votes: Vec<Vote>,
    end: RoundEnd,
}

/// Whether and how a round has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RoundEnd {
    /// The round has not ended. If it is dropped now, it was cancelled.
    Open,
    Lost,
    Won,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Vote {
    Unasked,
    Pending,
    /// The member granted the name with this token, in answer to a request that was sent at this time.
    Granted(Token, Time),
    Refused(Ttl),
    Failed(Execution),
}

/// The result of a round.
pub(super) enum RoundOutcome {
    Won(Rc<ModelHold>),
    /// Other owners hold too many members. The value is the earliest time after which that may change. It is `None` if
    /// some members granted, because then perhaps no client has won.
    Refused(Option<Duration>),
    /// Too few members answered, or they answered too late.
    Failed,
}

impl Round {
    pub(super) fn new(client: &Rc<LockClient>, layout: &Rc<Layout>, lease: Lease) -> Self {
        Round {
            client: Rc::clone(client),
            layout: Rc::clone(layout),
            owner: client.fresh_owner_id(),
            lease,
            votes: vec![Vote::Unasked; layout.members.len()],
            end: RoundEnd::Open,
        }
    }

    pub(super) async fn run(mut self) -> RoundOutcome {
        let outcome = self.attempt().await;
        self.end = match outcome {
            RoundOutcome::Won(_) => RoundEnd::Won,
            _ => RoundEnd::Lost,
        };
        outcome
    }

    async fn attempt(&mut self) -> RoundOutcome {
        if self.client.has(Flaw::WaitsInOrder) {
            self.wait_in_order().await;
        } else {
            self.ask_all().await;
        }
        if !self.layout.is_quorum(|member| self.is_granted(member)) {
            return self.loss();
        }
        // A process that ends here has made claims without an end, which keep all others out.
        if self.client.has(Flaw::ExpireFollows) && !self.expire(self.lease).await {
            return RoundOutcome::Failed;
        }
        let terms = self.terms();
        let valid_until = self.layout.threshold_th(&terms);
        // A slow round can outlast its own lease: A's claims on 1 and 2 of 3 have expired, and B may already hold
        // both.
        if self.is_too_late(valid_until) {
            return RoundOutcome::Failed;
        }
        let Some(tokens) = token::of(self).await else {
            return RoundOutcome::Failed;
        };
        // The clock is read again, because raising a token takes another round trip, in which the claims may expire.
        if self.is_too_late(valid_until) {
            return RoundOutcome::Failed;
        }
        let (client, layout) = (&self.client, &self.layout);
        let hold = ModelHold::new(client, layout, self.owner, self.lease, tokens, terms);
        RoundOutcome::Won(hold)
    }

    fn is_too_late(&self, valid_until: Option<Time>) -> bool {
        let is_over = valid_until.is_none_or(|until| until <= self.client.clock());
        is_over && !self.client.has(Flaw::LateWinTaken)
    }

    async fn ask_all(&mut self) {
        let client = Rc::clone(&self.client);
        let mut asking = ConcurrentRequests::new(&client);
        let mut deadline = client.now() + client.member_timeout(self.lease);
        let at_once = match client.has(Flaw::OneByOne) {
            true => 1,
            false => self.votes.len(),
        };
        for _ in 0..at_once {
            self.ask_next(&mut asking);
        }
        while self.is_open() {
            let Some(answer) = asking.next(deadline).await else {
                break;
            };
            self.note(&answer);
            if self.ask_next(&mut asking) {
                deadline = client.now() + client.member_timeout(self.lease);
            }
        }
    }

    /// Claims one member after another, and keeps the claims while it waits for the next member.
    async fn wait_in_order(&mut self) {
        let client = Rc::clone(&self.client);
        let layout = Rc::clone(&self.layout);
        self.votes.fill(Vote::Pending);
        let mut wanted = 1;
        while wanted <= layout.members.len() {
            let mut asking = ConcurrentRequests::new(&client);
            for (member, index) in layout.members.iter().zip(0..wanted) {
                let request = client.acquire(member, self.owner, 1, self.lease, self.fence());
                asking.ask(index, member, request);
            }
            let deadline = client.now() + client.member_timeout(self.lease);
            while !asking.is_empty()
                && let Some(answer) = asking.next(deadline).await
            {
                self.note(&answer);
            }
            if (0..wanted).all(|member| self.is_granted(member)) {
                wanted += 1;
            } else {
                client.sleep_until(deadline).await;
            }
        }
    }

    /// Sends a request to the next member. Returns whether there was one.
    fn ask_next(&mut self, asking: &mut ConcurrentRequests<'_>) -> bool {
        let layout = Rc::clone(&self.layout);
        let mut unasked = self.votes.iter_mut().zip(&layout.members).zip(0..);
        let Some(((vote, member), index)) = unasked.find(|((vote, _), _)| **vote == Vote::Unasked)
        else {
            return false;
        };
        *vote = Vote::Pending;
        let fence = self.fence();
        let lease = match self.client.has(Flaw::ExpireFollows) {
            true => expiry::endless(),
            false => self.lease,
        };
        let request = self.client.acquire(member, self.owner, 1, lease, fence);
        asking.ask(index, member, request);
        true
    }

    fn fence(&self) -> Fence {
        if self.client.has(Flaw::CountersFromOne) {
            return Fence::Mint {
                floor: quorlock::runtime::WallMillis(1),
                slack_millis: u64::MAX,
            };
        }
        // The wall clock is the floor. Otherwise a node that lost its counter would hand out 1 again, and the store
        // would reject the newer holder.
        Fence::Mint {
            floor: self.client.runtime().wall_clock(),
            slack_millis: SLACK_MILLIS,
        }
    }

    fn note(&mut self, answer: &MemberReply) {
        let vote = match &answer.reply {
            Ok(Reply::Acquire(AcquireReply::Granted { token, .. })) => {
                Vote::Granted(*token, answer.sent)
            }
            Ok(Reply::Acquire(AcquireReply::Refused { ttl, .. })) => Vote::Refused(*ttl),
            Ok(_) => Vote::Failed(Execution::Indeterminate),
            Err(error) => Vote::Failed(error.execution),
        };
        if let Some(place) = self.votes.get_mut(answer.member) {
            *place = vote;
        }
    }

    pub(super) fn is_granted(&self, member: usize) -> bool {
        matches!(self.votes.get(member), Some(Vote::Granted(..)))
    }

    /// Returns whether the round is neither won nor lost.
    fn is_open(&self) -> bool {
        let may_grant = |member| {
            let vote = self.votes.get(member);
            !matches!(vote, Some(Vote::Refused(_) | Vote::Failed(_)))
        };
        !self.layout.is_quorum(|member| self.is_granted(member)) && self.layout.is_quorum(may_grant)
    }

    /// Returns the term of each grant: send time + lease - drift.
    fn terms(&self) -> Vec<Option<Time>> {
        let from_reply = self.client.has(Flaw::GrantCountsFromReply);
        let now = self.client.clock();
        let term = |vote: &Vote| match vote {
            Vote::Granted(..) if from_reply => Some(self.lease.term(now)),
            // Not from the reply: the node's TTL began before the reply. A would still believe that it holds its lock
            // when the node has granted the name to B.
            Vote::Granted(_, sent) => Some(self.lease.term(*sent)),
            _ => None,
        };
        self.votes.iter().map(term).collect()
    }

    fn loss(&self) -> RoundOutcome {
        let left = self.votes.iter().filter_map(|vote| match vote {
            Vote::Refused(Ttl::Millis(millis)) => Some(Duration::from_millis(*millis)),
            Vote::Refused(Ttl::Unbounded) => Some(Duration::MAX),
            _ => None,
        });
        let has_granted = self
            .votes
            .iter()
            .any(|vote| matches!(vote, Vote::Granted(..)));
        match left.min() {
            None => RoundOutcome::Failed,
            Some(_) if has_granted => RoundOutcome::Refused(None),
            left => RoundOutcome::Refused(left),
        }
    }

    /// Keeps the claims that were granted so far, each renewed by a watchdog.
    fn keep_parts(&self) {
        let orphans = Orphans {
            client: &self.client,
            layout: &self.layout,
            owner: self.owner,
            lease: self.lease,
        };
        for (vote, member) in self.votes.iter().zip(0..) {
            if let Vote::Granted(token, _) = vote {
                orphans.keep(member, *token);
            }
        }
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        if self.end == RoundEnd::Won {
            return;
        }
        if self.end == RoundEnd::Open && self.client.has(Flaw::CancelKeepsParts) {
            return self.keep_parts();
        }
        let votes = self.votes.iter().zip(0..);
        let stays = votes.filter(|(vote, _)| may_hold(**vote));
        let stays: Vec<usize> = stays.map(|(_, member)| member).collect();
        if stays.is_empty() {
            return;
        }
        let release = Release {
            client: Rc::clone(&self.client),
            layout: Rc::clone(&self.layout),
            owner: self.owner,
            left: 0,
        };
        self.client.spawn(async move {
            release.tell(stays).await;
        });
    }
}

/// Returns whether the member may have recorded the claim. Silence is not a refusal.
fn may_hold(vote: Vote) -> bool {
    matches!(
        vote,
        // The request may still be executed. If A did not release the claim, it would keep B out for a lease although
        // no client holds it.
        Vote::Granted(..) | Vote::Pending | Vote::Failed(Execution::Indeterminate)
    )
}
