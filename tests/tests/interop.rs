//! Locks that are shared with Redisson on the JVM. `tests/interop/run.sh` runs these tests.

mod interop {
    pub(crate) mod cases;
    pub(crate) mod cluster;
    pub(crate) mod counter;
    pub(crate) mod differences;
    pub(crate) mod jvm;
    pub(crate) mod killed;
    pub(crate) mod mode;
    pub(crate) mod party;
    pub(crate) mod patient;
    pub(crate) mod sentinel;
    pub(crate) mod stage;
    pub(crate) mod table;
}

use interop::stage::VERSIONS;
use interop::{cases, cluster, counter, differences, jvm, killed, sentinel, table};

/// The number of tests that run at the same time. Most of their time they wait, for leases to end or for another party.
const AT_ONCE: usize = 8;

fn main() {
    killed::hold_a_lock_if_asked();
    let trials = VERSIONS.iter().flat_map(|version| {
        [
            cases::trials(version),
            killed::trials(version),
            counter::trials(version),
            differences::trials(version),
            sentinel::trials(version),
            cluster::trials(version),
        ]
    });
    let mut arguments = libtest_mimic::Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let missing = (!jvm::is_wanted()).then_some("needs a JVM: run tests/interop/run.sh");
    let conclusion =
        quorlock_testbed::trials::conclude(&arguments, trials.flatten().collect(), missing);
    if jvm::is_wanted() {
        println!("{}", table::of_all());
    }
    conclusion.exit()
}
