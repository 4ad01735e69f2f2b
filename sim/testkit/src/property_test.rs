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
mod location;
mod recipe;
mod settings;
mod trial;

use std::env;
use std::fmt;
use std::fs;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

pub use found::{Found, Passed, Shortfall, Violated};
pub use location::CodeLocation;

use crate::context::Context;
use crate::shrink::Taken;
use found::Tally;
use quorlock_sim_check::determinism;
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::generator::FaultChoice;
use quorlock_sim_plan::property::Property;
use recipe::{Recipe, RecipeError, least_nodes};
use settings::{Outages, Settings};
use trial::Trial;

/// The first line of a file that repeats the failure of a test.
pub const TEST_FAILURE: &str = "# A failure of a test, found by quorlock-sim.";

/// A test of your own clients.
///
/// The defaults are 100 seeds, 3 clients, one node, and the faults that the
/// [assumptions](quorlock_sim_plan::generator::FaultChoice::Inside) of the lock allow.
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

    /// Makes each run twice and compares the two, event for event. A difference fails the test, and names the first event that
    /// differs. `QUORLOCK_SIM_CHECK_DETERMINISM=1` does it for all tests.
    #[must_use]
    pub fn checking_determinism(mut self) -> Self {
        self.settings.check_determinism = true;
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

    /// Runs all seeds, or the runs that environment variables select.
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
        match found {
            Ok(passed) => passed.print_notes(),
            Err(found) => panic!("{found}"),
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
        let found = |error: RecipeError| {
            let error = format!("{}: {error}", file.display());
            Box::new(Found::File(error))
        };
        let recipe = Recipe::read(file).map_err(found)?;
        let mut tally = Tally::default();
        let name = self.settings.site.test();
        if recipe.test != name {
            tally.note(format!(
                "{} is of the test {}: {name} ran nothing",
                file.display(),
                recipe.test
            ));
            return Ok(tally.passed());
        }
        let plan = recipe.plan(&self.settings).map_err(found)?;
        let trial = self.trial(client);
        let run = trial.run(&plan);
        if recipe.trace != run.trace {
            tally.note(format!(
                "{}: the run differs from the recorded one: the code has changed since, or uses a clock, threads or randomness \
                 that is not simulated",
                file.display()
            ));
        }
        tally.add(&run);
        match &run.verdict {
            Verdict::Violated(_) => {
                let files = self.draw(&trial, &run, recipe.seed, file.to_owned());
                Err(self.tell(run, recipe.seed, None, files, tally))
            }
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
            if self.settings.check_determinism {
                determinism::check(&run, || trial.run(&run.plan)).map_err(Found::Differs)?;
            }
            if matches!(run.verdict, Verdict::Violated(_)) {
                return Err(self.shrink(trial, &run, tally));
            }
        }
        Ok(tally.passed())
    }

    /// Shrinks a failure, writes it, and reports it.
    fn shrink(&self, trial: &Trial<W>, run: &Run, mut tally: Tally) -> Box<Found> {
        let seed = run.plan.seed;
        let again = trial.run(&run.plan);
        if again.trace != run.trace || again.verdict != run.verdict {
            tally.note(format!(
                "seed {seed} is not shrunk, because two runs differ: the code uses a clock, threads or randomness that is \
                 not simulated, or keeps something from one run to the next; with QUORLOCK_SIM_CHECK_DETERMINISM=1 the test names the \
                 first event that differs"
            ));
            let files = self.write(trial, &again, seed, 0, Vec::new());
            return self.tell(again, seed, None, files, tally);
        }
        let run_own = |plan: &Rc<Plan>| trial.run(plan);
        let shrunk = crate::shrink::shrink_own(
            &run.plan,
            least_nodes(&run.plan),
            self.settings.most_runs,
            &run_own,
            &mut |runs, size| found::tell_progress(&self.settings, seed, runs, size),
        );
        match shrunk {
            Some((shrunk, taken)) => {
                let sizes = (shrunk.before, shrunk.after, shrunk.runs);
                let files = self.write(trial, &shrunk.run, seed, shrunk.runs, taken);
                self.tell(shrunk.run, seed, Some(sizes), files, tally)
            }
            None => {
                let files = self.write(trial, &again, seed, 0, Vec::new());
                self.tell(again, seed, None, files, tally)
            }
        }
    }

    fn tell(
        &self,
        run: Run,
        seed: u64,
        sizes: Option<found::Sizes>,
        files: io::Result<Files>,
        tally: Tally,
    ) -> Box<Found> {
        let Verdict::Violated(violation) = run.verdict.clone() else {
            return Box::new(Found::File("BUG: it does not fail".to_owned()));
        };
        Box::new(Found::Violated(Box::new(Violated {
            site: self.settings.site.clone(),
            seed,
            violation,
            run,
            sizes,
            files: files.map_err(|error| error.to_string()),
            notes: tally.into_notes(),
        })))
    }

    /// Writes a failure, and its page.
    fn write(
        &self,
        trial: &Trial<W>,
        run: &Run,
        seed: u64,
        runs: u32,
        taken: Vec<Taken>,
    ) -> io::Result<Files> {
        let folder = &self.settings.failures;
        let file = folder.join(format!("{}-seed-{seed}.toml", self.settings.site.stem()));
        let property = match &run.verdict {
            Verdict::Violated(violation) => violation.property,
            _ => Property::Always,
        };
        let recipe = Recipe {
            test: self.settings.site.test().to_owned(),
            seed,
            drawn: self.settings.drawn(),
            property,
            runs,
            taken,
            trace: run.trace,
        };
        let path = |error| in_file(&file, &error);
        fs::create_dir_all(folder).map_err(path)?;
        fs::write(&file, recipe.to_string()).map_err(path)?;
        self.draw(trial, run, seed, file)
    }

    /// Draws the page of a failure next to its file.
    fn draw(&self, trial: &Trial<W>, run: &Run, seed: u64, file: PathBuf) -> io::Result<Files> {
        let (run, recording) = trial.recorded(&run.plan);
        let site = &self.settings.site;
        let repeat = site.command(&format!("QUORLOCK_REPLAY={}", file.display()));
        let page = crate::report::page_of_test(&run, &recording, (site.test(), seed), &repeat);
        let path = file.with_extension("html");
        fs::write(&path, page).map_err(|error| in_file(&path, &error))?;
        Ok((file, path))
    }
}

/// Adds the name of a file to the error of that file.
fn in_file(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

/// The paths of a failure's file and of its page.
type Files = (PathBuf, PathBuf);

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
