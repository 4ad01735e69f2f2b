//! The command line.

use std::path::PathBuf;

pub(crate) const HELP: &str = "\
Measures the locks on real Redis servers, beside the bare scripts and the crate rslock.

cargo bench -p quorlock-tests --bench locks -- [OPTIONS] [CASE]...

  CASE             run only the cases whose names contain one of these words
  --quick          do a fraction of the work: minutes become seconds, and the figures are noisier
  --threads <N>    worker threads of the clients' runtime; with 0, the default, everything runs on one thread (the
                   clients of a hand-over have a thread each)
  --json <FILE>    also write the figures to a file as JSON; '-' prints them instead of the table
  --list           list the cases
  --help           print this help

Every figure is a ratio or a count from one run, in which the contestants take turns in random order. 'noise' is the
ratio of two identical bare runs; a difference that is not larger means nothing. Exit codes: 0 measured (whether or not
targets are met), 1 no redis-server or no result, 2 wrong arguments.";

pub(crate) enum Command {
    Run(Options),
    List,
    Help,
}

#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) filters: Vec<String>,
    pub(crate) is_quick: bool,
    pub(crate) threads: Option<usize>,
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Command, String> {
        let mut options = Options::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--help" | "-h" => return Ok(Command::Help),
                "--list" => return Ok(Command::List),
                "--quick" => options.is_quick = true,
                // Cargo passes this to every benchmark.
                "--bench" => {}
                "--threads" => {
                    let threads = value()?;
                    let number = threads.parse();
                    let number = number.map_err(|_| format!("--threads {threads}: not a number"));
                    options.threads = Some(number?);
                }
                "--json" => options.json = Some(PathBuf::from(value()?)),
                other if other.starts_with('-') => return Err(format!("unknown option {other}")),
                filter => options.filters.push(filter.to_owned()),
            }
        }
        Ok(Command::Run(options))
    }

    pub(crate) fn wants(&self, case: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|f| case.contains(f.as_str()))
    }

    /// Returns one of two amounts of work.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.is_quick { quick } else { full }
    }

    pub(crate) fn prints_json(&self) -> bool {
        self.json
            .as_ref()
            .is_some_and(|path| path.as_os_str() == "-")
    }

    /// Returns the runtime of the clients.
    pub(crate) fn runtime(&self) -> tokio::runtime::Runtime {
        let mut builder = match self.threads.unwrap_or(0) {
            0 => tokio::runtime::Builder::new_current_thread(),
            threads => {
                let mut builder = tokio::runtime::Builder::new_multi_thread();
                builder.worker_threads(threads);
                builder
            }
        };
        builder.enable_all().build().expect("a runtime")
    }

    /// Runs a measurement, on a worker thread if there are any.
    pub(crate) fn block_on<T: Send + 'static>(
        &self,
        measurement: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let runtime = self.runtime();
        runtime.block_on(async {
            let task = tokio::spawn(measurement);
            task.await.expect("the measurement ends without a panic")
        })
    }
}
