//! A client process, which does the work that the plan defines and reports to the command.

mod choices;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use super::bystanders::Bystanders;
use super::clock;
use super::lateness::Lateness;
use super::lock_under_test::{Guard, LockRequest, LockUnderTest, NotAcquired};
use super::message::{ClientReport, ConductorReply, WonHold, WonName, WorkerSettings};
use super::waits::{BoundedWait, WaitEnd};
use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::{Access, Process};

/// The shortest and the longest bound of a wait, in the time of the plan.
const BOUNDS: (SimTime, SimTime) = (SimTime::millis(10), SimTime::millis(300));

/// Runs the client until the command stops it or ends.
///
/// # Errors
/// Returns the reason why the client could not start.
pub(crate) fn run(reports: u16, process: Process) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let stream = TcpStream::connect(("127.0.0.1", reports)).await;
        let stream = stream.map_err(|error| error.to_string())?;
        stream
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        let (read, write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        let mut counter = Counter { write };
        counter.say(&ClientReport::Hello(process)).await?;
        let settings = lines.next_line().await.ok().flatten().unwrap_or_default();
        let settings: WorkerSettings =
            serde_json::from_str(&settings).map_err(|error| error.to_string())?;
        let (answers, answered) = unbounded_channel();
        let (orders, ordered) = watch::channel(Orders::default());
        let listening = listen(lines, answers, orders);
        let worker = Worker::new(settings, counter, answered, ordered);
        // When the command has ended, the client has nothing left to do.
        first(listening, worker.work()).await;
        Ok(())
    })
}

/// The orders that the command has sent.
#[derive(Clone, Copy, Default, Debug)]
struct Orders {
    /// How many operations of the client were cancelled.
    cancelled: u64,
    is_over: bool,
}

async fn listen(
    mut lines: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    answers: UnboundedSender<ConductorReply>,
    orders: watch::Sender<Orders>,
) {
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str(&line) {
            Ok(ConductorReply::Cancel) => orders.send_modify(|orders| orders.cancelled += 1),
            Ok(ConductorReply::Stop) => orders.send_modify(|orders| orders.is_over = true),
            Ok(answer) => drop(answers.send(answer)),
            Err(_) => return,
        }
    }
}

/// Runs both futures until one of them has ended.
async fn first(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(
        |cx| match one.as_mut().poll(cx).is_ready() || other.as_mut().poll(cx).is_ready() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        },
    )
    .await;
}

/// The connection on which the client reports.
struct Counter {
    write: OwnedWriteHalf,
}

impl Counter {
    async fn say(&mut self, said: &ClientReport) -> Result<(), String> {
        let mut line = serde_json::to_vec(said).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let written = self.write.write_all(&line).await;
        written.map_err(|error| error.to_string())
    }
}

struct Worker {
    settings: WorkerSettings,
    counter: Counter,
    answered: UnboundedReceiver<ConductorReply>,
    ordered: watch::Receiver<Orders>,
    draw: Draw,
    holds: u32,
    lateness: Lateness,
    bystanders: Bystanders,
    /// Recent error texts. They are kept so that each one is reported only a few times.
    told: VecDeque<String>,
}

/// A hold that was won.
struct Won {
    guard: Guard,
    hold: u32,
    names: Vec<WonName>,
}

impl Worker {
    fn new(
        settings: WorkerSettings,
        counter: Counter,
        answered: UnboundedReceiver<ConductorReply>,
        ordered: watch::Receiver<Orders>,
    ) -> Worker {
        let Process { client, restarts } = settings.process;
        let stream = u64::from(client) << 16 | u64::from(restarts);
        Worker {
            draw: Draw::new(settings.plan.seed, Purpose::Workload, stream),
            settings,
            counter,
            answered,
            ordered,
            holds: 0,
            lateness: Lateness::measure(),
            bystanders: Bystanders::default(),
            told: VecDeque::new(),
        }
    }

    fn longer(&self, span: SimTime) -> Duration {
        span.as_duration() * self.settings.scale
    }

    fn between(&mut self, min: SimTime, max: SimTime) -> Duration {
        let nanos = self.draw.between(min.as_nanos(), max.as_nanos());
        self.longer(SimTime::nanos(nanos))
    }

    fn is_over(&self) -> bool {
        self.ordered.borrow().is_over
    }

    async fn work(mut self) {
        let Some(subject) = self.connect().await else {
            return;
        };
        if self.counter.say(&ClientReport::Ready).await.is_err() {
            return;
        }
        while !self.is_over() {
            let (min, max) = (
                self.settings.plan.workload.think_min,
                self.settings.plan.workload.think_max,
            );
            let pause = self.between(min, max);
            clock::sleep(pause).await;
            let began = clock::now();
            if self.turn(&subject).await.is_none() {
                return;
            }
            for name in self.bystanders.take_lost() {
                // Without a turn of the processor, no client renews in time.
                if self.was_late(began) {
                    continue;
                }
                let lost = ClientReport::Bereft(name);
                if self.counter.say(&lost).await.is_err() {
                    return;
                }
            }
        }
        self.bystanders.release().await;
    }

