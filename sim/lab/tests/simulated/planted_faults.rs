//! Planted faults must be found. A simulator that cannot fail shows nothing.
//!
//! Each row has a variant of a lock with one flaw, the workload and the faults that expose the flaw, the property that
//! breaks, and the number of seeds within which it must break. The variant without a flaw runs the same plans and must
//! break nothing.

mod clusters;
mod groups;
mod plans;
mod stores;

use std::rc::Rc;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::generator::PlanGenerator;
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, Plan, WorkloadKind};

use self::plans::{
    as_drawn, at_the_deadline, clocks_of_clients_off, contention, dropped, everything_twice,
    far_away, forgetful, larger_crowd, led_and_cut_off, led_at_the_deadline, led_by_slow_replies,
    one_name, overtaken, refusing, renewed_and_killed, set_back, slow_replies,
    slow_replies_then_none, still_at_it, two_names_for_two, unattended,
};

/// The variants that must break nothing. With `SET NX`, a node refuses the owner of the claim itself, which then acquires
/// as another owner. A round that is won too late is noticed when the lock is used.
const RIGHT: [Variant; 4] = [
    Variant::Product,
    Variant::Published,
    Variant::SetNx,
    Variant::LateWin,
];

#[test]
fn every_variant_is_planted_or_right() {
    for variant in Variant::ALL {
        let is_planted = PLANTED.contains(variant)
            || groups::PLANTED.contains(variant)
            || clusters::PLANTED.contains(variant)
            || stores::PLANTED.contains(variant);
        assert_ne!(is_planted, RIGHT.contains(variant), "{variant}");
    }
}

/// The number of seeds for each lock with faults inside its assumptions.
const CLEAN_SEEDS: u64 = 100;

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    for variant in RIGHT {
        for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
            let generator = PlanGenerator {
                lock,
                variant,
                ..PlanGenerator::default()
            };
            for seed in 0..CLEAN_SEEDS {
                let verdict = run(&Rc::new(generator.plan(seed))).verdict;
                let is_clean = !matches!(verdict, Verdict::Violated(_));
                assert!(is_clean, "{variant}, {lock:?}, seed {seed}: {verdict:?}");
            }
        }
    }
}

/// The number of seeds for each lock with queues or readers.
const MODE_SEEDS: u64 = 40;

#[test]
fn nothing_is_found_about_the_queues_and_readers_of_the_product() {
    use LockKind::{Multi, Redlock, Single};
    for (workload, locks) in [
        (WorkloadKind::Fair, &[Single, Multi][..]),
        (WorkloadKind::ReadWrite, &[Single, Multi, Redlock]),
    ] {
        for lock in locks.iter().copied() {
            let generator = PlanGenerator {
                lock,
                workload: Some(workload),
                ..PlanGenerator::default()
            };
            let mut turns = 0;
            for seed in 0..MODE_SEEDS {
                let run = run(&Rc::new(generator.plan(seed)));
                let verdict = &run.verdict;
                let is_clean = !matches!(verdict, Verdict::Violated(_));
                assert!(is_clean, "{workload:?}, {lock:?}, seed {seed}: {verdict:?}");
                turns += run.history.turns.len() as u64;
            }
            // Nodes must have given enough answers. Otherwise nothing was checked.
            assert!(MODE_SEEDS * 100 < turns, "{workload:?}, {lock:?}: {turns}");
        }
    }
}

/// A planted flaw, and how it is exposed.
struct Planted {
    variant: Variant,
    lock: LockKind,
    workload: WorkloadKind,
    /// The kinds of faults that are drawn, as on the command line.
    faults: &'static str,
    /// Further changes of the plan.
    shape: fn(&mut Plan),
    breaks: Property,
    within_seeds: u64,
}

