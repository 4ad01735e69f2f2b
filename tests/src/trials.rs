//! Tests that need a real server: ignored, with the reason, where there is none.

use std::future::Future;
use std::time::Duration;

use libtest_mimic::{Arguments, Conclusion, Failed, Trial};

use crate::server::{self, Product, Version};

/// With this variable set, a missing server is a failure and not a reason to ignore a test.
const REQUIRED: &str = "QUORLOCK_REQUIRE_REDIS";

/// What a test needs that not every version of a server has. Elsewhere it is listed as ignored, with the reason.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    since: Version,
    products: &'static [Product],
    /// Whether it was built with what is needed.
    is_built: fn() -> bool,
    reason: &'static str,
}

impl Needs {
    /// Users with rights.
    pub const USERS: Needs = Needs::since(6, 0, "needs ACLs, which came with Redis 6");

    /// Users with rights to channels.
    pub const CHANNELS: Needs = Needs::since(6, 2, "rights to channels came with Redis 6.2");

    /// A server that speaks TLS.
    pub const TLS: Needs = Needs {
        is_built: server::speaks_tls,
        ..Needs::since(6, 0, "this server was built without TLS")
    };

    /// `min-replicas-to-write` for scripts.
    pub const REPLICAS_FOR_SCRIPTS: Needs = Needs::since(
        6,
        2,
        "Redis 5 lets scripts write also with too few replicas",
    );

    /// Errors that a script passes on as they are, and a statistic of them.
    pub const ERRORS_OF_SCRIPTS: Needs = Needs::since(
        7,
        0,
        "before Redis 7 errors of scripts are counted and worded in another way",
    );

    /// A server that answers while it loads a few keys.
    pub const SLOW_LOADING: Needs = Needs::since(
        7,
        0,
        "needs a setting that makes a server answer while it loads, of Redis 7",
    );

    /// The words of the simulated server, which are those of Redis 7.
    pub const WORDS_OF_REDIS: Needs = Needs {
        products: &[Product::Redis],
        reason: "the simulated server has the words of Redis 7",
        ..Needs::ERRORS_OF_SCRIPTS
    };

    const fn since(major: u32, minor: u32, reason: &'static str) -> Self {
        Needs {
            since: Version { major, minor },
            products: &[Product::Redis, Product::Valkey],
            is_built: || true,
            reason,
        }
    }

    /// Why the installed server will not do, if it will not.
    fn missing(self) -> Option<&'static str> {
        let (product, version) = server::version()?;
        let will_do =
            self.since <= version && self.products.contains(&product) && (self.is_built)();
        (!will_do).then_some(self.reason)
    }
}

/// The longest that one test may take.
const BOUND: Duration = Duration::from_secs(120);

/// Runs all trials as the arguments of the process say, and ends it.
pub fn run(trials: Vec<Trial>) -> ! {
    let is_required = std::env::var_os(REQUIRED).is_some_and(|value| !value.is_empty());
    let is_missing = !is_required && !server::is_installed();
    let missing = is_missing.then_some("needs redis-server: run ./test.sh");
    conclude(&Arguments::from_args(), trials, missing).exit()
}

/// Runs all trials, or ignores them for what is `missing`, and says what came of it.
pub fn conclude(
    arguments: &Arguments,
    trials: Vec<Trial>,
    missing: Option<&'static str>,
) -> Conclusion {
    let trials = trials.into_iter();
    let trials = trials.map(|trial| match missing {
        None => trial,
        Some(missing) => trial.with_kind(missing).with_ignored_flag(true),
    });
    libtest_mimic::run(arguments, trials.collect())
}

/// One test: an async function, on a runtime of its own.
pub fn trial<F: Future<Output = ()>>(
    name: &str,
    test: impl FnOnce() -> F + Send + 'static,
) -> Trial {
    Trial::test(name, move || {
        if !server::is_installed() {
            return Err(Failed::from(
                "there is no redis-server on the PATH: run ./test.sh, which installs one",
            ));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let ended = runtime.block_on(async { tokio::time::timeout(BOUND, test()).await });
        ended.map_err(|_| format!("the test did not end within {BOUND:?}").into())
    })
}

/// A test that needs something of the server.
pub fn trial_where<F: Future<Output = ()>>(
    needs: Needs,
    name: &str,
    test: impl FnOnce() -> F + Send + 'static,
) -> Trial {
    let trial = trial(name, test);
    match needs.missing() {
        None => trial,
        Some(reason) => trial.with_kind(reason).with_ignored_flag(true),
    }
}

/// Makes `trials()` of async functions: `server_tests![this_holds, that_holds];`. `USERS: this_holds` names one of the
/// [`Needs`](crate::trials::Needs) of a test.
#[macro_export]
macro_rules! server_tests {
    ($($first:ident $(: $second:ident)?),* $(,)?) => {
        /// The tests of this file.
        pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
            vec![$($crate::server_test!($first $(: $second)?)),*]
        }
    };
}

/// One of [`server_tests`].
#[macro_export]
macro_rules! server_test {
    ($test:ident) => {
        $crate::trials::trial(stringify!($test), $test)
    };
    ($needs:ident: $test:ident) => {
        $crate::trials::trial_where($crate::trials::Needs::$needs, stringify!($test), $test)
    };
}
