//! A round in progress: its requests, its answers and what it leaves behind.

use std::task::Context;

use quorlock_core::fencing::{Token, Tokens};
use quorlock_core::lease::Lease;
use quorlock_core::message::{Acquire, AcquireReply, Mode, Reply, Request};
use quorlock_core::owner::OwnerId;
use quorlock_core::quorum::MemberId;
use quorlock_core::renewal::{Renewal, Watchdog};
use quorlock_core::round::{Order, Outcome, Round};
use quorlock_core::time::{Time, WallMillis};
use quorlock_core::transport::{Cause, TransportError};

use super::raise::{FIRST, Raise};
use super::request::LockRequest;
use crate::error::{NodeReport, Quarantine};
use crate::runtime::Runtime;
use crate::shared::calls::{Calls, Received};
use crate::shared::client::Client;
use crate::shared::hold::{ClaimState, ClaimWatch, Claims, PendingAcquire, Won};
use crate::shared::layout::{Layout, Part};
use crate::shared::seen_tokens::SeenTokens;
use crate::shared::trust::{Purpose, Sent};
use crate::telemetry;

/// A round in progress.
pub(super) struct RunningRound {
    pub(super) began: Time,
    pub(super) owner: OwnerId,
    lease: Lease,
    pub(super) round: Round,
    pub(super) calls: Calls<(MemberId, Sent)>,
    errors: Vec<(MemberId, TransportError)>,
    /// How often the clients had learned that a longer watch is needed when the votes were counted.
    rises: u64,
    /// How long the node of each vote was watched, in milliseconds.
    watched: Vec<(MemberId, u64)>,
    /// The tokens of a won round whose members agree on them.
    tokens: Option<Tokens>,
    raise: Option<Raise>,
    /// What its requests state about tokens.
    stated: Option<Stated>,
}

/// What all requests of a round state about tokens. If they stated different things, their nodes would hand out different tokens.
struct Stated {
    clock: WallMillis,
    /// The token of each group that was seen; empty if none was.
    after: Vec<Option<Token>>,
}

impl Stated {
    fn new(now: Time, clock: WallMillis, wanted: &LockRequest) -> Self {
        let mut after = Vec::new();
        if wanted.continues.is_none() {
            for (group, part) in wanted.layout.parts.iter().enumerate() {
                let seen = seen_tokens(part).and_then(|seen| seen.of(&part.name, now, clock));
                if seen.is_some() {
                    after.resize(group, None);
                    after.push(seen);
                }
            }
        }
        Stated { clock, after }
    }

    fn after(&self, group: usize) -> Option<Token> {
        self.after.get(group).copied().flatten()
    }

    /// Remembers the tokens of a won round, whose nodes have disagreed on some of them or not.
    fn record(&self, now: Time, layout: &Layout, tokens: &[Token], was_raised: bool) {
        for (group, (part, token)) in layout.parts.iter().zip(tokens).enumerate() {
            if let Some(seen) = seen_tokens(part) {
                let after = self.after(group);
                if was_raised && after.is_some() {
                    seen.handle_disagreement(&part.name, now);
                }
                seen.record(&part.name, *token, after, now, self.clock);
            }
        }
    }
}

/// Where the tokens of a part are remembered: only those of plain locks are.
fn seen_tokens(part: &Part) -> Option<&SeenTokens> {
    let node = part.nodes.first().filter(|_| part.mode == Mode::Plain);
    node.map(|node| &node.party.seen)
}

impl RunningRound {
    pub(super) fn begin(
        began: Time,
        owner: OwnerId,
        wanted: &LockRequest,
        order: Order,
        mute: &[MemberId],
    ) -> Self {
        let members = wanted.layout.members.clone();
        let round = Round::new(
            began,
            members.clone(),
            wanted.lease,
            wanted.member_timeout,
            order,
        );
        RunningRound {
            began,
            owner,
            lease: wanted.lease,
            calls: Calls::of(members.len()),
            round: round.without_waiting_for(mute),
            errors: Vec::new(),
            rises: wanted.layout.rises(),
            watched: Vec::new(),
            tokens: None,
            raise: None,
            stated: None,
        }
    }

