//! A program that works with one library, a turn at a time, as the harness tells it.
//!
//! The harness starts it with a job, as JSON in its only argument. The program connects, warms up and prints `ready`. For
//! each line `go` it does the work once, and prints the result as a line of JSON. It ends when its input ends. All
//! libraries speak like this: those of this program, `rlock`, which compiles this file as well, and those of other
//! languages (`benches/peers`).

use std::io::BufRead as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::{Either, join_all, select, try_join_all};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Barrier, watch};

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a program does in each turn.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Name of the library, for a program with several.
    pub(crate) library: String,
    pub(crate) work: Work,
    /// Ports of the servers on the loopback interface: one, or the members of a majority.
    pub(crate) ports: Vec<u16>,
    /// The address of a database in place of the servers.
    #[serde(default)]
    pub(crate) database: Option<String>,
    /// Number of concurrent callers.
    pub(crate) callers: usize,
    /// How long a turn lasts, in milliseconds.
    pub(crate) millis: u64,
    /// How long each hold lasts, in microseconds.
    pub(crate) hold_micros: u64,
    /// The pause after each acquire and release, in microseconds.
    pub(crate) pause_micros: u64,
    /// Number of locks that are held beside the work.
    pub(crate) locks: usize,
    /// The name, or the prefix of the names.
    pub(crate) names: String,
    pub(crate) lease_millis: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Each caller acquires and releases a name of its own. The result is the number of pairs.
    Pairs,
    /// One caller acquires and releases a free name. The result is how long each of them takes.
    Acquire,
    /// All callers compete for one name. The result is when each hold begins and ends.
    Holds,
    /// Many locks are held and renewed: `held` is printed, and the next line ends the work.
    Keep,
    /// Clients with threads of their own let each other go first. The result is that of `Holds`. Only this program
    /// has it.
    HandOver,
}

