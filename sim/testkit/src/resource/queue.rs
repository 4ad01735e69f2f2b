//! A queue with at-least-once delivery.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::rc::Rc;
use std::time::Duration;

use super::{CallError, Service, ServiceClient};
use crate::context::Context;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::world::with;

/// A queue that delivers each item at least once. It delivers an item again if the item was not confirmed in time, and
/// after a crash.
///
/// The items survive crashes. The record of which items are out for delivery does not.
pub struct Queue<T> {
    state: Rc<RefCell<QueueItems<T>>>,
    service: Service<QueueAsk<T>, QueueDone<T>>,
}

#[derive(Debug)]
struct QueueItems<T> {
    items: VecDeque<QueueItem<T>>,
    next: u64,
    patience: SimTime,
}

#[derive(Debug)]
struct QueueItem<T> {
    number: u64,
    value: T,
    attempts: u32,
    /// When the delivery of the item times out, in nanoseconds of true time; 0 if the item has not been delivered
    /// since it was pushed or since the last crash.
    out_until: u64,
}

enum QueueAsk<T> {
    Push(T),
    Receive,
    Confirm(u64),
}

impl<T: Debug> Debug for QueueAsk<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueAsk::Push(value) => write!(f, "push {value:?}"),
            QueueAsk::Receive => write!(f, "receive"),
            QueueAsk::Confirm(number) => write!(f, "confirm {number}"),
        }
    }
}

#[derive(Debug)]
enum QueueDone<T> {
    Delivered(Delivery<T>),
    Empty,
    Taken,
}

/// An item that was delivered. The queue delivers it again unless it is [confirmed](QueueClient::confirm) in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery<T> {
    /// The item that was pushed.
    pub value: T,
    /// How often the item has been delivered, including this time. Starts at 1.
    pub attempt: u32,
    number: u64,
}

impl<T: Clone> QueueItems<T> {
    fn answer(&mut self, ask: QueueAsk<T>) -> QueueDone<T> {
        let now = with(|world| world.now());
        match ask {
            QueueAsk::Push(value) => {
                self.push(value);
                QueueDone::Taken
            }
            QueueAsk::Receive => {
                let until = now + self.patience.as_nanos();
                let free = self.items.iter_mut().find(|item| item.out_until <= now);
                free.map_or(QueueDone::Empty, |item| {
                    item.attempts += 1;
                    item.out_until = until;
                    QueueDone::Delivered(Delivery {
                        value: item.value.clone(),
                        attempt: item.attempts,
                        number: item.number,
                    })
                })
            }
            QueueAsk::Confirm(number) => {
                self.items.retain(|item| item.number != number);
                QueueDone::Taken
            }
        }
    }

    fn push(&mut self, value: T) {
        self.next += 1;
        self.items.push_back(QueueItem {
            number: self.next,
            value,
            attempts: 0,
            out_until: 0,
        });
    }
}

impl<T: Clone + Debug + 'static> Queue<T> {
    /// Creates an empty queue, which waits for confirmations for `patience`. The report of a failure shows this name.
    #[must_use]
    pub fn new(name: &str, patience: Duration) -> Self {
        let state = Rc::new(RefCell::new(QueueItems {
            items: VecDeque::new(),
            next: 0,
            patience: patience.into(),
        }));
        let (stored, crashed) = (Rc::clone(&state), Rc::clone(&state));
        let service = Service::new(name, move |ask| stored.borrow_mut().answer(ask));
        let service = service.on_crash(move || {
            for item in &mut crashed.borrow_mut().items {
                item.out_until = 0;
            }
        });
        Queue { state, service }
    }

    /// Adds an item that is in the queue from the beginning.
    #[must_use]
    pub fn with(self, value: T) -> Self {
        self.state.borrow_mut().push(value);
        self
    }

    /// Returns a handle for one client.
    #[must_use]
    pub fn client(&self, ctx: &Context) -> QueueClient<T> {
        QueueClient(self.service.client(ctx))
    }

    /// Returns the number of items that are not confirmed, for use by the test itself.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.borrow().items.len()
    }

    /// Returns whether all items are confirmed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A client's handle to a [`Queue`].
#[derive(Clone, Debug)]
pub struct QueueClient<T>(ServiceClient<QueueAsk<T>, QueueDone<T>>);

impl<T: Clone + Debug + 'static> QueueClient<T> {
    /// Pushes an item.
    ///
    /// # Errors
    /// Returns [`CallError`]. Without an answer, the item may be in the queue; if it is pushed again, it may be there
    /// twice.
    pub async fn push(&self, value: T) -> Result<(), CallError> {
        self.0.call(QueueAsk::Push(value)).await.map(|_| ())
    }

    /// Receives the first item that is not out for delivery, if there is one.
    ///
    /// # Errors
    /// Returns [`CallError`]. Without an answer, an item may be out for delivery; the queue delivers it again later.
    pub async fn receive(&self) -> Result<Option<Delivery<T>>, CallError> {
        Ok(match self.0.call(QueueAsk::Receive).await? {
            QueueDone::Delivered(delivery) => Some(delivery),
            QueueDone::Empty | QueueDone::Taken => None,
        })
    }

    /// Confirms a delivery, so that the item is not delivered again.
    ///
    /// # Errors
    /// Returns [`CallError`]. Without an answer, the item may be delivered again.
    pub async fn confirm(&self, delivery: &Delivery<T>) -> Result<(), CallError> {
        let confirm = QueueAsk::Confirm(delivery.number);
        self.0.call(confirm).await.map(|_| ())
    }
}

impl<T> Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.service).finish()
    }
}
