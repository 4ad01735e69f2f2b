//! The order of one owner's acquisitions that share a name.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use quorlock_core::name::Name;
use quorlock_core::time::Time;

use crate::mutex::Mutex;
use crate::shared::client::Client;
use crate::shared::keeper::Keeper;
use crate::shared::layout::Layout;
use crate::shared::waiters::{DueTurn, FirstInLine, Relief};

/// The names at which one owner has acquisitions in progress.
///
/// Of two acquisitions that share a name, in any modes, the later one waits here until the earlier one has ended, and
/// only then looks at the owner's holds. Otherwise task A could request the write lock and task B the read lock of
/// one name, for the same owner. If nodes 1 and 2 grant A, and nodes 3 and 4 grant B, each is refused by the other's
/// claim, and the owner waits for itself.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Lines>);

/// The acquisitions in line at each name. A ticket joins the lines of all of its names at once. So of two that share
/// several names, the same one is in front everywhere, and they cannot deadlock.
type Lines = BTreeMap<Name, VecDeque<Arc<Ticket>>>;

/// The place of one acquisition in the lines of all of its names. It leaves the lines on drop.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Ticket>);

/// The state that an acquisition shares with those behind it and with the keeper.
#[derive(Debug)]
struct Ticket {
    turns: Arc<Turns>,
    keeper: Arc<Keeper>,
    names: Box<[Name]>,
    /// If both are needed, it is locked after the lines.
    attendance: Mutex<Attendance>,
}

#[derive(Debug, Default)]
struct Attendance {
    waker: Option<Waker>,
    /// How often the acquisition was polled.
    polls: u64,
    /// Whether it was woken and has not been polled since.
    is_due: bool,
    /// Whether it is being polled right now.
    is_here: bool,
    is_watched: bool,
    /// Whether a `try_acquire` was refused because of it.
    is_in_the_way: bool,
    /// Whether it was passed over: it was woken and not polled, and is in no line any more.
    is_passed_over: bool,
}

/// Why an acquisition gets no turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoTurn {
    /// Its wait is over.
    Late,
    /// Its client was closed.
    Closed,
}

/// The state of a waiter when it is polled.
enum Came {
    /// It is the first in the line of each of its names.
    First,
    Behind,
    PassedOver,
}

impl Turns {
    /// Waits until no earlier acquisition shares a name with this lock, but no longer than until `give_up_at`.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        layout: &Layout,
        client: &Client,
        give_up_at: Time,
    ) -> Result<Turn, NoTurn> {
        let mut timer = client.runtime.timer();
        let mut turn = self.join(layout, client);
        poll_fn(|cx| {
            loop {
                if client.is_closed() {
                    return Poll::Ready(Err(NoTurn::Closed));
                }
                match turn.0.come(cx) {
                    Came::First => return Poll::Ready(Ok(())),
                    Came::Behind => {
                        let late = timer.poll_until(cx, give_up_at);
                        return late.map(|()| Err(NoTurn::Late));
                    }
                    Came::PassedOver => turn = self.join(layout, client),
                }
            }
        })
        .await?;
        Ok(turn)
    }

    /// Returns the turn, if no other acquisition shares a name with this lock.
    pub(crate) fn try_begin(self: &Arc<Self>, layout: &Layout, client: &Client) -> Option<Turn> {
        let in_front = {
            let mut lines = self.0.lock();
            let in_front: Vec<_> = layout
                .names()
                .filter_map(|name| lines.get(name)?.front().cloned())
                .collect();
            if in_front.is_empty() {
                let ticket = self.ticket(layout, client);
                ticket.push(&mut lines);
                return Some(Turn(ticket));
            }
            in_front
        };
        for ticket in in_front {
            ticket.attendance.lock().is_in_the_way = true;
            ticket.watch_if_due();
        }
        None
    }

    fn join(self: &Arc<Self>, layout: &Layout, client: &Client) -> Turn {
        let ticket = self.ticket(layout, client);
        let in_front = ticket.push(&mut self.0.lock());
        // Start watching the tickets in front now: while they were alone, their wake-ups were not watched.
        in_front.iter().for_each(Ticket::watch_if_due);
        Turn(ticket)
    }

    fn ticket(self: &Arc<Self>, layout: &Layout, client: &Client) -> Arc<Ticket> {
        let names: BTreeSet<&Name> = layout.names().collect();
        Arc::new(Ticket {
            turns: self.clone(),
            keeper: client.keeper.clone(),
            names: names.into_iter().cloned().collect(),
            attendance: Mutex::default(),
        })
    }
}

impl Turn {
    /// Polls the work of the turn. Ready with `None` if the turn passed to another acquisition because this one was
    /// woken and not polled; the caller must then drop the work that it has begun.
    pub(crate) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        begun: Pin<&mut impl Future<Output = T>>,
    ) -> Poll<Option<T>> {
        if !self.0.begin_poll(cx) {
            return Poll::Ready(None);
        }
        let waker = Waker::from(self.0.clone());
        let polled = begun.poll(&mut Context::from_waker(&waker));
        self.0.attendance.lock().is_here = false;
        polled.map(Some)
    }
}

