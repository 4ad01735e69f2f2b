//! Holds that follow each other in one process without a release in between.
//!
//! To the nodes they are one hold that lasts longer: the owner and the claims stay. Each has a token of its own. They are reserved
//! before the first one passes on: a quorum has stored the last of them, so that whatever the nodes grant next has a larger one.

use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::message::Mode;
use quorlock_core::renewal::Status;
use quorlock_core::time::Time;

use super::{ClaimWatch, Hold, HoldState, Statements, Watchers};

/// How often a lock passes on before it is released. It bounds what other processes wait for.
const MOST: u8 = 8;

/// For how long a lock passes on, from the first pass to the last. It bounds what other processes wait for if holds are long.
const LONGEST: Duration = Duration::from_millis(25);

/// What the holds of a cohort have in common.
#[derive(Clone, Debug)]
pub(crate) struct Cohort {
    /// How often the lock has passed on.
    passes: u8,
    /// When it passes on no more.
    until: Time,
    /// The last token that is reserved, one for each group; empty before the first pass.
    reserved: Box<[Token]>,
}

impl Cohort {
    /// The cohort of a hold that was won at the nodes.
    pub(super) fn new() -> Self {
        Cohort {
            passes: 0,
            until: Time::NEVER,
            reserved: Box::default(),
        }
    }

    fn may_pass(&self, now: Time) -> bool {
        self.passes < MOST && now < self.until
    }
}

impl Hold {
    /// Whether the hold can pass to another caller of its client.
    ///
    /// Not one with an answer outstanding that may change what it relies on: the answer belongs to this hold, and the next one would
    /// not hear it.
    pub(crate) fn may_pass(&self, now: Time) -> bool {
        let layout = &self.layout;
        let is_simple = layout.parts.iter().all(|part| part.mode == Mode::Plain)
            && layout.parties().count() == 1
            && layout.max_hold().is_none();
        is_simple
            && self.continued.is_none()
            && self.cohort.may_pass(now)
            && self.state.lock().may_pass(now)
    }

    /// Whether there are reserved tokens left.
    pub(crate) fn has_reserved(&self) -> bool {
        !self.cohort.reserved.is_empty()
    }

    /// The tokens to reserve before this hold, which is the first of its cohort, passes on.
    pub(crate) fn to_reserve(&self) -> Box<[Token]> {
        let last = |token: &Token| Token(token.0.saturating_add(MOST.into()));
        self.tokens.iter().map(last).collect()
    }

    /// The token that requests carry: the largest that this hold, or one after it without another grant, can have.
    ///
    /// Suppose a member joins again with the token of the present hold. Its counter would be behind the tokens of the next ones, and
    /// its vote could make a later grant at the nodes unanimous with a smaller token.
    pub(crate) fn carried(&self, group: usize) -> Token {
        let reserved = self.cohort.reserved.get(group).copied();
        reserved.unwrap_or_else(|| self.token(group))
    }

    /// Ends this hold and returns the next one, which has its claims and its validity; `None` if it may not pass on, and nothing has
    /// changed.
    ///
    /// `reserved` are tokens of [`Hold::to_reserve`] that a quorum has stored since. Nothing is told of the new hold until it is
    /// [taken](Hold::take).
    pub(crate) fn pass(
        &self,
        now: Time,
        reserved: Option<Box<[Token]>>,
        watch: ClaimWatch,
    ) -> Option<Hold> {
        if !self.may_pass(now) {
            return None;
        }
        let Cohort {
            passes,
            until,
            reserved: before,
        } = self.cohort.clone();
        let cohort = Cohort {
            passes: passes + 1,
            until: until.min(now + LONGEST),
            reserved: reserved.unwrap_or(before),
        };
        let next = |token: &Token| Token(token.0.saturating_add(1));
        let state = self.change(now, |state| {
            // Another thread may have changed it since.
            state.may_pass(now).then(|| state.pass(now, watch))
        })?;
        Some(Hold {
            layout: self.layout.clone(),
            owner: self.owner,
            under: None,
            continued: None,
            readers: std::sync::OnceLock::new(),
            tokens: self.tokens.iter().map(next).collect(),
            cohort,
            began: now,
            tell_end: self.tell_end,
            state: crate::mutex::Mutex::new(state),
        })
    }

    /// Whether no caller has taken this hold since it has passed on.
    pub(crate) fn is_untaken(&self) -> bool {
        let state = self.state.lock();
        state.is_told && !state.is_leaked && !state.renewal.is_over()
    }

    /// Gives this hold, which has passed on, to the caller that takes it. Returns whether it is held.
    pub(crate) fn take(&self, now: Time) -> bool {
        let mut state = self.state.lock();
        let is_held = !state.renewal.is_over() && now < state.renewal.valid_until();
        // The end of a hold that no caller had is not told.
        state.is_told = !is_held;
        is_held
    }

    /// Keeps this hold from passing on.
    pub(crate) fn stay_here(&self) {
        self.state.lock().stays_here = true;
    }
}

impl HoldState {
    fn may_pass(&self, now: Time) -> bool {
        let left = self.renewal.valid_until().since(now);
        self.count == 1
            && !self.is_leaked
            && !self.stays_here
            && self.renewal.is_watched()
            && !self.has_late_elsewhere
            && !self.renewal.is_over()
            && !self.renewal.is_asking()
            && self.renewal.lease().length() / 2 < left
    }

    /// Ends this state, and returns that of the next hold.
    fn pass(&mut self, now: Time, watch: ClaimWatch) -> HoldState {
        let next = HoldState {
            renewal: self.renewal.clone(),
            count: 1,
            statements: std::mem::replace(&mut self.statements, Statements::new()),
            is_leaked: false,
            is_told: true,
            claims: self.claims.clone(),
            watch,
            late: std::mem::take(&mut self.late),
            has_late_elsewhere: false,
            stays_here: false,
            continued: Vec::new(),
            beside: None,
            waiting: Watchers::default(),
            watching: Watchers::default(),
        };
        self.count = 0;
        let status = self.renewal.begin_release(now);
        debug_assert_eq!(status, Status::Held);
        next
    }
}
