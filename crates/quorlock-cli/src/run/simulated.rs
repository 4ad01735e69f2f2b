//! All processes of a run on simulated time, against a majority of nodes: wrapper, guardian, sentry and command, which
//! are stopped, continued and killed one by one and together. `quorlock leader` runs its command in the same way.
//!
//! The processes decide by the code of production ([`Holding`], [`Guarding`], [`Standing`] and the core's [`Renewal`]).
//! What is modelled is the world: nodes whose claims expire, a rival that takes free claims, signals, pipes, and
//! the kernel, which kills the command with its guardian and continues stopped processes by their alarms. A process that
//! has something to do gets its turn after at most [`plan::LATENCY`].

mod plan;
mod world;

use self::plan::{Fate, Fault, Plan, Random, Who, ms};
use self::world::World;
use super::clock::Moment;

#[test]
fn no_seed_lets_the_command_outlive_its_validity() {
    let (mut free, mut moved_back) = (0, 0);
    for seed in 0..2_000 {
        let world = World::run(Plan::drawn(seed));
        free += u32::from(world.was_free());
        moved_back += world.moved_back();
    }
    // Otherwise nothing was tested.
    assert!(100 < free && 50 < moved_back, "{free}, {moved_back}");
}

/// Every combination of fates but the one that kills all, at every tenth of a renewal's period.
#[test]
fn no_subset_of_processes_that_are_stopped_or_killed_lets_the_command_outlive_its_lease() {
    let fates = [None, Some(Fate::Stopped), Some(Fate::Killed)];
    for members in [1, 3] {
        for at in (1_000..1_340).step_by(34) {
            for case in 0..26 {
                let mut plan = Plan::quiet(at, members);
                plan.ends = Moment::of_nanos(u64::MAX);
                for (power, who) in [1, 3, 9].into_iter().zip(Who::ALL) {
                    let fate = fates[case / power % 3];
                    let fault = |fate| Fault {
                        at: ms(at),
                        who,
                        fate,
                    };
                    plan.faults.extend(fate.map(fault));
                }
                let world = World::run(plan);
                let is_wrapper_spared = case % 3 == 0;
                let is_guardian_spared = case / 3 % 3 != 2;
                assert_eq!(
                    world.is_group_alive(),
                    is_wrapper_spared && is_guardian_spared,
                    "{members} members, at {at}: {case}"
                );
            }
        }
    }
}

/// A guardian and a sentry that were stopped do not act on what was true before.
#[test]
fn a_command_whose_lock_is_renewed_lives_whatever_stops_its_guards() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut plan = Plan::quiet(seed, 3);
        plan.ends = ms(3_000);
        plan.silences
            .push((random.below(3) as usize, ms(1), ms(4_000)));
        for _ in 0..random.below(20) {
            let at = ms(1 + random.below(3_000));
            let who = [Who::Guardian, Who::Sentry][random.below(2) as usize];
            let fate = Fate::Stopped;
            plan.faults.push(Fault { at, who, fate });
        }
        plan.faults.sort_by_key(|fault| fault.at);
        let world = World::run(plan);
        assert_eq!(world.exit(), Some(0), "seed {seed}");
    }
}

/// The failing input of the guardian's deadline: one member is silent, another one's claim is deleted, and the wrapper is
/// stopped when it has learned that.
#[test]
fn a_validity_that_moves_back_ends_the_command_also_if_the_wrapper_is_stopped_then() {
    for stop in [420, 500, 600, 700, 800] {
        for guardian in [None, Some(Fate::Stopped)] {
            let mut plan = Plan::quiet(stop, 3);
            plan.ends = Moment::of_nanos(u64::MAX);
            plan.silences.push((2, ms(1), ms(9_000)));
            plan.deletion = Some((0, ms(370)));
            let fault = |who, fate| Fault {
                at: ms(stop),
                who,
                fate,
            };
            plan.faults.push(fault(Who::Wrapper, Fate::Stopped));
            plan.faults
                .extend(guardian.map(|fate| fault(Who::Guardian, fate)));
            let world = World::run(plan);
            assert!(!world.is_group_alive());
        }
    }
}
