//! Tests of your own code: your clients, in a world that you define, under the faults that break locks.
//!
//! A client is an async function. Each of several clients runs it as its own process, with its own [`Context`]:
//! locks, clock, randomness. The clients share a world that is created for each run: [resources](crate::resource) that
//! a lock protects, and whatever the test counts. The code states its properties at the places where they can be
//! checked, with [`always!`](crate::always), [`sometimes!`](crate::sometimes) and [`eventually!`](crate::eventually).
//!
//! ```
//! use std::rc::Rc;
//! use std::time::Duration;
//!
//! use quorlock_sim::context::Context;
//! use quorlock_sim::property_test::PropertyTest;
//! use quorlock_sim::resource::KeyValueStore;
//! use quorlock_sim::{always, sometimes};
//!
//! async fn sell(ctx: Context, stock: Rc<KeyValueStore<i64>>) {
//!     let stock = stock.client(&ctx);
//!     loop {
//!         ctx.sleep(Duration::from_millis(5)).await;
//!         let Ok(guard) = ctx.locks().lock("stock").acquire().await else {
//!             continue;
//!         };
//!         let token = guard.fencing_token();
//!         if let Ok(Some(left)) = stock.get_fenced("pieces", token).await
//!             && 0 < left
//!             && let Ok(Some(before)) = stock.put_fenced("pieces", left - 1, token).await
//!         {
//!             always!(before == left, "no sale is lost", "{before} pieces, not {left}");
//!             sometimes!(left == 1, "the last piece is sold");
//!         }
//!         let _ = guard.release().await;
//!     }
//! }
//!
//! PropertyTest::new("sell")
//!     .seeds(20)
//!     .clients(3)
//!     .world(|| KeyValueStore::new("stock").with("pieces", 10))
//!     .run(sell);
//! ```
//!
//! The attribute [`quorlock_sim::test`](macro@crate::test) turns an async function into such a test.

mod found;
mod settings;
mod site;
mod trial;

use std::env;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

pub use found::{Found, Passed, Shortfall, Violated};
pub use site::CodeLocation;

use crate::client::context::Context;
use crate::plan::generator::FaultChoice;
use crate::plan::{LockKind, Plan};
use crate::simulation::{Run, Verdict};
use crate::study::failure::{Failure, FileError};
use found::Tally;
use settings::{Outages, Settings};
use trial::Trial;

/// A test of your own clients.
///
/// The defaults are 100 seeds, 3 clients, one node, and the faults that the
/// [assumptions](crate::generator::FaultChoice::Inside) of the lock allow.
pub struct PropertyTest<W = ()> {
    settings: Settings,
    world: Rc<dyn Fn() -> W>,
    end: Rc<dyn Fn(&W)>,
}

impl PropertyTest<()> {
    /// Creates a test with the name of its function, by which `cargo test` finds it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        PropertyTest::at(CodeLocation::named(name))
    }

    /// Creates a test for a function at a location in the source.
    #[must_use]
    pub fn at(site: CodeLocation) -> Self {
        PropertyTest {
            settings: Settings::of(site),
            world: Rc::new(|| ()),
            end: Rc::new(|()| ()),
        }
    }
}