/// A client of a library.
pub(crate) trait Client: Clone + Send + Sync + 'static {
    type Held: Held;

    fn connect(job: &Job) -> impl Future<Output = Result<Self, Failure>> + Send;

    fn acquire(&self, name: &str) -> impl Future<Output = Result<Self::Held, Failure>> + Send;

    /// Returns the client of one caller, if callers compete for several locks.
    fn of_caller(&self, _number: usize) -> Self {
        self.clone()
    }

    /// Returns the requests so far by kind, if they are counted.
    fn requests(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A lock that is held.
pub(crate) trait Held: Send + 'static {
    fn release(self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Extends the lease as a user would if the library does not. Ends when the lock is lost.
    fn keep(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    fn is_held(&self) -> bool;
}

/// Runs the program on one thread.
pub(crate) fn run<C: Client>(job: &str) -> Result<(), Failure> {
    let job: Job = serde_json::from_str(job)?;
    runtime()?.block_on(async {
        let client = C::connect(&job).await?;
        warm_up(&client).await?;
        println!("ready");
        while hear().await? {
            let result = match job.work {
                Work::Pairs => pairs(&client, &job).await?,
                Work::Acquire => acquire(&client, &job).await?,
                Work::Holds => holds(&client, &job).await?,
                Work::Keep => keep(&client, &job).await?,
                Work::HandOver => hand_over::<C>(&job).await?,
            };
            println!("{result}");
        }
        Ok(())
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build()
}

/// Waits for the next line of the harness. Returns `false` if there is none.
async fn hear() -> Result<bool, Failure> {
    let heard = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().next());
    Ok(heard.await?.transpose()?.is_some())
}

/// Loads scripts, makes connections, and fills caches.
async fn warm_up(client: &impl Client) -> Result<(), Failure> {
    // Clients on several threads have names of their own.
    let thread = std::thread::current().id();
    let name = format!("warm-up/{}/{thread:?}", std::process::id());
    for _ in 0..200 {
        client.acquire(&name).await?.release().await?;
    }
    Ok(())
}

impl Job {
    fn length(&self) -> Duration {
        Duration::from_millis(self.millis)
    }

    /// Keeps requests in flight from slowing down the next call.
    async fn pause(&self) {
        if self.pause_micros != 0 {
            tokio::time::sleep(Duration::from_micros(self.pause_micros)).await;
        }
    }
}

async fn pairs(client: &impl Client, job: &Job) -> Result<Value, Failure> {
    let (began, length) = (Instant::now(), job.length());
    let callers = (0..job.callers).map(|caller| {
        let (client, name) = (client.clone(), format!("{}/{caller}", job.names));
        tokio::spawn(async move {
            let mut pairs = 0u64;
            while began.elapsed() < length {
                client.acquire(&name).await?.release().await?;
                pairs += 1;
            }
            Ok::<_, Failure>(pairs)
        })
    });
    let mut sum = 0;
    for pairs in join_all(callers).await {
        sum += pairs??;
    }
    Ok(json!({ "pairs": sum, "micros": began.elapsed().as_micros() }))
}

async fn acquire(client: &impl Client, job: &Job) -> Result<Value, Failure> {
    let (began, length) = (Instant::now(), job.length());
    let micros = |since: Instant| since.elapsed().as_secs_f64() * 1e6;
    let (mut acquires, mut releases, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    while began.elapsed() < length {
        let asked = Instant::now();
        let held = client.acquire(&job.names).await?;
        acquires.push(micros(asked));
        job.pause().await;
        let asked = Instant::now();
        held.release().await?;
        releases.push(micros(asked));
        job.pause().await;
        let asked = Instant::now();
        client.acquire(&job.names).await?.release().await?;
        pairs.push(micros(asked));
        job.pause().await;
    }
    Ok(json!({ "acquires": acquires, "releases": releases, "pairs": pairs }))
}

async fn holds(client: &impl Client, job: &Job) -> Result<Value, Failure> {
    let (began, length) = (Instant::now(), job.length());
    let before = client.requests();
    let callers = (0..job.callers).map(|number| {
        let (client, job) = (client.of_caller(number), job.clone());
        tokio::spawn(async move {
            let mut holds = Vec::new();
            while began.elapsed() < length {
                let held = client.acquire(&job.names).await?;
                holds.push(hold(&job).await?);
                held.release().await?;
                job.pause().await;
            }
            Ok::<_, Failure>(holds)
        })
    });
    let mut all = Vec::new();
    for holds in join_all(callers).await {
        all.extend(holds??);
    }
    let requests = client.requests().into_iter().zip(before);
    let requests =
        requests.map(|((kind, after), (_, before))| (kind.into(), json!(after - before)));
    Ok(json!({ "holds": all, "requests": Value::Object(requests.collect()) }))
}

/// Waits for the length of a hold. Returns when it began and ended, in microseconds since 1970, which all processes of
/// this machine share.
async fn hold(job: &Job) -> Result<(u64, u64), Failure> {
    let from = date()?;
    tokio::time::sleep(Duration::from_micros(job.hold_micros)).await;
    Ok((from, date()?))
}

fn date() -> Result<u64, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(now.as_micros())?)
}

/// Lets clients on threads of their own take turns: one that has released acquires again only when another one has the
/// lock, so that every hold is a hand-over. A client that is alone does not wait.
async fn hand_over<C: Client>(job: &Job) -> Result<Value, Failure> {
    let (count, start) = (watch::Sender::new(0), Arc::new(Barrier::new(job.callers)));
    let clients = (0..job.callers).map(|_| {
        let (job, count, start) = (job.clone(), count.clone(), start.clone());
        let turns = async move { take_turns::<C>(&job, &count, &start).await };
        tokio::task::spawn_blocking(|| runtime()?.block_on(turns))
    });
    let mut all = Vec::new();
    for holds in join_all(clients.collect::<Vec<_>>()).await {
        all.extend(holds??);
    }
    Ok(json!({ "holds": all }))
}

async fn take_turns<C: Client>(
    job: &Job,
    count: &watch::Sender<u64>,
    start: &Barrier,
) -> Result<Vec<(u64, u64)>, Failure> {
    let client = C::connect(job).await?;
    warm_up(&client).await?;
    start.wait().await;
    let (began, mut holds) = (Instant::now(), Vec::new());
    while began.elapsed() < job.length() {
        let held = client.acquire(&job.names).await?;
        let mut number = 0;
        count.send_modify(|count| {
            *count += 1;
            number = *count;
        });
        holds.push(hold(job).await?);
        held.release().await?;
        if 1 < job.callers {
            let mut others = count.subscribe();
            others.wait_for(|count| number < *count).await?;
        }
    }
    // The other client does not wait for this one.
    count.send_modify(|count| *count += 1);
    Ok(holds)
}

async fn keep<C: Client>(client: &C, job: &Job) -> Result<Value, Failure> {
    let mut kept = Vec::with_capacity(job.locks);
    while kept.len() < job.locks {
        let many = kept.len()..job.locks.min(kept.len() + 100);
        let names = many.map(|number| format!("{}/{number:020}", job.names));
        let acquires = names.map(|name| async move { client.acquire(&name).await });
        kept.extend(try_join_all(acquires).await?);
    }
    let kept = kept.into_iter().map(|mut held| {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let is_kept = {
                let lost = pin!(held.keep());
                matches!(select(stopped, lost).await, Either::Left(_))
            };
            is_kept && held.is_held()
        });
        (stop, task)
    });
    let (stops, tasks): (Vec<_>, Vec<_>) = kept.unzip();
    println!("held");
    hear().await?;
    for stop in stops {
        // A task whose lock was lost has stopped by itself.
        let _ = stop.send(());
    }
    let mut held = 0;
    for task in tasks {
        held += usize::from(task.await?);
    }
    Ok(json!({ "held": held }))
}
