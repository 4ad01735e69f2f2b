//! Cases in which Redisson itself is wrong or our behaviour differs from Redisson's. Each test shows both behaviours.
//!
//! The cases whose names begin with W and a number are described in `docs/src/redisson.md` under that name.

mod fair;
mod leases;
mod modes;
mod network;
mod read_write;
mod tokens;

use libtest_mimic::Trial;
use quorlock_testbed::trials::trial;
use quorlock_tests::clients::claim_of;

use super::mode::Mode;
use super::party::Party;
use super::stage::{Side, Stage, Version, locks_at, servers};

/// Returns the tests of these files.
pub(crate) fn trials(version: &'static Version) -> Vec<Trial> {
    macro_rules! trials {
        ($($file:ident::$test:ident),* $(,)?) => {
            vec![$({
                let stage = Stage::new(version, Mode::Reentrant, Side::Jvm);
                let name = format!("{}::differences::{}", version.number, stringify!($test));
                trial(&name, || $file::$test(stage))
            }),*]
        };
    }
    trials![
        leases::w1_a_shorter_lease_on_entering_again,
        network::w2_an_acquisition_without_an_answer,
        network::w3_a_release_without_an_answer,
        modes::w4_two_kinds_of_lock_on_one_name,
        leases::w5_a_write_lock_that_is_entered_again,
        fair::w6_a_waiter_with_a_clock_of_its_own,
        fair::a_plain_lock_beside_the_queue,
        fair::a_waiter_that_is_dead,
        tokens::w7_a_token_counter_that_expires,
        tokens::tokens_on_entering_again,
        leases::the_lease_of_a_multi_lock,
        leases::a_multi_lock_of_which_one_lock_is_lost,
        read_write::a_writer_that_goes_on_reading,
        read_write::a_reader_whose_lease_has_ended,
    ]
}

impl Stage {
    async fn jvm(&self, mode: Mode) -> Party {
        Party::jvm(self.version.jvm(), mode, &self.name).await
    }

    async fn rust(&self, mode: Mode) -> Party {
        Party::rust(&locks_at(mode.addresses()).await, mode, &self.name)
    }

    /// The count at which a plain lock is held.
    fn count(&self) -> Option<u32> {
        claim_of(&servers()[0], &self.name).map(|(_, count)| count)
    }
}
