//! One hold: the state that its guards, its renewals and its release share.

mod claims;
mod cohort;
mod ending;
mod hand_over;
mod pending;
pub(crate) mod requests;
mod statement;
mod watch;
mod watchers;

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
use self::cohort::Cohort;
pub(crate) use self::hand_over::Continued;
pub(crate) use self::pending::{Asked, PendingAcquire};
pub(crate) use self::statement::Statement;
use self::statement::Statements;
pub(crate) use self::watch::ClaimWatch;
use self::watchers::Watchers;
use crate::mutex::Mutex;
use crate::shared::layout::Layout;
use crate::shared::under::{Readers, Under};

/// A won lock, until it is released or lost.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) layout: Arc<Layout>,
    pub(crate) owner: OwnerId,
    /// The owner whose write hold existed when this read hold began.
    under: Option<OwnerId>,
    /// The hold of another client that this one continues.
    continued: Option<Arc<Continued>>,
    /// The owner's read holds beside this write hold.
    readers: OnceLock<Readers>,
    pub(crate) tokens: Box<[Token]>,
    cohort: Cohort,
    /// When the round that won the hold began, or when the hold before passed on.
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
    /// Whether the end was reported to operators, or must not be reported.
    is_told: bool,
    claims: Claims,
    watch: ClaimWatch,
    late: Vec<PendingAcquire>,
    /// Whether others have taken over the answers that were missing.
    has_late_elsewhere: bool,
    /// Whether the hold must not pass on, because others identify it by its owner.
    stays_here: bool,
    /// Members whose last re-acquisition continued the hold that was adopted.
    continued: Vec<MemberId>,
    /// The write hold beside which this one reads. `None` when this hold is over and no longer renewed.
    beside: Option<Under>,
    /// Tasks that wait for the loss.
    waiting: Watchers,
    /// Tasks that wait until the validity ends at another time.
    watching: Watchers,
}

/// Why a hold cannot be entered again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoEntry {
    Lost(Lost),
    /// The hold has reached its limit of entries.
    Full {
        most: u32,
    },
}

/// The state that a won round passes to its hold.
pub(crate) struct Won {
    /// When the round began.
    pub(crate) began: Time,
    pub(crate) layout: Arc<Layout>,
    pub(crate) owner: OwnerId,
    /// The write hold beside which the new hold reads.
    pub(crate) under: Option<Under>,
    /// The hold of another client that the new one continues.
    pub(crate) continued: Option<Arc<Continued>>,
    /// The tokens, one per group.
    pub(crate) tokens: Box<[Token]>,
    pub(crate) renewal: Renewal,
    /// The claims that may exist on the members.
    pub(crate) claims: Claims,
    pub(crate) watch: ClaimWatch,
    /// Acquires of the round that have not been answered.
    pub(crate) late: Vec<PendingAcquire>,
    pub(crate) tell_end: TellEnd,
}

/// Reports to operators that a hold is over: its names, owner, token, how long it was held, and how it ended.
///
/// It is called once, by the first caller that notices the end, and outside the mutex: a `tracing` subscriber of the
/// user may call back into this hold.
pub(crate) type TellEnd = fn(&Layout, OwnerId, Token, Duration, Status);

impl Hold {
    pub(crate) fn new(won: Won) -> Self {
        let Won {
            began,
            layout,
            owner,
            under,
            continued,
            tokens,
            renewal,
            claims,
            watch,
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
            watch,
            late,
            has_late_elsewhere: false,
            stays_here: false,
            continued: Vec::new(),
            beside: under,
            waiting: Watchers::default(),
            watching: Watchers::default(),
        };
        Hold {
            layout,
            owner,
            under: writer,
            continued,
            readers: OnceLock::new(),
            tokens,
            cohort: Cohort::new(),
            began,
            tell_end,
            state: Mutex::new(state),
        }
    }

    /// The owner's read holds beside this write hold.
    pub(crate) fn readers(&self) -> &Readers {
        self.readers.get_or_init(Readers::default)
    }

    /// The status at `now`. The first caller that notices a loss wakes the waiting tasks.
    pub(crate) fn status(&self, now: Time) -> Status {
        self.change(now, |state| state.renewal.status(now))
    }

