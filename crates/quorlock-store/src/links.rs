//! The connections of a store in a database.

use std::array;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::{FutureExt, Shared};
use quorlock_core::transport::{Cause, TransportError};

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// How many connections carry calls, where each carries one at a time.
const LINKS: usize = 8;

/// A connection.
pub(crate) trait Session: Sized + Send + Sync + 'static {
    /// What it is connected to.
    type Target: Clone + Send + Sync;

    /// Connects.
    fn open(target: Self::Target) -> impl Future<Output = Result<Self, TransportError>> + Send;

    /// Whether it carries no more calls.
    fn has_ended(&self) -> bool;
}

/// The connections of a store. A database executes the calls of one connection one after another, and each write waits for
/// the disk, so there are several; but no more than calls were under way at once, because a new one takes many round trips.
pub(crate) struct Links<S: Session, const N: usize = LINKS> {
    target: S::Target,
    links: [Link<S>; N],
}

/// One place for a connection, which is made again when it has ended.
struct Link<S> {
    opening: Mutex<Option<Opening<S>>>,
    /// The number of calls that use it.
    calls: AtomicUsize,
}

/// A connection that a call uses.
pub(crate) struct Lent<'a, S> {
    session: Arc<S>,
    _using: Using<'a>,
}

impl<S> Deref for Lent<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.session
    }
}

/// A call of a connection, until it is dropped.
struct Using<'a>(&'a AtomicUsize);

impl Drop for Using<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection, or the task that makes it. The task goes on when its callers have stopped waiting: otherwise a server that
/// is slower than a call would never be connected to.
type Opening<S> = Shared<Pin<Box<dyn Future<Output = Opened<S>> + Send>>>;

type Opened<S> = Result<Arc<S>, TransportError>;

impl<S: Session, const N: usize> Links<S, N> {
    pub(crate) fn new(target: S::Target) -> Self {
        let link = |_| Link {
            opening: Mutex::default(),
            calls: AtomicUsize::default(),
        };
        Links {
            target,
            links: array::from_fn(link),
        }
    }

    /// Returns the first connection without a call, or else the one with the fewest. It is made if it is not there.
    pub(crate) async fn session(&self) -> Result<Lent<'_, S>, TransportError> {
        let calls = |link: &&Link<S>| link.calls.load(Ordering::Relaxed);
        let link = self.links.iter().min_by_key(calls);
        let link = link.expect("BUG: there are links");
        link.calls.fetch_add(1, Ordering::Relaxed);
        let using = Using(&link.calls);
        let session = link.session(&self.target).await?;
        Ok(Lent {
            session,
            _using: using,
        })
    }
}

impl<S: Session> Link<S> {
    /// Returns the current connection, or a new one.
    async fn session(&self, target: &S::Target) -> Opened<S> {
        let opening = {
            let mut current = self.opening.lock();
            let has_ended = |opened: &Opened<S>| match opened {
                Ok(session) => session.has_ended(),
                Err(_) => true,
            };
            match current.as_ref() {
                Some(opening) if !opening.peek().is_some_and(has_ended) => opening.clone(),
                _ => current.insert(Self::open(target)).clone(),
            }
        };
        opening.await
    }

    fn open(target: &S::Target) -> Opening<S> {
        let target = target.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "a connection outlives its first caller"
        )]
        let task = tokio::spawn(async move { S::open(target).await.map(Arc::new) });
        let opened = async move {
            // Nothing of the call was sent, so what fails here is definite.
            match task.await {
                Ok(opened) => opened,
                Err(_) => Err(TransportError::definite(
                    Cause::Closed,
                    "the runtime has ended",
                )),
            }
        };
        let opened: Pin<Box<dyn Future<Output = Opened<S>> + Send>> = Box::pin(opened);
        opened.shared()
    }
}
