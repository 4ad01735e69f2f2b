//! Acquisitions through one owner take turns at each name.

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
use crate::shared::waiters::{LeaderDue, Led, Relief};

/// The names at which acquisitions of one owner are under way.
///
/// Of two that have a name in common, in whatever modes, the later waits here until the earlier has ended, and only
/// then looks at what the owner holds. Should both ask the nodes at once, to write and to read one name, each would be
/// refused by the claim of the other: the owner would wait for itself.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Lines>);

/// Who stands in line at each name. A ticket joins the lines of all of its names at once: of two that have several names
/// in common the same one is in front everywhere.
type Lines = BTreeMap<Name, VecDeque<Arc<Ticket>>>;

/// The place of one acquisition in the lines of all of its names. It leaves them when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Ticket>);

/// What the acquisition, those who make room for it, and the keeper share.
#[derive(Debug)]
struct Ticket {
    turns: Arc<Turns>,
    keeper: Arc<Keeper>,
    names: Box<[Name]>,
    /// To be locked behind the lines.
    attendance: Mutex<Attendance>,
}

#[derive(Debug, Default)]
struct Attendance {
    waker: Option<Waker>,
    /// How often its task came.
    polls: u64,
    /// Whether it was woken and has not come since.
    is_due: bool,
    /// Whether its task polls it just now.
    is_here: bool,
    is_watched: bool,
    /// Whether a try was refused for its sake.
    is_in_the_way: bool,
    /// It did not come when it was woken, and stands in no line any more.
    is_passed_over: bool,
}

/// Why an acquisition has no turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoTurn {
    /// Its time is over.
    Late,
    /// Its client was closed.
    Closed,
}

/// What a waiter for its turn finds when it comes.
enum Came {
    /// It is the first at all of its names.
    First,
    Behind,
    PassedOver,
}

impl Turns {
    /// Waits until no earlier acquisition has a name of this lock, until `give_up_at`.
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

    /// The turn, if no other acquisition has a name of this lock.
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
        // One that was alone needed no watching when it was woken.
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
    /// Goes on with what is done in the turn; ready with `None` when the turn was given to another, because this one
    /// did not come when it was woken. What it has begun must be dropped then.
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
    /// Joins the lines of its names; returns who is just in front of it there.
    fn push(self: &Arc<Self>, lines: &mut Lines) -> Vec<Arc<Ticket>> {
        let mut in_front = Vec::new();
        for name in &self.names {
            let line = lines.entry(name.clone()).or_default();
            in_front.extend(line.back().cloned());
            line.push_back(self.clone());
        }
        in_front
    }

    /// Leaves them; returns who is the first of a line now.
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

    /// Its task has come, to look whether it has the turn.
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

    /// Its task has come, to go on in its turn; `false` if it has none any more.
    fn begin_poll(&self, cx: &Context<'_>) -> bool {
        let mut attendance = self.attendance.lock();
        attendance.is_here = !attendance.is_passed_over;
        attendance.arrive(cx);
        attendance.is_here
    }

    /// Whether others depend on its coming when it is woken.
    fn has_others(&self, lines: &Lines, attendance: &Attendance) -> bool {
        let mut lines = self.names.iter().filter_map(|name| lines.get(name));
        attendance.is_in_the_way || lines.any(|line| !is_in(line.back(), self))
    }

    /// Where others depend on it and it is due, the keeper is told, which passes it over if it does not come.
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
            // None passes it over any more. Those behind it see for themselves that the client has ended.
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

/// What the acquisition waits for has come: its turn, or what it waits for in its turn.
///
/// A has the turn, B waits behind it, and A's task is woken and does something else with its thread: the owner would
/// wait for itself.
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

impl Led for Ticket {
    fn due(&self) -> LeaderDue {
        let attendance = self.attendance.lock();
        LeaderDue(attendance.is_due.then_some(attendance.polls))
    }

    fn relieve(&self, before: LeaderDue) -> Relief {
        let mut lines = self.turns.0.lock();
        let mut attendance = self.attendance.lock();
        if !attendance.is_due || !self.has_others(&lines, &attendance) {
            attendance.is_watched = false;
            return Relief::Over;
        }
        let due = LeaderDue(Some(attendance.polls));
        if due != before || attendance.is_here {
            return Relief::On(due);
        }
        attendance.is_passed_over = true;
        drop(attendance);
        let next = self.remove(&mut lines);
        drop(lines);
        // It may just come: were it not woken once more, it would wait where it does not stand any more.
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