impl Planted {
    fn plan(&self, seed: u64, variant: Variant) -> Rc<Plan> {
        let generator = PlanGenerator {
            faults: self.faults.parse().expect("kinds of fault"),
            lock: self.lock,
            workload: Some(self.workload),
            variant,
            ..PlanGenerator::default()
        };
        let mut plan = generator.plan(seed);
        (self.shape)(&mut plan);
        quorlock_sim_plan::check(&plan).expect("a plan that can be run");
        Rc::new(plan)
    }

    fn broken(&self, seed: u64, variant: Variant) -> Option<Property> {
        match run(&self.plan(seed, variant)).verdict {
            Verdict::Violated(violation) => Some(violation.property),
            _ => None,
        }
    }

    fn is_found(&self) {
        let mut seeds = 0..self.within_seeds;
        let found = seeds.find(|seed| self.broken(*seed, self.variant) == Some(self.breaks));
        let name = self.variant;
        assert!(
            found.is_some(),
            "{name}: {} was not broken in {} seeds",
            self.breaks,
            self.within_seeds
        );
        let right = match self.variant.has_product_clients() {
            true => Variant::Product,
            false => Variant::Published,
        };
        for seed in 0..self.within_seeds {
            let broken = self.broken(seed, right);
            assert_eq!(broken, None, "{name}, but with nothing wrong: seed {seed}");
        }
    }
}

macro_rules! planted {
    ($($name:ident: $variant:ident, $lock:ident, $work:ident, $faults:literal, $shape:ident => $breaks:ident within $seeds:literal;)+) => {
        /// All variants that are tested here.
        const PLANTED: &[Variant] = &[$(Variant::$variant),+];

        $(#[test]
        fn $name() {
            Planted {
                variant: Variant::$variant,
                lock: LockKind::$lock,
                workload: WorkloadKind::$work,
                faults: $faults,
                shape: $shape,
                breaks: Property::$breaks,
                within_seeds: $seeds,
            }
            .is_found();
        })+
    };
}

