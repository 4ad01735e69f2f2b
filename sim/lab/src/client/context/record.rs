//! Operations that are recorded in the history.

use std::time::Duration;

use quorlock::{AcquireError, ConfirmError, OwnerId, ReleaseError};

use super::Context;
use crate::client::subject::{Hold, Subject, SubjectGuard};
use quorlock_sim::context::Cancelled;
use quorlock_sim_world::engine::clients;
use quorlock_sim_world::history::{
    Accepted, Access, Action, Grant, HoldId, NameId, Operation, Outcome,
};
use quorlock_sim_world::seam::store::Writing;
use quorlock_sim_world::world::store::StoreRequest;
use quorlock_sim_world::world::with;

/// A guard, with the id of its hold in the history.
#[derive(Debug)]
pub struct HeldLock {
    /// The guard of the hold.
    pub guard: SubjectGuard,
    pub(crate) hold: HoldId,
    pub(crate) access: Access,
    /// The write hold of the same owner, if this is a read hold beside it.
    pub(crate) under: HoldId,
}

impl HeldLock {
    pub(super) fn of(guard: SubjectGuard, hold: HoldId, access: Access) -> Self {
        HeldLock {
            guard,
            hold,
            access,
            under: HoldId::NONE,
        }
    }

    /// Marks this read hold as one beside a write hold of the same owner.
    #[must_use]
    pub fn under(mut self, writing: &HeldLock) -> Self {
        self.under = writing.hold;
        self
    }
}

/// The index of an operation that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun(usize);

impl Context {
    pub(super) fn begin(&self, action: Action, names: u64, hold: HoldId, token: u64) -> Begun {
        let process = self.who().process();
        with(|world| {
            let invoked = world.moment(self.who());
            world.history.operations.push(Operation {
                process,
                action,
                names,
                hold,
                invoked,
                completed: u64::MAX,
                outcome: Outcome::Indeterminate,
                token,
            });
            Begun(world.history.operations.len() - 1)
        })
    }

    /// Records that an operation has won a hold with this token.
    pub(super) fn end_with(&self, begun: Begun, hold: HoldId, token: u64) {
        self.end(begun, Outcome::Ok);
        with(|world| {
            if let Some(operation) = world.history.operations.get_mut(begun.0) {
                operation.hold = hold;
                operation.token = token;
            }
        });
    }

    pub(super) fn end(&self, begun: Begun, outcome: Outcome) {
        with(|world| {
            let completed = world.moment(self.who());
            if let Some(operation) = world.history.operations.get_mut(begun.0) {
                operation.completed = completed;
                operation.outcome = outcome;
            }
        });
    }

    /// Records that an acquisition succeeded, either with a new hold or, unless it `is_new`, by re-entering an existing one.
    pub(super) fn won(
        &self,
        begun: Begun,
        guard: &SubjectGuard,
        access: Access,
        is_new: bool,
    ) -> HoldId {
        let process = self.who().process();
        let (id, token) = (guard.id(), guard.token());
        with(|world| {
            let won = world.moment(self.who());
            let hold = match is_new {
                true => clients::new_hold(world, self.who(), id, token),
                false => clients::hold_of(world, self.who(), id, token),
            };
            let history = &mut world.history;
            let mut invoked = won;
            if let Some(operation) = history.operations.get_mut(begun.0) {
                invoked = operation.invoked;
                operation.completed = won;
                operation.outcome = Outcome::Ok;
                operation.hold = hold.id();
                operation.token = token;
            }
            if hold.is_new() {
                guard.each_name(&mut |text| {
                    let token = guard.token_of(text);
                    let name = history.name(text);
                    history.grants.push(Grant {
                        hold: hold.id(),
                        process,
                        owner: id,
                        name,
                        invoked,
                        won,
                        token: token.map_or(0, |token| token.0),
                        access,
                    });
                });
            }
            hold.id()
        })
    }

    /// Returns the names of a guard as a bit mask.
    pub(super) fn mask(guard: &SubjectGuard) -> u64 {
        with(|world| {
            let mut mask = 0;
            guard.each_name(&mut |name| mask |= bit(world.history.name(name)));
            mask
        })
    }

