//! One hold: what the guards of it, its renewals and its release share.

mod claims;
mod loss_waiters;
mod pending;
pub(crate) mod requests;
mod statement;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};
use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::lease::Lease;
use quorlock_core::message::{MOST_READ_ENTRIES, Mode, RenewReply};
use quorlock_core::owner::OwnerId;
use quorlock_core::quorum::MemberId;
use quorlock_core::renewal::{Ask, Heeded, Lost, Renewal, Status};
use quorlock_core::round::Answer;
use quorlock_core::time::Time;
use quorlock_core::transport::Execution;

pub(crate) use self::claims::{ClaimState, Claims};
use self::loss_waiters::LossWaiters;
pub(crate) use self::pending::{Asked, PendingAcquire};
pub(crate) use self::statement::Statement;
use self::statement::Statements;
use crate::mutex::Mutex;
use crate::shared::layout::Layout;
use crate::shared::under::{Readers, Under};

#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) layout: Arc<Layout>,
    pub(crate) owner: OwnerId,
    /// Who wrote what it began to read.
    under: Option<OwnerId>,
    /// Who reads beside what it writes.
    readers: OnceLock<Readers>,
    pub(crate) tokens: Box<[Token]>,
    /// When the round that won it began.
    began: Time,
    tell_end: TellEnd,
    state: Mutex<HoldState>,
}

#[derive(Debug)]
struct HoldState {
    renewal: Renewal,
    count: u32,
    statements: Statements,
    is_leaked: bool,
    /// Its end was told to operators, or never will be.
    is_told: bool,
    claims: Claims,
    late: Vec<PendingAcquire>,
    /// What it began to read beside; until it is over, and renews no more.
    beside: Option<Under>,
    waiting: LossWaiters,
}

/// Why a hold cannot be entered once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoEntry {
    Lost(Lost),
    /// It has as many entries as it can have.
    Full {
        most: u32,
    },
}

/// What a round that was won leaves to the hold.
pub(crate) struct Won {
    /// When the round began.
    pub(crate) began: Time,
    pub(crate) layout: Arc<Layout>,
    pub(crate) owner: OwnerId,
    /// The writer beside which the hold reads.
    pub(crate) under: Option<Under>,
    /// Tokens by group.
    pub(crate) tokens: Box<[Token]>,
    pub(crate) renewal: Renewal,
    /// What may stand on each member.
    pub(crate) claims: Claims,
    /// Acquires of the round without an answer.
    pub(crate) late: Vec<PendingAcquire>,
    pub(crate) tell_end: TellEnd,
}

/// Tells operators that a hold of these names is over: its owner, token, how long it was held and how it ended. It is called
/// once, outside the mutex, by the first caller that finds the end.
pub(crate) type TellEnd = fn(&dyn fmt::Display, OwnerId, Token, Duration, Status);

impl Hold {
    pub(crate) fn new(won: Won) -> Self {
        let Won {
            began,
            layout,
            owner,
            under,
            tokens,
            renewal,
            claims,
            late,
            tell_end,
        } = won;
        let writer = under.as_ref().map(|under| under.writer);
        let state = HoldState {
            renewal,
            count: 1,
            statements: Statements::new(),
            is_leaked: false,
            is_told: false,
            claims,
            late,
            beside: under,
            waiting: LossWaiters::default(),
        };
        Hold {
            layout,
            owner,
            under: writer,
            readers: OnceLock::new(),
            tokens,
            began,
            tell_end,
            state: Mutex::new(state),
        }
    }

    /// Who reads beside what it writes.
    pub(crate) fn readers(&self) -> &Readers {
        self.readers.get_or_init(Readers::default)
    }

    /// What the hold is worth now. The first caller that finds out that it is lost tells the others.
    pub(crate) fn status(&self, now: Time) -> Status {
        self.change(now, |state| state.renewal.status(now))
    }

    /// Changes the state, then wakes the tasks that wait for its end, outside the mutex, if that is what it came to.
    fn change<T>(&self, now: Time, change: impl FnOnce(&mut HoldState) -> T) -> T {
        let mut state = self.state.lock();
        let result = change(&mut state);
        let mut ended = None;
        let woken = if state.renewal.is_over() {
            state.beside = None;
            if !std::mem::replace(&mut state.is_told, true) {
                ended = Some(state.renewal.status(now));
            }
            state.waiting.take()
        } else {
            Vec::new()
        };
        drop(state);
        if let Some(status) = ended {
            let held = now.since(self.began);
            (self.tell_end)(&*self.layout, self.owner, self.token(0), held, status);
        }
        woken.into_iter().for_each(Waker::wake);
        result
    }