// Variant, lock, workload, kinds of faults, shape of the plan => property that breaks within this many seeds.
planted! {
    half_of_the_nodes_are_enough: HalfQuorum, Redlock, MutualExclusion, "none", as_drawn => Exclusion within 10;
    a_holder_ignores_its_deadline: ValidityIgnored, Redlock, MutualExclusion, "none", at_the_deadline => Exclusion within 10;
    a_lease_counts_from_the_reply: LeaseFromReply, Single, MutualExclusion, "none", slow_replies => Exclusion within 30;
    an_extension_counts_from_the_reply: ExtensionFromReply, Single, LongWork, "none", slow_replies_then_none => Exclusion within 20;
    a_claim_is_deleted_unchecked: PlainDelete, Single, MutualExclusion, "inside", as_drawn => Ownership within 20;
    nodes_count_up_and_down: Increments, Single, Reentrant, "none", everything_twice => Exclusion within 20;
    renewals_add_up: AddingRenewals, Single, MutualExclusion, "none", renewed_and_killed => Expiry within 20;
    one_number_serves_all_rounds: ReusedNumber, Redlock, MutualExclusion, "none", everything_twice => Exclusion within 10;
    confirmations_count_for_the_last_pass: LastPassCredited, Single, LongWork, "none", slow_replies_then_none => Exclusion within 20;
    a_fresh_grant_counts_as_renewal: ExtendOrSet, Redlock, MutualExclusion, "none", unattended => Exclusion within 60;
    plain_counters_are_tokens: CounterTokens, Redlock, FencedWrites, "inside", as_drawn => Fencing within 10;
    a_message_is_taken_for_a_grant: WakeIsGrant, Single, MutualExclusion, "none", as_drawn => Exclusion within 10;
    waiters_wait_for_messages_only: MessagesOnly, Single, MutualExclusion, "crash-client", one_name => Progress within 100;
    messages_end_random_pauses: CutBackOff, Redlock, MutualExclusion, "none", contention => Progress within 10;
    random_pauses_are_even: EvenBackOff, Redlock, MutualExclusion, "none", larger_crowd => Progress within 10;
    deadlines_go_by_the_wall_clock: WallClock, Single, MutualExclusion, "none", set_back => Exclusion within 10;
    all_clients_share_one_identity: SharedOwner, Redlock, MutualExclusion, "none", as_drawn => Exclusion within 10;
    clients_know_other_members: MixedMembership, Redlock, MutualExclusion, "none", as_drawn => Exclusion within 20;
    several_locks_are_taken_unchecked: UncheckedMulti, Multi, MutualExclusion, "none", slow_replies => Exclusion within 40;
    names_are_kept_while_the_next_is_waited_for: HoldAndWait, Multi, Overlapping, "none", two_names_for_two => Progress within 20;
    a_lease_compounds: CompoundingLease, Single, MutualExclusion, "crash-client", one_name => Progress within 40;
    the_watchdog_outlives_the_release: ImmortalWatchdog, Redlock, MutualExclusion, "inside", as_drawn => Orphans within 40;
    a_cancelled_round_keeps_what_it_has: CancelKeeps, Multi, Overlapping, "cancel", as_drawn => Orphans within 50;
    a_dropped_guard_keeps_its_hold: DropKeeps, Single, LongWork, "none", dropped => Progress within 10;
    a_release_ends_at_what_was_lost: ReleaseStops, Multi, LongWork, "none", forgetful => Progress within 20;
    a_round_is_never_held_against_the_time: UncheckedRound, Redlock, MutualExclusion, "none", far_away => Exclusion within 50;
    set_nx_is_undone_by_del: SetNxDel, Single, MutualExclusion, "inside", as_drawn => Ownership within 20;
    an_expiry_follows_the_key: SetNxThenExpire, Single, MutualExclusion, "crash-client", one_name => Progress within 100;
    redisson_enters_what_it_has_unlocked: RedissonRedLock, Redlock, MutualExclusion, "none", overtaken => Fencing within 20;
    a_failed_renewal_is_the_last: SilentLoss, Redlock, LongWork, "none", refusing => Exclusion within 20;
    whoever_comes_last_is_served_first: NewestFirst, Single, Fair, "none", one_name => Fairness within 10;
    places_end_by_the_clocks_of_clients: ClientClockQueue, Single, Fair, "none", clocks_of_clients_off => Fairness within 10;
    a_waiter_that_gives_up_keeps_its_place: KeptPlace, Single, Fair, "none", still_at_it => Progress within 10;
    readers_renew_each_other: ZombieReaders, Single, ReadWrite, "none", renewed_and_killed => ReadWrite within 20;
    readers_share_one_lease: OneReadLease, Single, ReadWrite, "none", at_the_deadline => ReadWrite within 10;
    a_writer_joins_readers: WriterBesideReaders, Single, ReadWrite, "none", one_name => ReadWrite within 5;
    a_writer_joins_readers_of_a_majority: WriterBesideReaders, Redlock, ReadWrite, "none", one_name => ReadWrite within 5;
    a_reader_waits_for_itself: WaitingUpgrade, Single, ReadWrite, "none", still_at_it => Progress within 10;
    a_leader_works_until_it_is_told: ToldLeader, Single, Leading, "pause-client", led_at_the_deadline => Leadership within 20;
    leaders_believe_until_the_lease_of_the_reply: ExtensionFromReply, Single, Leading, "none", led_by_slow_replies => Leadership within 40;
    leaders_ignore_their_deadline: ValidityIgnored, Redlock, Leading, "none", led_and_cut_off => Leadership within 20;
    terms_count_elections: CountedTerms, Redlock, Leading, "none", one_name => Terms within 5;
    terms_go_by_the_clocks_of_leaders: ClockTerms, Redlock, Leading, "inside", one_name => Terms within 20;
    del_comes_after_get: GetThenDel, Single, MutualExclusion, "inside", as_drawn => Ownership within 30;
}
