//! One term of a leader.

use std::fmt;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use quorlock_core::fencing::Token;
use quorlock_core::owner::OwnerId;
use quorlock_core::renewal::Status;

use crate::guard::{Guard, LostSignal};
use crate::shared::client::Client;
use crate::shared::hold::Hold;
use crate::sync::atomic::{AtomicBool, Ordering};

/// One term of a leader: what it has to show, and whether it still lasts. Cheap to clone, and it may go to any task.
///
/// It does not hold the leadership: that ends with the [`Candidacy`](crate::Candidacy) that won it, or with the future of
/// [`run_while_leader`](crate::Candidate::run_while_leader). A term that is over stays over, also while the same candidate leads in a later one.
#[derive(Clone)]
pub struct Leadership {
    client: Arc<Client>,
    hold: Arc<Hold>,
    resignation: Arc<Resignation>,
}

/// The wish of a leader to step down, and the candidacy that hears of it.
#[derive(Default)]
struct Resignation {
    is_wished: AtomicBool,
    candidacy: AtomicWaker,
}

impl Leadership {
    pub(super) fn new(client: Arc<Client>, guard: &Guard) -> Self {
        Leadership {
            client,
            hold: guard.hold().clone(),
            resignation: Arc::default(),
        }
    }

    /// The term: larger than that of every leader before, whichever candidate or process that was.
    ///
    /// It is the fencing token of the lock ([`Guard::fencing_token`]). Give it to the resource with every write: a
    /// resource that rejects smaller terms than it has seen is safe even from a leader that was stopped and does not know
    /// that its time is over.
    #[must_use]
    pub fn term(&self) -> Token {
        self.hold.token(0)
    }

    /// Under which identity the nodes have the leader. [`LeaderView::Led`](crate::LeaderView::Led) shows it as text.
    #[must_use]
    pub fn owner_id(&self) -> OwnerId {
        self.hold.owner
    }

    /// Whether the candidate leads in this term. No node is asked.
    ///
    /// It becomes false before a node may let another candidate win, and once [`Leadership::step_down`] was called.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        !self.is_resigned() && self.hold.status(self.client.now()) == Status::Held
    }

    /// For how long the candidate may rely on leading from now on, if nothing else happens; zero when the term is over.
    #[must_use]
    pub fn validity(&self) -> Duration {
        if !self.is_leading() {
            return Duration::ZERO;
        }
        let now = self.client.now();
        self.hold.valid_until().since(now)
    }

    /// Ready when the term is over, and how; at latest when its validity ends, even if no node answers.
    pub fn lost(&self) -> LostSignal {
        LostSignal::new(self.client.clone(), self.hold.clone())
    }

    /// Ends the term on purpose. The candidate stays one, and may win again after its [rest](crate::Candidate::rest).
    ///
    /// [`Leadership::is_leading`] is false from now on, and the name is released as soon as the candidacy is polled: stop the work first.
    /// [`run_while_leader`](crate::Candidate::run_while_leader) drops its work before it releases. In a term that is over this does nothing.
    pub fn step_down(&self) {
        // First the wish, then the waker: a candidacy that registers in between sees the wish.
        self.resignation.is_wished.store(true, Ordering::Release);
        self.resignation.candidacy.wake();
    }

    /// Whether the leader wishes to step down; otherwise the task is woken when it does.
    pub(super) fn poll_resigned(&self, cx: &Context<'_>) -> bool {
        self.resignation.candidacy.register(cx.waker());
        self.is_resigned()
    }

    fn is_resigned(&self) -> bool {
        self.resignation.is_wished.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("name", &self.hold.layout)
            .field("owner", &self.owner_id())
            .field("term", &self.term())
            .field("validity", &self.validity())
            .finish_non_exhaustive()
    }
}
