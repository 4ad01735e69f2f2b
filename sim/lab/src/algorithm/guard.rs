//! The guard of a lock of an algorithm.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use quorlock::{Name, OwnerId, ReleaseError, Token};

use super::{AlgorithmHold, LockClient, Released};
use crate::client::hold::Hold;

/// Holds a lock of an algorithm. Dropping it releases the lock in the background.
#[derive(Debug)]
pub struct AlgorithmGuard(Rc<GuardState>);

#[derive(Debug)]
struct GuardState {
    client: Rc<LockClient>,
    name: Name,
    /// The identity of the hold in the history.
    id: OwnerId,
    hold: Rc<dyn AlgorithmHold>,
    is_released: Cell<bool>,
}

impl AlgorithmGuard {
    pub(super) fn new(client: &Rc<LockClient>, name: Name, hold: Rc<dyn AlgorithmHold>) -> Self {
        AlgorithmGuard(Rc::new(GuardState {
            client: Rc::clone(client),
            name,
            id: client.next_hold(),
            hold,
            is_released: Cell::new(false),
        }))
    }

    /// Renews the hold at this interval until it is released or lost.
    pub(super) fn watch(&self, interval: Duration) {
        let state = Rc::clone(&self.0);
        self.0.client.spawn(async move {
            loop {
                state
                    .client
                    .sleep_until(state.client.now() + interval)
                    .await;
                if !state.is_held() {
                    return;
                }
                state.hold.renew().await;
            }
        });
    }

    pub(crate) async fn release(self) -> Result<(), ReleaseError> {
        self.0.is_released.set(true);
        let names = self.0.name.text().into_owned();
        match self.0.hold.release().await {
            Released::Free => Ok(()),
            Released::NotHeld => Err(ReleaseError::NotHeld { names }),
            Released::Unconfirmed => Err(ReleaseError::Unconfirmed {
                names,
                nodes: Vec::new(),
            }),
        }
    }

    /// Runs work while the lock is held, then releases it. Returns `None` if the lock was lost before the work ended.
    pub(crate) async fn while_held<F: Future>(self, work: F) -> Option<F::Output> {
        let state = &self.0;
        let left = || state.hold.valid_until().since(state.client.now());
        let output = state
            .client
            .run_while(|| state.is_held(), left, work)
            .await?;
        let _ = self.release().await;
        Some(output)
    }
}

impl GuardState {
    /// Returns whether the client may rely on the hold.
    fn is_held(&self) -> bool {
        !self.is_released.get() && self.client.now() < self.hold.valid_until()
    }
}

impl Hold for AlgorithmGuard {
    fn id(&self) -> OwnerId {
        self.0.id
    }

    fn is_held(&self) -> bool {
        self.0.is_held()
    }

    fn each_name(&self, f: &mut dyn FnMut(&str)) {
        f(&self.0.name.text());
    }

    fn token_of(&self, name: &str) -> Option<Token> {
        (self.0.name.as_bytes() == name.as_bytes()).then(|| Token(self.0.hold.token()))
    }
}

impl Drop for AlgorithmGuard {
    fn drop(&mut self) {
        if !self.0.is_released.replace(true) {
            let state = Rc::clone(&self.0);
            self.0.client.spawn(async move {
                state.hold.release().await;
            });
        }
    }
}