    /// Changes the state. Wakes the tasks that wait for what has changed: the end of the hold, or that of its validity.
    fn change<T>(&self, now: Time, change: impl FnOnce(&mut HoldState) -> T) -> T {
        let mut state = self.state.lock();
        // Most holds are not watched, and the end of a validity is computed from those of all members.
        let watched = (!state.watching.is_empty()).then(|| state.renewal.valid_until());
        let result = change(&mut state);
        let mut ended = None;
        let has_moved = watched.is_some_and(|before| state.renewal.valid_until() != before);
        let mut woken = match has_moved || state.renewal.is_over() {
            true => state.watching.take(),
            false => Vec::new(),
        };
        let mut watch = Vec::new();
        if state.renewal.is_over() {
            watch = state.watch.end();
            state.beside = None;
            if !std::mem::replace(&mut state.is_told, true) {
                ended = Some(state.renewal.status(now));
            }
            woken.append(&mut state.waiting.take());
        }
        // Drop the mutex before the report and the wake-ups. A waker may run A's task on this thread; A polls
        // its lost signal, which locks this mutex, and both would wait for ever.
        drop(state);
        // A subscription ends without the mutex, too: it may drop a listener of this hold.
        drop(watch);
        if let Some(status) = ended {
            let held = now.since(self.began);
            (self.tell_end)(&self.layout, self.owner, self.token(0), held, status);
        }
        woken.into_iter().for_each(Waker::wake);
        result
    }

    pub(crate) fn valid_until(&self) -> Time {
        self.state.lock().renewal.valid_until()
    }

    /// Whether the hold is valid at `now`. Unlike [`Hold::status`] it wakes no task when it finds the hold lost.
    pub(crate) fn is_valid(&self, now: Time) -> bool {
        let state = self.state.lock();
        !state.renewal.is_over() && now < state.renewal.valid_until()
    }

    /// When the keeper must look at this hold again.
    ///
    /// Renewals with a second to spare are put off to the next tenth of a second, so that many are sent in one batch.
    /// With less slack a renewal is sent at once: the delay could cost the lock.
    pub(crate) fn poll_timeout(&self) -> Time {
        const TOGETHER: u64 = 100_000_000;
        let state = self.state.lock();
        let at = state.renewal.poll_timeout();
        // The caller that releases the hold takes over the answers that are missing. Suppose A's thread is suspended before
        // that: a time that has passed would make the keeper look at the hold again and again until A goes on.
        let late = match state.renewal.is_over() {
            true => None,
            false => state.late.first(),
        };
        let heard = late.map(PendingAcquire::poll_timeout);
        let slack = state.renewal.valid_until().since(at);
        let at = if slack < Duration::from_secs(1) || at == Time::NEVER {
            at
        } else {
            let together = at.as_nanos().checked_next_multiple_of(TOGETHER);
            together.map_or(at, Time::from_nanos)
        };
        let at = heard.map_or(at, |heard| heard.min(at));
        at.min(state.watch.due())
    }

    pub(crate) fn lease(&self) -> Lease {
        self.state.lock().renewal.lease()
    }

    /// The lease that requests state, and whether a watchdog renews it.
    pub(crate) fn leased(&self) -> (Lease, bool) {
        let state = self.state.lock();
        (state.renewal.lease(), state.renewal.is_watched())
    }

    pub(crate) fn count(&self) -> u32 {
        self.state.lock().count
    }

    /// Registers the task for the loss of the hold under `key` (0 on the first call). Returns the key, or how the
    /// hold was lost.
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

    /// Registers the task under `key` (0 on the first call) until the validity ends at another time than `known`.
    /// Returns the key, or the time at which it ends now; `None` as a time means that the hold is over.
    pub(crate) fn watch_validity(
        &self,
        cx: &Context<'_>,
        now: Time,
        known: Option<Time>,
        key: u64,
    ) -> Result<u64, Option<Time>> {
        self.change(now, |state| {
            let until = match state.renewal.status(now) {
                Status::Held => Some(state.renewal.valid_until()),
                Status::Releasing | Status::Lost(_) => None,
            };
            if until != known {
                return Err(until);
            }
            if until.is_none() {
                // Nothing can change any more. A registered task would be woken by this very call, again and again.
                return Ok(key);
            }
            Ok(state.watching.register(cx, key))
        })
    }

    pub(crate) fn stop_watching(&self, key: u64) {
        self.state.lock().watching.remove(key);
    }

