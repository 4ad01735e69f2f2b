//! Tests of your own code: your clients, in a world of your own, under the faults that break locks.
//!
//! A client is an async function. Each of several clients runs it as a process of its own, with its
//! [`Context`]: locks, clock, randomness. What they share is a world that is made anew for each run:
//! [resources](crate::resource) that a lock protects, and whatever the test wants to count. What must hold is stated where it
//! is known, by [`always!`](crate::always), [`sometimes!`](crate::sometimes) and [`eventually!`](crate::eventually).
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
//! The attribute [`quorlock_sim::test`](macro@crate::test) makes such a test of an async function.

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

/// A test of clients of your own.
///
/// By default it has 100 seeds, 3 clients, one node, and the faults that the [assumptions](crate::swarm::FaultChoice::Inside) of
/// the lock allow.
pub struct PropertyTest<W = ()> {
    settings: Settings,
    world: Rc<dyn Fn() -> W>,
    end: Rc<dyn Fn(&W)>,
}

impl PropertyTest<()> {
    /// A test under a name: that of its function, by which `cargo test` finds it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        PropertyTest::at(CodeLocation::named(name))
    }

    /// A test that stands at a place of the source.
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
    /// The same with so many runs, of the seeds from 0.
    #[must_use]
    pub fn seeds(mut self, seeds: u64) -> Self {
        self.settings.seeds = seeds;
        self
    }

    /// The same with so many clients, 1 to 60.
    #[must_use]
    pub fn clients(mut self, clients: u16) -> Self {
        self.settings.clients = clients;
        self
    }

    /// The same on so many nodes, 1 to 15. The locks of more than one are those of a majority.
    #[must_use]
    pub fn nodes(mut self, nodes: u16) -> Self {
        self.settings.nodes = nodes;
        self
    }

    /// The same with these faults, as `quorlock-sim explore --faults` names them: `inside` for those that the assumptions of
    /// the lock allow, `all`, `none`, or a list of kinds.
    ///
    /// With `none` resources have no outages either.
    ///
    /// # Panics
    /// When there is no such kind of fault, or not in the lane of these tests.
    #[must_use]
    pub fn faults(mut self, faults: &str) -> Self {
        match faults.parse() {
            Ok(faults) => self.settings.faults = faults,
            Err(error) => panic!("faults = {faults:?}: {error}"),
        }
        if let Err(lacks) = self.settings.swarm().check() {
            panic!("faults = {faults:?}: {lacks}");
        }
        if self.settings.faults == FaultChoice::None {
            self.settings.outages = Outages::None;
        }
        self
    }

    /// The same with resources that always work: only what goes wrong with locks, networks, clocks and clients is drawn.
    #[must_use]
    pub fn without_outages(mut self) -> Self {
        self.settings.outages = Outages::None;
        self
    }

    /// The same with runs that go on for this long, in simulated time: 1 ms to a day. Without, 2 s, and after a fault until the
    /// lock could be acquired.
    #[must_use]
    pub fn lasting(mut self, duration: Duration) -> Self {
        self.settings.duration = Some(duration.into());
        self
    }

    /// The same, which fails unless some run looks at a property of this name. One that is looked at is expected anyway.
    #[must_use]
    pub fn expecting(mut self, name: &str) -> Self {
        self.settings.expected.push(name.to_owned());
        self
    }

    /// The same, which writes failures into this folder. Without, it is `failures`, in the folder in which the test is run.
    #[must_use]
    pub fn failures_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.failures = folder.into();
        self
    }

    /// The same, which runs a failure so many times at most to shrink it.
    #[must_use]
    pub fn shrink_runs(mut self, most: u32) -> Self {
        self.settings.most_runs = most;
        self
    }

    /// The same with a world that the clients share. It is made anew for each run, when that has begun: with
    /// [resources](crate::resource), and with cells for what the test counts. All clients of a run are in one thread.
    #[must_use]
    pub fn world<V: 'static>(self, world: impl Fn() -> V + 'static) -> PropertyTest<V> {
        PropertyTest {
            settings: self.settings,
            world: Rc::new(world),
            end: Rc::new(|_| {}),
        }
    }

    /// The same, which looks at the world at the end of each run, when no client works any more and everything is at rest.
    #[must_use]
    pub fn finally(mut self, end: impl Fn(&W) + 'static) -> Self {
        self.end = Rc::new(end);
        self
    }

    /// Runs all seeds.
    ///
    /// `QUORLOCK_SEED=n` runs this seed alone. `QUORLOCK_REPLAY=file` runs what is in the file alone, if it is of this test;
    /// a test whose file it is not passes without a run, and says so.
    ///
    /// # Panics
    /// When a property is broken or never got its chance, with what to run next. The failure is written to a file, shrunk, and
    /// drawn as a page beside it.
    pub fn run<F>(&self, client: impl Fn(Context, Rc<W>) -> F + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let found = match (env::var_os("QUORLOCK_REPLAY"), env::var("QUORLOCK_SEED")) {
            (Some(file), _) => self.replay(Path::new(&file), client),
            (None, Ok(seed)) => match seed.parse() {
                Ok(seed) => self.check_seed(seed, client),
                Err(_) => panic!("QUORLOCK_SEED={seed}: say a number, as QUORLOCK_SEED=17"),
            },
            (None, Err(_)) => self.check(client),
        };
        if let Err(found) = found {
            panic!("{found}");
        }
    }

    /// Runs all seeds, until one fails.
    ///
    /// # Errors
    /// [`Found`].
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

    /// Runs one seed. That all properties got their chance is not demanded of it.
    ///
    /// # Errors
    /// [`Found`].
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

    /// Runs what a failure was written for, once.
    ///
    /// # Errors
    /// [`Found`].
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
                "{}: the run is not the one that was written: the code has changed since, or uses a clock, threads or randomness \
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

    /// Makes a failure small, and tells of it.
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

    /// Writes a failure and its page.
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
