//! Tests that need a real server: ignored, with the reason, where there is none.

use std::future::Future;
use std::time::Duration;

use libtest_mimic::{Arguments, Conclusion, Failed, Trial};

use crate::server;

/// With this variable set, a missing server is a failure and not a reason to ignore a test.
const REQUIRED: &str = "QUORLOCK_REQUIRE_REDIS";

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

/// Makes `trials()` of async functions: `server_tests![this_holds, that_holds];`.
#[macro_export]
macro_rules! server_tests {
    ($($test:ident),* $(,)?) => {
        /// The tests of this file.
        pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
            vec![$($crate::trials::trial(stringify!($test), $test)),*]
        }
    };
}