    pub(crate) fn valid_until(&self) -> Time {
        self.state.lock().renewal.valid_until()
    }

    /// Whether it is held. If it is found to be lost by now, no signal is sent.
    pub(crate) fn is_valid(&self, now: Time) -> bool {
        let state = self.state.lock();
        !state.renewal.is_over() && now < state.renewal.valid_until()
    }

    /// When the keeper is to look at this hold again. Renewals that have time are put off to the next tenth of a
    /// second, so that many are sent together.
    pub(crate) fn poll_timeout(&self) -> Time {
        const TOGETHER: u64 = 100_000_000;
        let state = self.state.lock();
        let at = state.renewal.poll_timeout();
        let heard = state.late.first().map(PendingAcquire::poll_timeout);
        let slack = state.renewal.valid_until().since(at);
        let at = if slack < Duration::from_secs(1) || at == Time::NEVER {
            at
        } else {
            let together = at.as_nanos().checked_next_multiple_of(TOGETHER);
            together.map_or(at, Time::from_nanos)
        };
        heard.map_or(at, |heard| heard.min(at))
    }

    pub(crate) fn lease(&self) -> Lease {
        self.state.lock().renewal.lease()
    }

    pub(crate) fn count(&self) -> u32 {
        self.state.lock().count
    }

    /// Waits for the loss of the hold under `key` (0 for the first time); returns the key, or how it was lost.
    pub(crate) fn wait_for_loss(&self, cx: &Context<'_>, now: Time, key: u64) -> Result<u64, Lost> {
        self.change(now, |state| {
            match state.renewal.status(now) {
                Status::Held => {}
                Status::Releasing => return Err(Lost::Released),
                Status::Lost(lost) => return Err(lost),
            }
            Ok(state.waiting.register(cx, key))
        })
    }

    pub(crate) fn stop_waiting(&self, key: u64) {
        self.state.lock().waiting.remove(key);
    }

    /// The members to renew or re-acquire, each of which the keeper asks from now on until [`Hold::end_ask`].
    pub(crate) fn take_due(&self, now: Time) -> Vec<MemberId> {
        self.change(now, |state| state.renewal.take_due(now, usize::MAX))
    }

    /// What to send to such a member now, and what it states; `None` when there is nothing more to ask.
    ///
    /// Much may have changed since it was due: the member has left or joined, the hold was extended or released.
    pub(crate) fn ask(&self, now: Time, member: MemberId) -> Option<(Ask, Statement)> {
        self.change(now, |state| {
            if state.renewal.status(now) != Status::Held {
                state.renewal.handle_end(member);
                return None;
            }
            let ask = if state.renewal.counts(member) {
                Ask::Renew
            } else {
                Ask::Reacquire
            };
            Some((ask, state.next_statement()))
        })
    }

    pub(crate) fn end_ask(&self, member: MemberId) {
        self.state.lock().renewal.handle_end(member);
    }

    pub(crate) fn renewed(
        &self,
        now: Time,
        member: MemberId,
        sent: Time,
        lease: Lease,
        reply: RenewReply,
    ) {
        self.change(now, |state| {
            let heeded = state
                .renewal
                .handle_renewed(now, member, sent, lease, reply);
            if reply == RenewReply::NotYours && heeded == Heeded::Yes {
                state.claims.set(member, ClaimState::Absent);
            }
        });
    }

    /// A member said so to a release that left some of the count.
    pub(crate) fn not_yours(&self, now: Time, member: MemberId) {
        let lease = self.lease();
        self.renewed(now, member, now, lease, RenewReply::NotYours);
    }

    pub(crate) fn failed(&self, now: Time, member: MemberId) {
        self.change(now, |state| state.renewal.handle_failed(now, member));
    }

    /// A member answered an acquire late. Returns whether a claim stands there that the keeper releases.
    pub(crate) fn answered(
        &self,
        now: Time,
        member: MemberId,
        sent: Time,
        lease: Lease,
        answer: Answer,
    ) -> bool {
        self.change(now, |state| {
            match answer {
                Answer::Granted(_) => {
                    let is_ours = state.renewal.handle_granted(now, member, sent, lease);
                    state.claims.set(member, ClaimState::Claimed);
                    return !is_ours;
                }
                Answer::Failed(_) => state.renewal.handle_failed(now, member),
                Answer::Quarantined(_)
                | Answer::Queued(_)
                | Answer::Refused(_)
                | Answer::OtherMode(_) => {}
            }
            // A's acquire of the round is refused, and the reply is slow. B releases, A's watchdog acquires the member
            // and is granted, and only then the refusal comes. It says that its own request left nothing, and nothing of
            // another: should it take the claim off the list, the release would not go there.
            let has_left_nothing = matches!(
                answer,
                Answer::Refused(_) | Answer::OtherMode(_) | Answer::Failed(Execution::Definite)
            );
            if has_left_nothing {
                return false;
            }
            state.claims.set(member, ClaimState::Claimed);
            state.renewal.status(now) != Status::Held
        })
    }