impl Ticket {
    /// Joins the lines of its names. Returns the tickets directly in front of it.
    fn push(self: &Arc<Self>, lines: &mut Lines) -> Vec<Arc<Ticket>> {
        let mut in_front = Vec::new();
        for name in &self.names {
            let line = lines.entry(name.clone()).or_default();
            in_front.extend(line.back().cloned());
            line.push_back(self.clone());
        }
        in_front
    }

    /// Leaves the lines of its names. Returns the tickets that are now first.
    fn remove(&self, lines: &mut Lines) -> Vec<Arc<Ticket>> {
        let mut next = Vec::new();
        for name in &self.names {
            let Some(line) = lines.get_mut(name) else {
                continue;
            };
            let was_first = is_in(line.front(), self);
            line.retain(|other| !std::ptr::eq(&**other, self));
            if line.is_empty() {
                lines.remove(name);
            } else if was_first {
                next.extend(line.front().cloned());
            }
        }
        next
    }

    /// Handles a poll of a waiter: reports whether it has the turn.
    fn come(&self, cx: &Context<'_>) -> Came {
        let lines = self.turns.0.lock();
        let mut attendance = self.attendance.lock();
        if attendance.is_passed_over {
            return Came::PassedOver;
        }
        attendance.arrive(cx);
        let mut fronts = self.names.iter().map(|name| lines.get(name)?.front());
        if fronts.all(|front| is_in(front, self)) {
            Came::First
        } else {
            Came::Behind
        }
    }

    /// Handles a poll of the work; returns false if the turn was passed on.
    fn begin_poll(&self, cx: &Context<'_>) -> bool {
        let mut attendance = self.attendance.lock();
        attendance.is_here = !attendance.is_passed_over;
        attendance.arrive(cx);
        attendance.is_here
    }

    /// Whether other acquisitions are blocked while this one is woken and not polled.
    fn has_others(&self, lines: &Lines, attendance: &Attendance) -> bool {
        let mut lines = self.names.iter().filter_map(|name| lines.get(name));
        attendance.is_in_the_way || lines.any(|line| !is_in(line.back(), self))
    }

    /// If it is due and blocks others, tells the keeper, which passes it over unless it is polled in time.
    fn watch_if_due(self: &Arc<Self>) {
        let is_news = {
            let lines = self.turns.0.lock();
            let mut attendance = self.attendance.lock();
            let is_needed = attendance.is_due && !attendance.is_passed_over;
            let is_news =
                is_needed && !attendance.is_watched && self.has_others(&lines, &attendance);
            attendance.is_watched |= is_news;
            is_news
        };
        if is_news {
            self.keeper.watch_queue(self.clone());
        }
        if self.keeper.is_dead() {
            // A dead keeper passes over no ticket. The acquisitions behind this one notice by themselves that the
            // client has ended.
            self.wake_all();
        }
    }

    fn wake_all(&self) {
        let all: Vec<_> = {
            let lines = self.turns.0.lock();
            let lines = self.names.iter().filter_map(|name| lines.get(name));
            lines.flatten().cloned().collect()
        };
        for ticket in all {
            ticket.wake_task();
        }
    }

    fn wake_task(&self) {
        let waker = self.attendance.lock().waker.clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Attendance {
    fn arrive(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        self.polls += 1;
        self.is_due = false;
    }
}

fn is_in(place: Option<&Arc<Ticket>>, ticket: &Ticket) -> bool {
    place.is_some_and(|other| std::ptr::eq(&**other, ticket))
}

/// Wakes the acquisition: it has the turn, or its work can continue.
///
/// If A has the turn, B waits behind it, and A's task is woken but does something else with its thread, the owner
/// waits for itself. So the keeper watches a due ticket that blocks others.
impl Wake for Ticket {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.attendance.lock().is_due = true;
        self.wake_task();
        self.watch_if_due();
    }
}

impl FirstInLine for Ticket {
    fn due(&self) -> DueTurn {
        let attendance = self.attendance.lock();
        DueTurn(attendance.is_due.then_some(attendance.polls))
    }

    fn relieve(&self, before: DueTurn) -> Relief {
        let mut lines = self.turns.0.lock();
        let mut attendance = self.attendance.lock();
        if !attendance.is_due || !self.has_others(&lines, &attendance) {
            attendance.is_watched = false;
            return Relief::Over;
        }
        let due = DueTurn(Some(attendance.polls));
        if due != before || attendance.is_here {
            return Relief::On(due);
        }
        attendance.is_passed_over = true;
        drop(attendance);
        let next = self.remove(&mut lines);
        drop(lines);
        // Its task may be polling right now. Without another wake-up it would wait in a line that it has left.
        self.wake_task();
        next.iter().for_each(Wake::wake_by_ref);
        Relief::Over
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut lines = self.0.turns.0.lock();
            self.0.attendance.lock().is_passed_over = true;
            self.0.remove(&mut lines)
        };
        next.iter().for_each(Wake::wake_by_ref);
    }
}
