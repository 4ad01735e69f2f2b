//! Campaigns, leads for some time, steps down, resigns or loses, and campaigns again.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use quorlock::{Candidacy, LeaderEvent, Leadership};

use super::{any, hold_span, think};
use crate::client::context::{Context, LeadershipRecord};
use crate::client::subject::{Hold as _, Subject};
use quorlock_sim_plan::variant::Flaw;
use quorlock_sim_world::history::NameId;

/// The largest number of terms in one campaign.
const TERMS: u64 = 4;

pub(super) async fn client(ctx: Context) {
    let names: Vec<String> = (0..ctx.plan().workload.names.max(1))
        .map(super::name)
        .collect();
    let elections = Cell::new(0);
    loop {
        think(&ctx).await;
        let Some(text) = any(&ctx, &names) else {
            return;
        };
        let stand = Stand {
            ctx: &ctx,
            text,
            name: ctx.name(text),
            elections: &elections,
        };
        match ctx.subject(std::slice::from_ref(text)) {
            Subject::Product(_) if ctx.random(0, 2) == 0 => stand.run().await,
            Subject::Product(_) => stand.follow().await,
            lock => stand.hold(&lock).await,
        }
    }
}

/// A candidacy of this process for one name.
struct Stand<'a> {
    ctx: &'a Context,
    text: &'a str,
    name: NameId,
    /// How many elections the process has won.
    elections: &'a Cell<u64>,
}

/// The event that ended a wait.
enum First {
    Time,
    Event(Option<LeaderEvent>),
}

impl Stand<'_> {
    fn candidate(&self) -> quorlock::Candidate {
        let lease = self.ctx.plan().workload.lease;
        let rest = self.ctx.random(0, lease.as_nanos() / 10);
        let candidate = self.ctx.candidate(self.text);
        candidate.rest(Duration::from_nanos(rest))
    }

    /// Campaigns by following the events of a [`Candidacy`].
    async fn follow(&self) {
        let mut candidacy = self.candidate().campaign();
        for _ in 0..self.ctx.random(1, TERMS) {
            let standing = self.ctx.stand(self.name);
            let Ok(event) = self.ctx.cancellable(candidacy.next()).await else {
                return;
            };
            match event {
                Some(LeaderEvent::Elected { leadership, .. }) => {
                    let term = self.term(leadership.term().0);
                    let record = standing.elected(leadership.owner_id(), term);
                    if self
                        .lead(&mut candidacy, &leadership, record)
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
                _ => standing.failed(),
            }
        }
    }

    /// Works for one term, then ends it in one of several ways. An error ends the campaign.
    async fn lead(
        &self,
        candidacy: &mut Candidacy,
        leadership: &Leadership,
        record: LeadershipRecord,
    ) -> Result<(), ()> {
        let is_asked = !self.ctx.plan().variant.has(Flaw::LeaderWaitsForWord);
        let leads = || !is_asked || leadership.is_leading();
        let _ = record.look(leads);
        let checks = u32::from(self.ctx.plan().workload.checks).max(1);
        let step = self.reign_span() / checks;
        for _ in 0..checks {
            let first = self.first(step, candidacy);
            match self.ctx.cancellable(first).await.map_err(drop)? {
                // A task that waits for an event has not been polled since the loss, so it may not know of it.
                First::Time if record.look(leads) => {}
                First::Time => break,
                First::Event(Some(_)) => return Ok(()),
                First::Event(None) => return Err(()),
            }
        }
        // The work must end before the name is released. Otherwise the next leader would work at the same time.
        drop(record);
        if self.ctx.random(0, 2) == 0 {
            return Err(());
        }
        leadership.step_down();
        let lost = self.ctx.cancellable(candidacy.next()).await;
        lost.map(drop).map_err(drop)
    }

    /// Waits until the time is over, or until an earlier event.
    async fn first(&self, span: Duration, candidacy: &mut Candidacy) -> First {
        let mut sleep = pin!(self.ctx.sleep(span));
        let mut next = pin!(candidacy.next());
        poll_fn(|cx| {
            if sleep.as_mut().poll(cx).is_ready() {
                return Poll::Ready(First::Time);
            }
            next.as_mut().poll(cx).map(First::Event)
        })
        .await
    }

    /// Campaigns by work that runs while this process leads.
    async fn run(&self) {
        let first = RefCell::new(Some(self.ctx.stand(self.name)));
        let left = Cell::new(self.ctx.random(1, TERMS));
        let work = |leadership: Leadership| {
            let standing = first.borrow_mut().take();
            let standing = standing.unwrap_or_else(|| self.ctx.stand(self.name));
            let term = self.term(leadership.term().0);
            let record = standing.elected(leadership.owner_id(), term);
            left.set(left.get().saturating_sub(1));
            let is_last = left.get() == 0;
            believing(record, async move {
                self.ctx.sleep(self.reign_span()).await;
                if !is_last {
                    leadership.step_down();
                    pending::<()>().await;
                }
            })
        };
        let running = self.candidate().run_while_leader(work);
        let _ = self.ctx.cancellable(running).await;
        if let Some(standing) = first.take() {
            standing.failed();
        }
    }

    /// Leads by holding a lock of a variant. A variant has no elections.
    async fn hold(&self, lock: &Subject) {
        let standing = self.ctx.stand(self.name);
        let Ok(Ok(guard)) = self.ctx.cancellable(lock.acquire()).await else {
            return standing.failed();
        };
        let record = standing.elected(guard.id(), self.term(guard.token()));
        let _ = record.look(|| guard.is_held());
        let checks = u32::from(self.ctx.plan().workload.checks).max(1);
        let step = self.reign_span() / checks;
        for _ in 0..checks {
            let sleep = self.ctx.sleep(step);
            if self.ctx.cancellable(sleep).await.is_err() || !record.look(|| guard.is_held()) {
                break;
            }
        }
        drop(record);
        let _ = self.ctx.cancellable(guard.release()).await;
    }

    /// Returns how long a leader works: usually as long as the plan states, sometimes for several leases.
    fn reign_span(&self) -> Duration {
        let lease = self.ctx.plan().workload.lease.as_duration();
        match self.ctx.random(0, 3) {
            0 => hold_span(self.ctx) + lease * 2,
            _ => hold_span(self.ctx),
        }
    }

    /// Returns the term that the leader attaches to its writes.
    fn term(&self, token: u64) -> u64 {
        self.elections.set(self.elections.get() + 1);
        let variant = self.ctx.plan().variant;
        if variant.has(Flaw::TermCountsElections) {
            self.elections.get()
        } else if variant.has(Flaw::TermIsClock) {
            self.ctx.wall_clock()
        } else {
            token
        }
    }
}

/// Polls work that runs only during the term, and records before each poll that the client leads.
async fn believing(record: LeadershipRecord, work: impl Future<Output = ()>) {
    let mut work = pin!(work);
    poll_fn(|cx| {
        record.believe();
        work.as_mut().poll(cx)
    })
    .await;
}