    /// Returns the members that are due for a renewal or re-acquisition. Each counts as asked until [`Hold::end_ask`].
    pub(crate) fn take_due(&self, now: Time) -> Vec<MemberId> {
        self.change(now, |state| state.renewal.take_due(now, usize::MAX))
    }

    /// Returns what to send to a due member now, and the statement of the request; `None` if nothing needs to be
    /// sent.
    ///
    /// The member may have waited for its turn. By now it may have left or joined, and the hold may have been
    /// extended or released.
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
            let continues = ask == Ask::Reacquire && state.takes_turns(member);
            let stated = state.next_statement();
            Some((
                ask,
                Statement {
                    continues,
                    ..stated
                },
            ))
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

    /// Handles "not yours" as the answer to a release that lowers the count without freeing the name.
    pub(crate) fn not_yours(&self, now: Time, member: MemberId, sent: Time) {
        let lease = self.lease();
        self.renewed(now, member, sent, lease, RenewReply::NotYours);
    }

    pub(crate) fn failed(&self, now: Time, member: MemberId) {
        self.change(now, |state| state.renewal.handle_failed(now, member));
    }

    /// Handles a late answer to an acquire. Returns whether the member has a claim that the keeper must release.
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
                    state.watch.joined(now);
                    state.claims.set(member, ClaimState::Claimed);
                    return !is_ours;
                }
                Answer::Failed(_) => state.renewal.handle_failed(now, member),
                Answer::Quarantined(_)
                | Answer::Queued(_)
                | Answer::Refused(_)
                | Answer::OtherMode(_) => {}
            }
            // Suppose A's acquire of the round is refused, and the reply is slow. B, on another thread, releases a
            // guard; A's watchdog re-acquires the member and is granted; then the refusal arrives. It proves that its
            // own request left no claim, but nothing about the other request. If it removed the claim from the list,
            // the release would not be sent to this member, and the name would stay locked there.
            let has_left_nothing = matches!(
                answer,
                Answer::Refused(_) | Answer::OtherMode(_) | Answer::Failed(Execution::Definite)
            );
            if has_left_nothing {
                return false;
            }
            let left = match answer {
                Answer::Failed(_) => ClaimState::Unanswered,
                _ => ClaimState::Claimed,
            };
            state.claims.set(member, left);
            state.renewal.status(now) != Status::Held
        })
    }

    /// Removes and returns the acquires of the won round whose answers have not been read.
    pub(crate) fn take_late(&self) -> Vec<PendingAcquire> {
        let mut state = self.state.lock();
        state.has_late_elsewhere |= !state.late.is_empty();
        std::mem::take(&mut state.late)
    }

    pub(crate) fn gone_from(&self, member: MemberId) {
        self.state.lock().claims.set(member, ClaimState::Absent);
    }

    /// Whether a finished request may have left a claim on the member.
    pub(crate) fn may_stand_on(&self, member: MemberId) -> bool {
        self.state.lock().claims.may_stand_on(member)
    }

    /// Whether the member did not answer an acquire that has ended.
    pub(crate) fn is_unanswered_on(&self, member: MemberId) -> bool {
        self.state.lock().claims.is_unanswered_on(member)
    }

    /// Whether a member did not answer an acquire that has ended.
    pub(crate) fn has_unanswered(&self) -> bool {
        self.state.lock().claims.has_unanswered()
    }

    /// Whether to send a renewal or re-entry to the member.
    pub(crate) fn counts(&self, member: MemberId) -> bool {
        self.state.lock().renewal.counts(member)
    }

    /// Adds an entry and returns the new count. Fails if the hold is lost, released, leaked, or at its limit of
    /// entries.
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

    /// Returns the statement for requests that are made now. All later statements have at least this lease.
    pub(crate) fn state_lease(&self, lease: Option<Lease>) -> Statement {
        let mut state = self.state.lock();
        if let Some(lease) = lease {
            state.renewal.raise_lease(lease);
        }
        state.next_statement()
    }

    pub(crate) fn token(&self, group: usize) -> Token {
        self.tokens.get(group).copied().unwrap_or_default()
    }
}

impl HoldState {
    /// The next statement about the hold in its current state.
    fn next_statement(&mut self) -> Statement {
        self.statements.next(self.count, self.renewal.lease())
    }
}