    /// Returns whether the machine kept this process waiting for a tenth of a lease at once, in the turn that began at
    /// this time or in the lease before it.
    fn was_late(&self, began: u64) -> bool {
        let client = self.settings.process.client;
        let lease = self.longer(self.settings.plan.lease_of(client));
        let lease = u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX);
        lease / 10 <= self.lateness.since(began.saturating_sub(lease))
    }

    /// Connects to the nodes and acquires the bystanders, and tries again while nodes are down.
    async fn connect(&mut self) -> Option<LockUnderTest> {
        while !self.is_over() {
            match self.attempt().await {
                Ok(subject) => return Some(subject),
                Err(error) => self.failed(error).await?,
            }
            clock::sleep(Duration::from_millis(100)).await;
        }
        None
    }

    async fn attempt(&mut self) -> Result<LockUnderTest, String> {
        let subject = LockUnderTest::connect(&self.settings, &mut self.draw).await?;
        let WorkerSettings {
            process,
            plan,
            has_bystanders,
            ..
        } = &self.settings;
        if *has_bystanders {
            self.bystanders = Bystanders::acquire(&subject, *process, plan).await?;
        }
        Ok(subject)
    }

    /// Acquires a lock, works, and releases the lock. Returns `None` if the command has ended.
    async fn turn(&mut self, subject: &LockUnderTest) -> Option<()> {
        let wanted = self.wanted();
        let lease = self.longer(self.settings.plan.lease_of(self.settings.process.client));
        let invoked = clock::now();
        let guard = self.cancellable(subject.acquire(&wanted, lease)).await;
        let won = clock::now();
        let end = match &guard {
            None => WaitEnd::Dropped,
            Some(Err(_)) => WaitEnd::GivenUp,
            Some(Ok(_)) => WaitEnd::Won,
        };
        self.waited(&wanted, (invoked, won), end).await?;
        let guard = match guard {
            None => return Some(()),
            Some(Err(why)) => {
                if let NotAcquired::Failed(error) = why {
                    self.failed(error).await?;
                }
                clock::sleep(Duration::from_millis(20)).await;
                return Some(());
            }
            Some(Ok(guard)) => guard,
        };
        self.holds += 1;
        let hold = self.holds;
        // The clock is read before the check. If the process is stopped between the two, the lock was held at this
        // time.
        let asked = clock::now();
        let believed = guard.is_held().then_some(asked);
        let names = guard.tokens(&wanted);
        let said = ClientReport::Won(WonHold {
            hold,
            kind: wanted.kind,
            names: names.clone(),
            owner: guard
                .owner()
                .map(|owner| owner.to_string())
                .unwrap_or_default(),
            invoked,
            won,
            access: wanted.access,
            believed,
        });
        self.counter.say(&said).await.ok()?;
        let won = Won { guard, hold, names };
        if believed.is_some() {
            self.inside(&won, wanted.access).await?;
        }
        let left = ClientReport::Left {
            hold,
            at: clock::now(),
        };
        self.counter.say(&left).await.ok()?;
        if let Err(error) = won.guard.release(subject).await {
            self.failed(error).await?;
        }
        Some(())
    }

    /// Reports how a wait ended, if it had a bound.
    async fn waited(
        &mut self,
        wanted: &LockRequest,
        (invoked, ended): (u64, u64),
        end: WaitEnd,
    ) -> Option<()> {
        let Some(bound) = wanted.wait else {
            return Some(());
        };
        let waited = ClientReport::Waited(BoundedWait {
            invoked,
            bound: u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX),
            ended,
            end,
            late: self.lateness.since(invoked),
        });
        self.counter.say(&waited).await.ok()
    }

    /// Reads, works, and writes the result, unless the lock is lost.
    async fn inside(&mut self, won: &Won, access: Access) -> Option<()> {
        let hold = won.hold;
        let mut stands = Vec::new();
        for WonName { name, token } in won.names.iter().copied() {
            if access == Access::Read {
                break;
            }
            let read = self.ask(ClientReport::Read { hold, name, token }).await?;
            if let ConductorReply::Stands { at, count } = read {
                stands.push((WonName { name, token }, at, count));
            }
        }
        let span = self.stay();
        let checks = u32::from(self.settings.plan.workload.checks).max(2) * 2;
        for _ in 0..checks {
            clock::sleep(span / checks).await;
            // The clock is read before the check, as above.
            let at = clock::now();
            if !won.guard.is_held() {
                return Some(());
            }
            self.counter
                .say(&ClientReport::Believed { hold, at })
                .await
                .ok()?;
        }
        for (WonName { name, token }, read_at, count) in stands {
            let write = ClientReport::Write {
                hold,
                name,
                token,
                read_at,
                count: count + 1,
            };
            self.ask(write).await?;
        }
        Some(())
    }

    async fn ask(&mut self, said: ClientReport) -> Option<ConductorReply> {
        self.counter.say(&said).await.ok()?;
        self.answered.recv().await
    }

    /// Reports an error the first time and then every tenth time, because a server that is down for a long time causes
    /// many errors.
    async fn failed(&mut self, error: String) -> Option<()> {
        // Addresses and times differ each time.
        let error: String = error
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .take(160)
            .collect();
        self.told.push_back(error.clone());
        if 64 < self.told.len() {
            self.told.pop_front();
        }
        let times = self.told.iter().filter(|told| **told == error).count();
        if times == 1 || times.is_multiple_of(10) {
            self.counter.say(&ClientReport::Failed(error)).await.ok()?;
        }
        Some(())
    }

    /// Waits for a future. Drops it if it is cancelled or the run is over.
    async fn cancellable<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut ordered = self.ordered.clone();
        ordered.mark_unchanged();
        let mut future = pin!(future);
        let mut changed = pin!(async { ordered.changed().await.is_ok() });
        let is_over = self.is_over();
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            match is_over || changed.as_mut().poll(cx).is_ready() {
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        })
        .await
    }
}
