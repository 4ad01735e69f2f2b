//! Tests that need a real server. Without one, they are ignored with a reason.

use std::future::Future;
use std::time::Duration;

use libtest_mimic::{Arguments, Conclusion, Failed, Trial};

use crate::server::{self, Product, Version};
use crate::{etcd, mongodb, mysql, postgres, s3};

/// If this variable is set, a missing server is a failure instead of a reason to ignore a test.
const REQUIRED: &str = "QUORLOCK_REQUIRE_REDIS";

/// A feature that a test needs and that not every version of a server has. Without it, the test is listed as ignored,
/// with the reason.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    since: Version,
    products: &'static [Product],
    /// Whether the server was built with the feature, and what the test needs beside it is there.
    is_built: fn() -> bool,
    reason: &'static str,
}

impl Needs {
    /// Users with rights.
    pub const USERS: Needs = Needs::since(6, 0, "needs ACLs, which came with Redis 6");

    /// Users with rights to channels.
    pub const CHANNELS: Needs = Needs::since(6, 2, "rights to channels came with Redis 6.2");

    /// A server that reports changes of keys.
    pub const REPORTS: Needs = Needs::since(6, 0, "reports of changed keys came with Redis 6");

    /// A server that counts its errors.
    pub const ERROR_COUNTS: Needs = Needs::since(6, 2, "INFO counts errors since Redis 6.2");

    /// A node of a cluster whose bus has a port of its own.
    pub const BUS_PORTS: Needs = Needs::since(7, 0, "needs cluster-port, of Redis 7");

    /// A server that speaks TLS.
    pub const TLS: Needs = Needs {
        is_built: server::speaks_tls,
        ..Needs::since(6, 0, "this server was built without TLS")
    };

    /// `min-replicas-to-write` applies to scripts.
    pub const REPLICAS_FOR_SCRIPTS: Needs = Needs::since(
        6,
        2,
        "Redis 5 lets scripts write also with too few replicas",
    );

    /// Errors that a script passes on unchanged, and a statistic of them.
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

    /// A PostgreSQL server beside Redis.
    pub const POSTGRES: Needs = Needs {
        is_built: || postgres::missing().is_none(),
        ..Needs::since(5, 0, "needs PostgreSQL: run tests/stores.sh")
    };

    /// A MariaDB server beside Redis.
    pub const MYSQL: Needs = Needs {
        is_built: || mysql::missing().is_none(),
        ..Needs::since(5, 0, "needs MariaDB: run tests/stores.sh")
    };

    /// An etcd server beside Redis.
    pub const ETCD: Needs = Needs {
        is_built: || etcd::missing().is_none(),
        ..Needs::since(5, 0, "needs etcd: run tests/stores.sh")
    };

    /// A server that speaks the protocol of MongoDB beside Redis.
    pub const MONGODB: Needs = Needs {
        is_built: || mongodb::missing().is_none(),
        ..Needs::since(5, 0, "needs mongo-java-server: run tests/stores.sh")
    };

    /// A server of S3 beside Redis.
    pub const S3: Needs = Needs {
        is_built: || s3::missing().is_none(),
        ..Needs::since(5, 0, "needs versitygw: run tests/stores.sh")
    };

    /// A server that tells what a user lacks.
    pub const TOLD_RIGHTS: Needs = Needs::since(
        7,
        0,
        "before Redis 7 a server does not tell what a user lacks",
    );

    /// The error texts of Redis 7, which the simulated server has.
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

    /// Returns the reason why the installed server is not suitable, if there is one.
    fn missing(self) -> Option<&'static str> {
        let (product, version) = server::version()?;
        let will_do =
            self.since <= version && self.products.contains(&product) && (self.is_built)();
        (!will_do).then_some(self.reason)
    }
}

/// The time limit of one test.
const BOUND: Duration = Duration::from_secs(120);

/// Runs all trials as the arguments of the process request, and exits. Without `--test-threads`, this many run at once: tests of
/// servers mostly wait, so more of them than cores can run, and of tests that share servers no more than there are servers, because
/// a test's bound of time includes its wait for one.
pub fn run(at_once: usize, trials: Vec<Trial>) -> ! {
    let is_required = std::env::var_os(REQUIRED).is_some_and(|value| !value.is_empty());
    let is_missing = !is_required && !server::is_installed();
    let missing = is_missing.then_some("needs redis-server: run ./test.sh");
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(at_once);
    conclude(&arguments, trials, missing).exit()
}

/// Runs all trials, or ignores them because of what is `missing`. Returns the outcome.
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

/// Creates a test from an async function, which runs on a separate runtime.
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

/// Creates a test that needs a feature of the server.
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

/// Defines the function `trials()` for async functions: `server_tests![this_holds, that_holds];`. `USERS: this_holds`
/// states one of the [`Needs`](crate::trials::Needs) of a test.
#[macro_export]
macro_rules! server_tests {
    ($($first:ident $(: $second:ident)?),* $(,)?) => {
        /// Returns the tests of this file.
        pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
            vec![$($crate::server_test!($first $(: $second)?)),*]
        }
    };
}

/// One test of [`server_tests`].
#[macro_export]
macro_rules! server_test {
    ($test:ident) => {
        $crate::trials::trial(stringify!($test), $test)
    };
    ($needs:ident: $test:ident) => {
        $crate::trials::trial_where($crate::trials::Needs::$needs, stringify!($test), $test)
    };
}