    /// The acquires of the round that won whose answers have not been looked at.
    pub(crate) fn take_late(&self) -> Vec<PendingAcquire> {
        std::mem::take(&mut self.state.lock().late)
    }

    pub(crate) fn gone_from(&self, member: MemberId) {
        self.state.lock().claims.set(member, ClaimState::Absent);
    }

    /// Whether a request that has ended may have left a claim there.
    pub(crate) fn may_stand_on(&self, member: MemberId) -> bool {
        self.state.lock().claims.may_stand_on(member)
    }

    /// Whether to send a renewal or re-entry to the member.
    pub(crate) fn counts(&self, member: MemberId) -> bool {
        self.state.lock().renewal.counts(member)
    }

    /// Enters once more: the count is now so much. Refused unless it is held, and was not leaked.
    pub(crate) fn enter(&self, now: Time) -> Result<u32, NoEntry> {
        let most = match self.layout.has(Mode::Read) {
            true => MOST_READ_ENTRIES,
            false => u32::MAX,
        };
        self.change(now, |state| match state.renewal.status(now) {
            Status::Held if most <= state.count => Err(NoEntry::Full { most }),
            Status::Held if 0 < state.count && !state.is_leaked => {
                state.count = state.count.saturating_add(1);
                Ok(state.count)
            }
            Status::Held | Status::Releasing => Err(NoEntry::Lost(Lost::Released)),
            Status::Lost(lost) => Err(NoEntry::Lost(lost)),
        })
    }

    /// What requests that are made now state. From now on all state at least this lease.
    pub(crate) fn state_lease(&self, lease: Option<Lease>) -> Statement {
        let mut state = self.state.lock();
        if let Some(lease) = lease {
            state.renewal.raise_lease(lease);
        }
        state.next_statement()
    }

    /// Whether its last guard was given back while it was held.
    pub(crate) fn was_released(&self) -> bool {
        self.state.lock().renewal.is_releasing()
    }

    /// One guard fewer: what is left of the count, and what the hold was worth. With the last one the release begins.
    pub(crate) fn leave(&self, now: Time) -> (u32, Status) {
        self.change(now, |state| {
            state.count = state.count.saturating_sub(1);
            let status = if state.count == 0 {
                state.renewal.begin_release(now)
            } else {
                state.renewal.status(now)
            };
            (state.count, status)
        })
    }

    /// It is neither renewed nor given back from now on. Returns whether its end is not told yet, and never will be.
    pub(crate) fn leak(&self) -> bool {
        let mut state = self.state.lock();
        let is_untold = !std::mem::replace(&mut state.is_told, true);
        state.is_leaked = true;
        state.renewal.stop_renewing();
        is_untold
    }

    /// The client is closed; returns what the hold was worth.
    pub(crate) fn close(&self, now: Time) -> Status {
        self.change(now, |state| state.renewal.close(now))
    }

    /// The members on which a claim may stand, whether or not another acquire is under way there.
    ///
    /// Of a leaked hold there are none: its claims end with their lease. But a writer's is not left to those who read
    /// beside it, and keep it alive.
    pub(crate) fn claimed(&self) -> Vec<MemberId> {
        let state = self.state.lock();
        let has_expired = state.renewal.lost() == Some(Lost::Expired);
        let is_left = |member: MemberId| {
            let is_written = self.layout.place(member).mode == Mode::Write;
            state.is_leaked && !(is_written && has_expired && self.readers().are_there())
        };
        self.layout
            .members
            .all()
            .filter(|m| state.claims.may_stand_on(*m) && !is_left(*m))
            .collect()
    }

    pub(crate) fn token(&self, group: usize) -> Token {
        self.tokens.get(group).copied().unwrap_or_default()
    }
}

impl HoldState {
    /// The next statement of the hold as it is now.
    fn next_statement(&mut self) -> Statement {
        self.statements.next(self.count, self.renewal.lease())
    }
}