    /// Acquires a lock, and records the operation. `names` are the names of the lock.
    ///
    /// # Errors
    /// Returns the same errors as [`quorlock::Lock::acquire`], or `None` if a fault of the plan cancelled the
    /// operation.
    pub async fn acquire(
        &self,
        lock: &Subject,
        names: &[NameId],
    ) -> Result<HeldLock, Option<AcquireError>> {
        let begun = self.begin(Action::Acquire, mask(names), HoldId::NONE, 0);
        match self.cancellable(lock.acquire()).await {
            Ok(Ok(guard)) => {
                let hold = self.won(begun, &guard, lock.access(), lock.is_never_entered());
                Ok(HeldLock::of(guard, hold, lock.access()))
            }
            Ok(Err(error)) => {
                self.end(begun, Outcome::Fail);
                Err(Some(error))
            }
            Err(Cancelled) => {
                self.end(begun, Outcome::Indeterminate);
                Err(None)
            }
        }
    }

    /// Tries to acquire a lock without waiting, and records the operation.
    ///
    /// # Errors
    /// Returns the same errors as [`quorlock::Lock::try_acquire`], or `None` if a fault of the plan cancelled the
    /// operation.
    pub async fn try_acquire(
        &self,
        lock: &Subject,
        names: &[NameId],
    ) -> Result<Option<HeldLock>, Option<AcquireError>> {
        let begun = self.begin(Action::Try, mask(names), HoldId::NONE, 0);
        match self.cancellable(lock.try_acquire()).await {
            Ok(Ok(Some(guard))) => {
                let hold = self.won(begun, &guard, lock.access(), lock.is_never_entered());
                Ok(Some(HeldLock::of(guard, hold, lock.access())))
            }
            Ok(Ok(None)) => {
                self.end(begun, Outcome::Fail);
                Ok(None)
            }
            Ok(Err(error)) => {
                self.end(begun, Outcome::Fail);
                Err(Some(error))
            }
            Err(Cancelled) => {
                self.end(begun, Outcome::Indeterminate);
                Err(None)
            }
        }
    }

    /// Re-enters a hold through its guard, and records the operation.
    ///
    /// # Errors
    /// Returns the same errors as [`quorlock::Guard::reenter`], or `None` if a fault of the plan cancelled the
    /// operation.
    pub async fn reenter(&self, held: &HeldLock) -> Result<HeldLock, Option<ConfirmError>> {
        let names = Self::mask(&held.guard);
        let begun = self.begin(Action::Reenter, names, held.hold, held.guard.token());
        match self.cancellable(held.guard.reenter()).await {
            Ok(Ok(guard)) => {
                self.end(begun, Outcome::Ok);
                Ok(HeldLock { guard, ..*held })
            }
            Ok(Err(error)) => {
                self.end(begun, confirmed(&error));
                Err(Some(error))
            }
            Err(Cancelled) => {
                self.end(begun, Outcome::Indeterminate);
                Err(None)
            }
        }
    }

    /// Extends the lease of a hold, and records the operation.
    ///
    /// # Errors
    /// Returns the same errors as [`quorlock::Guard::extend`], or `None` if a fault of the plan cancelled the
    /// operation.
    pub async fn extend(
        &self,
        held: &HeldLock,
        lease: Duration,
    ) -> Result<(), Option<ConfirmError>> {
        let names = Self::mask(&held.guard);
        let begun = self.begin(Action::Extend, names, held.hold, held.guard.token());
        let asked = with(|world| clients::shown(world, self.who()));
        match self.cancellable(held.guard.extend(lease)).await {
            Ok(Ok(())) => {
                self.end(begun, Outcome::Ok);
                self.weigh_extension(held, lease, asked);
                Ok(())
            }
            Ok(Err(error)) => {
                self.end(begun, confirmed(&error));
                Err(Some(error))
            }
            Err(Cancelled) => {
                self.end(begun, Outcome::Indeterminate);
                Err(None)
            }
        }
    }

    /// Releases a hold, and records the operation.
    ///
    /// # Errors
    /// Returns the same errors as [`quorlock::Guard::release`], or `None` if a fault of the plan cancelled the
    /// operation.
    pub async fn release(&self, held: HeldLock) -> Result<(), Option<ReleaseError>> {
        let names = Self::mask(&held.guard);
        let begun = self.begin(Action::Release, names, held.hold, held.guard.token());
        let left = LastGuard::behind(&held);
        match self.cancellable(held.guard.release()).await {
            Ok(Ok(())) => {
                self.end(begun, Outcome::Ok);
                if let Some(left) = left {
                    self.weigh_release(&left);
                }
                Ok(())
            }
            Ok(Err(error)) => {
                let outcome = match error {
                    ReleaseError::NotHeld { .. } => Outcome::Fail,
                    _ => Outcome::Indeterminate,
                };
                self.end(begun, outcome);
                Err(Some(error))
            }
            Err(Cancelled) => {
                self.end(begun, Outcome::Indeterminate);
                Err(None)
            }
        }
    }

