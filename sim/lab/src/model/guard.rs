//! The guard of a lock of a variant.

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use quorlock::runtime::Runtime;
use quorlock::{ConfirmError, OwnerId, ReleaseError, Token};

use super::entry;
use super::hold::ModelHold;
use super::orphans::Orphans;
use super::release::Release;
use quorlock_sim_plan::variant::Flaw;

/// Holds a lock of a variant. Dropping it releases the lock in the background.
pub struct ModelGuard {
    hold: Rc<ModelHold>,
    is_released: bool,
}

impl ModelGuard {
    pub(super) fn new(hold: &Rc<ModelHold>) -> Self {
        hold.enter();
        ModelGuard {
            hold: Rc::clone(hold),
            is_released: false,
        }
    }

    pub(crate) fn hold_count(&self) -> u32 {
        self.hold.count()
    }

    pub(crate) async fn reenter(&self) -> Result<ModelGuard, ConfirmError> {
        entry::enter(&self.hold).await?;
        Ok(ModelGuard::new(&self.hold))
    }

    pub(crate) async fn extend(&self, lease: Duration) -> Result<(), ConfirmError> {
        entry::extend(&self.hold, lease).await
    }

    /// Runs work while the lock is held, then releases it. Returns `None` if the lock was lost before the work ended.
    pub(crate) async fn while_held<F: Future>(self, work: F) -> Option<F::Output> {
        let hold = &self.hold;
        let left = || hold.valid_until().since(hold.client.clock());
        let client = &hold.client;
        let output = client.run_while(|| hold.is_held(), left, work).await?;
        let _ = self.release().await;
        Some(output)
    }

    pub(crate) async fn release(mut self) -> Result<(), ReleaseError> {
        let released = self.begin_release();
        let deadline = self.hold.client.now() + self.hold.client.member_timeout(self.hold.lease);
        let mut timer = self.hold.client.runtime().timer();
        let was_ours = poll_fn(|cx| match released.get() {
            Some(was_ours) => Poll::Ready(was_ours),
            None => {
                released.1.replace(Some(cx.waker().clone()));
                timer.poll_until(cx, deadline).map(|()| None)
            }
        });
        let was_ours = was_ours.await;
        let names = self.hold.layout.text();
        match was_ours {
            Some(true) => Ok(()),
            Some(false) => Err(ReleaseError::NotHeld { names }),
            None => Err(ReleaseError::Unconfirmed {
                names,
                nodes: Vec::new(),
            }),
        }
    }

    /// Ends this guard and releases it on the nodes in the background. The task that waits for the release may then be
    /// dropped.
    fn begin_release(&mut self) -> Rc<Released> {
        self.is_released = true;
        let (hold, left) = (Rc::clone(&self.hold), self.hold.leave());
        let released: Rc<Released> = Rc::default();
        let report = Rc::clone(&released);
        self.hold.client.spawn(async move {
            report.set(release(&hold, left).await);
        });
        released
    }
}

impl crate::client::hold::Hold for ModelGuard {
    fn id(&self) -> OwnerId {
        self.hold.id
    }

    fn is_held(&self) -> bool {
        self.hold.is_held()
    }

    fn each_name(&self, f: &mut dyn FnMut(&str)) {
        self.hold
            .layout
            .names
            .iter()
            .for_each(|name| f(&name.text()));
    }

    fn token_of(&self, name: &str) -> Option<Token> {
        let mut names = self.hold.layout.names.iter().zip(&self.hold.tokens);
        let found = names.find(|(known, _)| known.as_bytes() == name.as_bytes());
        found.map(|(_, token)| *token)
    }
}

/// The result of a release, and the waker of the task that waits for it.
#[derive(Default)]
struct Released(Cell<Option<Option<bool>>>, Cell<Option<Waker>>);

impl Released {
    fn get(&self) -> Option<Option<bool>> {
        self.0.get()
    }

    fn set(&self, was_ours: Option<bool>) {
        self.0.set(Some(was_ours));
        if let Some(waker) = self.1.take() {
            waker.wake();
        }
    }
}

/// Returns whether a threshold of members had the claim, or `None` if too few of them answered.
async fn release(hold: &ModelHold, left: u32) -> Option<bool> {
    let release = Release {
        client: Rc::clone(&hold.client),
        layout: Rc::clone(&hold.layout),
        owner: hold.owner,
        left,
    };
    if left == 0 && hold.client.has(Flaw::ReleaseStopsAtLoss) {
        let lost = release.tell_until_lost().await;
        if let Some(lost) = lost {
            keep_parts_after(hold, lost);
        }
        return Some(lost.is_none());
    }
    let said = release.tell(0..hold.layout.members.len()).await;
    if hold.layout.is_quorum(|member| said.ours.contains(&member)) {
        Some(true)
    } else if hold
        .layout
        .is_quorum(|member| said.answered.contains(&member))
    {
        Some(false)
    } else {
        None
    }
}

/// Keeps the claims of the members after this one, each renewed by a watchdog.
fn keep_parts_after(hold: &ModelHold, lost: usize) {
    let orphans = Orphans {
        client: &hold.client,
        layout: &hold.layout,
        owner: hold.owner,
        lease: hold.lease,
    };
    for (member, index) in hold.layout.members.iter().zip(0..).skip(lost + 1) {
        orphans.keep(index, hold.token(member.group));
    }
}

impl Drop for ModelGuard {
    fn drop(&mut self) {
        if !self.is_released && !self.hold.client.has(Flaw::DropKeepsHold) {
            self.begin_release();
        }
    }
}

impl fmt::Debug for ModelGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("owner", &self.hold.owner)
            .finish_non_exhaustive()
    }
}