impl<W: 'static> PropertyTest<W> {
    /// Sets the number of runs. The seeds start at 0.
    #[must_use]
    pub fn seeds(mut self, seeds: u64) -> Self {
        self.settings.seeds = seeds;
        self
    }

    /// Sets the number of clients, 1 to 60.
    #[must_use]
    pub fn clients(mut self, clients: u16) -> Self {
        self.settings.clients = clients;
        self
    }

    /// Sets the number of nodes, 1 to 15. With more than one node, locks need a majority of the nodes.
    #[must_use]
    pub fn nodes(mut self, nodes: u16) -> Self {
        self.settings.nodes = nodes;
        self
    }

    /// Sets the faults, in the syntax of `quorlock-sim explore --faults`: `inside` for the faults that the assumptions
    /// of the lock allow, `all`, `none`, or a list of kinds.
    ///
    /// If this is `none`, resources have no outages either.
    ///
    /// # Panics
    /// Panics if there is no such kind of fault, or if the lane of these tests does not support it.
    #[must_use]
    pub fn faults(mut self, faults: &str) -> Self {
        match faults.parse() {
            Ok(faults) => self.settings.faults = faults,
            Err(error) => panic!("faults = {faults:?}: {error}"),
        }
        if let Err(lacks) = self.settings.generator().check() {
            panic!("faults = {faults:?}: {lacks}");
        }
        if self.settings.faults == FaultChoice::None {
            self.settings.outages = Outages::None;
        }
        self
    }

    /// Disables outages of resources. Only faults of locks, networks, clocks and clients are drawn.
    #[must_use]
    pub fn without_outages(mut self) -> Self {
        self.settings.outages = Outages::None;
        self
    }

    /// Sets the length of each run in simulated time, 1 ms to a day. The default is 2 s, or longer if a fault
    /// requires it, so that the lock can be acquired afterwards.
    #[must_use]
    pub fn lasting(mut self, duration: Duration) -> Self {
        self.settings.duration = Some(duration.into());
        self
    }

    /// Adds a property that some run must evaluate, or the test fails. A property that was evaluated in any run is
    /// expected in any case.
    #[must_use]
    pub fn expecting(mut self, name: &str) -> Self {
        self.settings.expected.push(name.to_owned());
        self
    }

    /// Sets the folder to which failures are written. The default is `failures` in the working directory of the test.
    #[must_use]
    pub fn failures_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.failures = folder.into();
        self
    }

    /// Sets the maximum number of runs that shrinking a failure takes.
    #[must_use]
    pub fn shrink_runs(mut self, max: u32) -> Self {
        self.settings.most_runs = max;
        self
    }

    /// Sets the world that the clients share: [resources](crate::resource), and cells for what the test counts. It is
    /// created for each run, after the run has begun. All clients of a run share one thread.
    #[must_use]
    pub fn world<V: 'static>(self, world: impl Fn() -> V + 'static) -> PropertyTest<V> {
        PropertyTest {
            settings: self.settings,
            world: Rc::new(world),
            end: Rc::new(|_| {}),
        }
    }

    /// Sets a function that examines the world at the end of each run, when all clients have stopped and nothing is in
    /// flight.
    #[must_use]
    pub fn finally(mut self, end: impl Fn(&W) + 'static) -> Self {
        self.end = Rc::new(end);
        self
    }

    /// Runs all seeds, or the runs that the environment selects.
    ///
    /// With `QUORLOCK_SEED=n`, it runs only this seed. With `QUORLOCK_REPLAY=file`, it runs only the failure in the
    /// file, if that failure belongs to this test. For a failure of another test, it runs nothing, notes that, and
    /// passes.
    ///
    /// # Panics
    /// Panics if a property is broken or was never exercised. The message has the commands to run next. The failure is
    /// shrunk, written to a file, and drawn as a page next to that file.
    pub fn run<F>(&self, client: impl Fn(Context, Rc<W>) -> F + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let found = match (env::var_os("QUORLOCK_REPLAY"), env::var("QUORLOCK_SEED")) {
            (Some(file), _) => self.replay(Path::new(&file), client),
            (None, Ok(seed)) => match seed.parse() {
                Ok(seed) => self.check_seed(seed, client),
                Err(_) => panic!("QUORLOCK_SEED={seed}: use a number, as QUORLOCK_SEED=17"),
            },
            (None, Err(_)) => self.check(client),
        };
        if let Err(found) = found {
            panic!("{found}");
        }
    }

    /// Runs the seeds in order until one fails.
    ///
    /// # Errors
    /// Returns [`Found`] if the test fails.
    pub fn check<F>(
        &self,
        client: impl Fn(Context, Rc<W>) -> F + 'static,
    ) -> Result<Passed, Box<Found>>
    where
        F: Future<Output = ()> + 'static,
    {
        let passed = self.check_all(0..self.settings.seeds, &self.trial(client))?;
        let missed = passed.missed(&self.settings.expected);
        match missed {
            Some(shortfall) => Err(Box::new(Found::Shortfall(shortfall))),
            None => Ok(passed),
        }
    }

    /// Runs one seed. A property that this run does not exercise is not an error.
    ///
    /// # Errors
    /// Returns [`Found`] if the test fails.
    pub fn check_seed<F>(
        &self,
        seed: u64,
        client: impl Fn(Context, Rc<W>) -> F + 'static,
    ) -> Result<Passed, Box<Found>>
    where
        F: Future<Output = ()> + 'static,
    {
        self.check_all(seed..seed + 1, &self.trial(client))
    }

    /// Runs the plan of a failure file once.
    ///
    /// # Errors
    /// Returns [`Found`] if the test fails.
    pub fn replay<F>(
        &self,
        file: &Path,
        client: impl Fn(Context, Rc<W>) -> F + 'static,
    ) -> Result<Passed, Box<Found>>
    where
        F: Future<Output = ()> + 'static,
    {
        let found = |error: String| Box::new(Found::File(error));
        let failure = Failure::read(file).map_err(|error| found(error.to_string()))?;
        let test = failure.test.clone().unwrap_or_default();
        let mut tally = Tally::default();
        if test != self.settings.site.test() {
            let name = self.settings.site.test();
            tally.note(format!(
                "{} is of the test {test}: {name} ran nothing",
                file.display()
            ));
            return Ok(tally.passed());
        }
        crate::plan::file::check(&failure.plan).map_err(|error| found(error.to_string()))?;
        let trial = self.trial(client);
        let run = trial.run(&Rc::new(failure.plan.clone()));
        if !failure.is_repeated_by(&run) {
            tally.note(format!(
                "{}: the run differs from the recorded one: the code has changed since, or uses a clock, threads or randomness \
                 that is not simulated",
                file.display()
            ));
        }
        tally.add(&run);
        match &run.verdict {
            Verdict::Violated(_) => Err(self.tell(&trial, run, None, tally)),
            _ => Ok(tally.passed()),
        }
    }

    fn trial<F>(&self, client: impl Fn(Context, Rc<W>) -> F + 'static) -> Trial<W>
    where
        F: Future<Output = ()> + 'static,
    {
        Trial::new(&self.world, &self.end, client)
    }

    fn check_all(&self, seeds: Range<u64>, trial: &Trial<W>) -> Result<Passed, Box<Found>> {
        let mut tally = Tally::default();
        for seed in seeds {
            let run = trial.run(&Rc::new(self.settings.plan(seed)));
            tally.add(&run);
            if matches!(run.verdict, Verdict::Violated(_)) {
                return Err(self.shrink(trial, &run, tally));
            }
        }
        Ok(tally.passed())
    }

    /// Shrinks a failure and reports it.
    fn shrink(&self, trial: &Trial<W>, run: &Run, mut tally: Tally) -> Box<Found> {
        let again = trial.run(&run.plan);
        if again.trace != run.trace || again.verdict != run.verdict {
            let seed = run.plan.seed;
            tally.note(format!(
                "seed {seed} does not repeat itself, so it is not shrunk: the code uses a clock, threads or randomness that is \
                 not simulated, or keeps something from one run to the next"
            ));
            return self.tell(trial, again, None, tally);
        }
        let least_nodes = match run.plan.lock {
            LockKind::Redlock => run.plan.nodes.count.min(3),
            _ => 1,
        };
        let run_own = |plan: &Rc<Plan>| trial.run(plan);
        let shrunk = crate::study::shrink::shrink_own(
            &run.plan,
            least_nodes,
            self.settings.most_runs,
            &run_own,
        );
        match shrunk {
            Some(shrunk) => {
                let sizes = (shrunk.before, shrunk.after, shrunk.runs);
                self.tell(trial, shrunk.run, Some((run.plan.seed, sizes)), tally)
            }
            None => self.tell(trial, again, None, tally),
        }
    }

    /// Writes a failure and its page, and returns the result of the test.
    fn tell(
        &self,
        trial: &Trial<W>,
        run: Run,
        shrunk: Option<(u64, found::Sizes)>,
        tally: Tally,
    ) -> Box<Found> {
        let Verdict::Violated(violation) = run.verdict.clone() else {
            return Box::new(Found::File("BUG: it does not fail".to_owned()));
        };
        let seed = shrunk.map_or(run.plan.seed, |(seed, _)| seed);
        let stem = self
            .settings
            .failures
            .join(format!("{}-seed-{seed}", self.settings.site.stem()));
        let written = self.write(trial, &run, &stem);
        Box::new(Found::Violated(Box::new(Violated {
            site: self.settings.site.clone(),
            seed,
            violation,
            run,
            sizes: shrunk.map(|(_, sizes)| sizes),
            files: written.map_err(|error| error.to_string()),
            notes: tally.into_notes(),
        })))
    }

    fn write(
        &self,
        trial: &Trial<W>,
        run: &Run,
        stem: &Path,
    ) -> Result<(PathBuf, PathBuf), FileError> {
        let ending = |ending: &str| PathBuf::from(format!("{}.{ending}", stem.display()));
        let file = Failure::of_test(run, self.settings.site.test()).write_as(ending("json"))?;
        let (run, recording) = trial.recorded(&run.plan);
        let repeat = self
            .settings
            .site
            .command(&format!("QUORLOCK_REPLAY={}", file.display()));
        let page =
            crate::report::page_of_test(&run, &recording, self.settings.site.test(), &repeat);
        let page = crate::study::failure::write_file(ending("html"), &page)?;
        Ok((file, page))
    }
}

impl<W> fmt::Debug for PropertyTest<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PropertyTest")
            .field("site", &self.settings.site)
            .field("seeds", &self.settings.seeds)
            .field("clients", &self.settings.clients)
            .field("nodes", &self.settings.nodes)
            .field("faults", &self.settings.faults)
            .finish_non_exhaustive()
    }
}
