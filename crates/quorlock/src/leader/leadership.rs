//! One term of a leader.

use std::fmt;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use quorlock_core::fencing::Token;
use quorlock_core::owner::OwnerId;
use quorlock_core::renewal::Status;

use crate::guard::{Guard, LostSignal, ValidityWatch};
use crate::shared::client::Client;
use crate::shared::hold::Hold;
use crate::sync::atomic::{AtomicBool, Ordering};

/// One term of a leader: its fencing token, and whether it still lasts. Cheap to clone, and can be sent to any task.
///
/// It does not keep the leadership, which ends with the [`Candidacy`](crate::Candidacy) that won it, or with the
/// future of [`run_while_leader`](crate::Candidate::run_while_leader). A term that is over stays over, even while the
/// same candidate leads in a later one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use quorlock::{EmbeddedNode, Locks};
/// # let locks = Locks::on_node(EmbeddedNode::new())?;
/// let candidate = locks.leader("scheduler");
/// let term = candidate.run_while_leader(async |leadership| {
///     assert!(leadership.is_leading());
///     leadership.term() // goes with every write
/// });
/// println!("led in term {}", term.await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Leadership {
    client: Arc<Client>,
    hold: Arc<Hold>,
    resignation: Arc<Resignation>,
}

/// The leader's wish to step down, and the waker of its candidacy.
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

    /// Returns the fencing token of the term, which is larger than that of every earlier leader in any process.
    ///
    /// It is the fencing token of the lock ([`Guard::fencing_token`]). Send it to the resource with every write. A
    /// resource that rejects terms smaller than the largest it has seen is safe even from a leader that was suspended
    /// and does not know that its term is over.
    #[must_use]
    pub fn term(&self) -> Token {
        self.hold.token(0)
    }

    /// Returns the identity under which the nodes store the leader. [`LeaderView::Led`](crate::LeaderView::Led) shows
    /// it as text.
    #[must_use]
    pub fn owner_id(&self) -> OwnerId {
        self.hold.owner
    }

    /// Returns `true` if the candidate leads in this term. No request is sent.
    ///
    /// It becomes false before a node may let another candidate win, and when [`Leadership::step_down`] is called.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        !self.is_resigned() && self.hold.status(self.client.now()) == Status::Held
    }

    /// Returns how long the term stays valid from now on without another renewal; zero if it is over.
    #[must_use]
    pub fn validity(&self) -> Duration {
        if !self.is_leading() {
            return Duration::ZERO;
        }
        let now = self.client.now();
        self.hold.valid_until().since(now)
    }

    /// Returns a future that is ready when the term is over. It is ready by the end of the validity at the latest,
    /// even if no node answers.
    pub fn lost(&self) -> LostSignal {
        LostSignal::new(self.client.clone(), self.hold.clone())
    }

    /// Returns a watch that reports when the end of the term's validity moves, later or earlier. See
    /// [`Guard::watch_validity`].
    #[must_use]
    pub fn watch_validity(&self) -> ValidityWatch {
        ValidityWatch::new(self.client.clone(), self.hold.clone())
    }

    /// Ends the term on purpose. The candidate may win again after its [rest](crate::Candidate::rest).
    ///
    /// Stop the work first: [`Leadership::is_leading`] is false from now on, and the name is released at the next
    /// poll of the candidacy. [`run_while_leader`](crate::Candidate::run_while_leader) drops its work before it
    /// releases. The call has no effect in a term that is over.
    pub fn step_down(&self) {
        // Store the wish before waking. If the order were reversed, the candidacy could register its waker and read
        // "no wish" between the two, and sleep although the leader steps down.
        self.resignation.is_wished.store(true, Ordering::Release);
        self.resignation.candidacy.wake();
    }

    /// Whether the leader has stepped down; otherwise the task is woken when it does.
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