    /// Sends the requests that are due, takes in the answers and returns the outcome.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &Client,
        wanted: &LockRequest,
    ) -> Outcome {
        loop {
            if let Some(raise) = &mut self.raise {
                return raise.poll(cx, client, wanted, self.owner, &self.round);
            }
            // A term begins at a clock reading from before its request leaves. If A read the clock after sending and
            // was suspended in between, its term would outlast the node's claim, and B would be granted the name
            // while A still relies on it.
            self.send(client, wanted);
            self.hear(cx, &*client.runtime, wanted);
            self.recount(client, wanted);
            // Read the clock after the answers. Suppose A is granted by 1, 2 and 3, and its process is suspended.
            // With an earlier reading A would win when it resumes, although its claims have expired and B holds them.
            let now = client.now();
            let outcome = self.round.outcome(now);
            match outcome {
                Outcome::Won => {
                    let mut tokens = self.round.tokens();
                    for (group, part) in wanted.layout.parts.iter().enumerate() {
                        if part.mode == Mode::Read {
                            tokens.settle_at_largest(group);
                        }
                    }
                    if tokens.is_settled() {
                        self.tokens = Some(tokens);
                        return Outcome::Won;
                    }
                    telemetry::raised(&*wanted.layout);
                    self.raise = Some(Raise::new(now, tokens, wanted));
                }
                Outcome::Pending if self.round.has_more_to_ask() => {}
                other => return other,
            }
        }
    }

    /// Sends the requests of the members that are due.
    fn send(&mut self, client: &Client, wanted: &LockRequest) {
        if !self.round.has_more_to_ask() {
            return;
        }
        let now = client.now();
        let stated = self
            .stated
            .get_or_insert_with(|| Stated::new(now, client.runtime.wall_clock(), wanted));
        while let Some(member) = self.round.next_ask(now) {
            let place = wanted.layout.place(member);
            let question = place.ask();
            let request = Request::Acquire(Acquire {
                name: place.name.clone(),
                access: wanted.access(place.mode, client),
                owner: self.owner,
                count: 1,
                lease: wanted.lease,
                fence: wanted.fence(place, stated.clock),
                after: stated.after(place.group),
                retention: place.node.party.retention,
                keep: place.keep(FIRST),
                replaces: question.replaces,
                continues: wanted.continues.as_ref().map(|hold| hold.owner),
                check: question.check,
            });
            let tag = (member, question.sent);
            self.calls.push(tag, place.node.call(request));
        }
    }

    /// Takes in the answers that have arrived.
    pub(super) fn hear(&mut self, cx: &mut Context<'_>, clock: &dyn Runtime, wanted: &LockRequest) {
        let RunningRound {
            calls,
            round,
            errors,
            watched,
            ..
        } = self;
        calls.poll(cx, clock, |(member, sent), Received { result, at }| {
            let place = wanted.layout.place(member);
            let voted = place
                .node
                .vote(sent, &place.name, Purpose::NewHold, &result);
            telemetry::trust_changed(place.node.address(), voted.change);
            let answer = voted.answer;
            watched.push((member, voted.watched_millis));
            if let Ok(
                Reply::Acquire(AcquireReply::Refused { version, .. })
                | Reply::Checked(AcquireReply::Refused { version, .. }, _),
            ) = &result
                && let Some(version) = version
            {
                round.handle_owner(member, version.owner);
            }
            match result {
                Err(error) if !error.cause.may_pass() => {
                    round.handle_denied(at, member, error.execution);
                    errors.push((member, error));
                }
                // The node is fine, and is reported as one that does not grant such leases yet.
                Err(error) if error.cause == Cause::LongestLease => {
                    round.handle_answer(at, member, answer);
                }
                Err(error) => {
                    round.handle_answer(at, member, answer);
                    errors.push((member, error));
                }
                Ok(_) => round.handle_answer(at, member, answer),
            }
        });
    }

    /// Withdraws the votes of nodes whose watch was too short, if a client has learned that a longer one is needed.
    fn recount(&mut self, client: &Client, wanted: &LockRequest) {
        let rises = wanted.layout.rises();
        if rises != self.rises {
            self.rises = rises;
            let now = client.now();
            for (member, watched_millis) in &self.watched {
                if *watched_millis < wanted.layout.place(*member).node.needed_millis() {
                    self.round.withdraw_vote(now, *member);
                }
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Time {
        match &self.raise {
            Some(raise) => raise.poll_timeout(),
            None => self.round.poll_timeout(),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        match &mut self.raise {
            Some(raise) => raise.handle_timeout(now),
            None => self.round.handle_timeout(now),
        }
    }

    /// Converts a won round to the state of its hold. `now` is the time up to which the answers were counted.
    pub(super) fn into_won(mut self, now: Time, wanted: &LockRequest, watch: ClaimWatch) -> Won {
        let LockRequest { layout, lease, .. } = wanted;
        let lease = *lease;
        let until = layout
            .max_hold()
            .map_or(Time::NEVER, |max| self.began + max);
        let watchdog = wanted.is_watched.then(|| Watchdog::for_lease(lease));
        let late: Vec<_> = self
            .calls
            .drain()
            .map(|((member, shows), call)| {
                let sent = self.round.sent(member).unwrap_or(self.began);
                PendingAcquire::new(member, sent, shows, lease, call)
            })
            .collect();
        // An unanswered acquire passes to the hold, and its own answer decides whether it left a claim.
        let is_late = |member| late.iter().any(|late| late.member == member);
        let claims = layout.members.all().map(|member| {
            if is_late(member) || !self.round.may_hold(member) {
                ClaimState::Absent
            } else if self.round.is_mute(member) {
                ClaimState::Unanswered
            } else {
                ClaimState::Claimed
            }
        });
        let claims = Claims::new(claims);
        let tokens = self.tokens(layout);
        if let Some(stated) = &self.stated {
            stated.record(now, layout, &tokens, self.raise.is_some());
        }
        Won {
            began: self.began,
            layout: layout.clone(),
            owner: self.owner,
            under: wanted.under.clone(),
            continued: wanted.continues.clone(),
            tokens,
            renewal: Renewal::new(now, self.round.into_terms(), lease, watchdog, until),
            claims,
            watch,
            late,
            tell_end: telemetry::ended,
        }
    }

    /// The tokens of a won round, one per group.
    fn tokens(&self, layout: &Layout) -> Box<[Token]> {
        let tokens = self.raise.as_ref().map(Raise::tokens);
        let tokens = tokens.or(self.tokens.as_ref());
        (0..layout.parts.len())
            .map(|group| tokens.map_or(Token::default(), |tokens| tokens.token(group)))
            .collect()
    }

    /// Reports the members that did not answer or do not count.
    pub(super) fn problems(&self, layout: &Layout) -> Vec<NodeReport> {
        if self.round.is_healthy() {
            return Vec::new();
        }
        self.reports(layout, |member| self.round.is_silent(member))
    }

    /// Like [`RunningRound::problems`] for a round that has not ended: members that have not answered yet are included.
    pub(super) fn missing(&self, layout: &Layout) -> Vec<NodeReport> {
        self.reports(layout, |member| self.round.is_unanswered(member))
    }

    fn reports(&self, layout: &Layout, is_silent: impl Fn(MemberId) -> bool) -> Vec<NodeReport> {
        let quarantine = |member| {
            let node = &layout.place(member).node;
            if let Some(raising) = node.raising(self.lease) {
                return Some(node.quarantine().unwrap_or(raising));
            }
            // A node whose watch has ended since it answered is reported, too: its vote was missing.
            let is_quarantined = self.round.is_quarantined(member);
            is_quarantined.then(|| node.quarantine().unwrap_or(Quarantine::ENDED))
        };
        layout.reports(&self.errors, is_silent, quarantine)
    }
}