    /// Writes to the store under a hold, with or without its token, and records the operation. Returns `None` if a
    /// fault of the plan cancelled the write, which may still reach the store.
    pub async fn write(&self, held: &HeldLock, name: NameId, fencing: Fencing) -> Option<Accepted> {
        self.put(held, name, StoreRequest::Write, fencing).await
    }

    /// Writes a value to the store that was computed from a read at `read_at`. The write carries the hold's token, and
    /// the operation is recorded. Returns `None` if a fault of the plan cancelled it.
    pub async fn update(&self, held: &HeldLock, name: NameId, read_at: u64) -> Option<Accepted> {
        let asked = StoreRequest::Update { read_at };
        self.put(held, name, asked, Fencing::On).await
    }

    /// Reads from the store under a hold. Returns whether and when the store accepted the read, or `None` if a fault
    /// of the plan cancelled it.
    ///
    /// A read with a token is rejected like a write, and raises the largest token that the store has seen.
    pub async fn read_store(
        &self,
        held: &HeldLock,
        name: NameId,
        fencing: Fencing,
    ) -> Option<(Accepted, u64)> {
        let token = (fencing == Fencing::On).then(|| self.token_of(held, name));
        let reading = Writing::begin(self.who(), held.hold, name, StoreRequest::Read, token);
        self.cancellable(reading).await.ok()
    }

    fn token_of(&self, held: &HeldLock, name: NameId) -> u64 {
        let text = with(|world| world.history.text(name).to_owned());
        held.guard.token_of(&text).map_or(0, |token| token.0)
    }

    async fn put(
        &self,
        held: &HeldLock,
        name: NameId,
        asked: StoreRequest,
        fencing: Fencing,
    ) -> Option<Accepted> {
        let token = self.token_of(held, name);
        let begun = self.begin(Action::Write, bit(name), held.hold, token);
        let token = (fencing == Fencing::On).then_some(token);
        let writing = Writing::begin(self.who(), held.hold, name, asked, token);
        match self.cancellable(writing).await {
            Ok((accepted, _)) => {
                let outcome = match accepted {
                    Accepted::Yes => Outcome::Ok,
                    Accepted::No => Outcome::Fail,
                };
                self.end(begun, outcome);
                Some(accepted)
            }
            Err(Cancelled) => {
                self.end(begun, Outcome::Indeterminate);
                None
            }
        }
    }

    /// Records the hold count of a guard, and the number of guards that exist.
    pub fn count(&self, held: &HeldLock, expected: u32) {
        let counted = held.guard.hold_count();
        let process = self.who().process();
        with(|world| {
            let at = world.moment(self.who());
            world
                .history
                .counts
                .push(quorlock_sim_world::history::Count {
                    process,
                    hold: held.hold,
                    at,
                    counted,
                    expected,
                });
        });
    }
}

/// Whether a read or a write carries a fencing token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fencing {
    /// The request carries the token of the hold, and the store compares it.
    On,
    /// The request carries no token, and the store accepts it.
    Off,
}

fn confirmed(error: &ConfirmError) -> Outcome {
    match error {
        ConfirmError::Lost { .. } | ConfirmError::Config(_) => Outcome::Fail,
        _ => Outcome::Indeterminate,
    }
}

fn bit(name: NameId) -> u64 {
    1u64.checked_shl(u32::from(name.0)).unwrap_or(0)
}

pub(super) fn mask(names: &[NameId]) -> u64 {
    names.iter().fold(0, |mask, name| mask | bit(*name))
}

/// The state of a hold before its last guard is released.
pub(super) struct LastGuard {
    pub(super) hold: HoldId,
    pub(super) owner: OwnerId,
    pub(super) names: Vec<String>,
}

impl LastGuard {
    /// Returns the state that is checked after the release. Returns `None` if the guard is not the last one, if the
    /// lock is a variant's, or for a read or write lock, whose owner may also hold the other side.
    pub(super) fn behind(held: &HeldLock) -> Option<Self> {
        let is_plain =
            matches!(held.guard, SubjectGuard::Product(_)) && held.access == Access::Alone;
        let is_last = is_plain && held.guard.hold_count() == 1;
        let mut names = Vec::new();
        held.guard
            .each_name(&mut |name| names.push(name.to_owned()));
        is_last.then(|| LastGuard {
            hold: held.hold,
            owner: held.guard.id(),
            names,
        })
    }
}
