//! What happens in a simulated run: the faults, and the seed of everything else.

use std::time::Duration;

use super::super::clock::Moment;

pub(super) const LEASE: Duration = Duration::from_secs(1);

/// The longest time for which a process that is runnable does not run. A quarter of the reserve is 5 ms.
pub(super) const LATENCY: Duration = Duration::from_millis(3);

/// Random numbers from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns true once in `n`.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

pub(super) fn ms(millis: u64) -> Moment {
    Moment::of_nanos(millis * 1_000_000)
}

/// A process of `quorlock`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Who {
    Wrapper,
    Guardian,
    Sentry,
}

impl Who {
    pub(super) const ALL: [Who; 3] = [Who::Wrapper, Who::Guardian, Who::Sentry];
}

/// What a signal does to a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Stopped,
    Continued,
    Killed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) at: Moment,
    pub(super) who: Who,
    pub(super) fate: Fate,
}

/// What happens in one run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) members: usize,
    pub(super) faults: Vec<Fault>,
    /// Members that do not answer, and from when until when.
    pub(super) silences: Vec<(usize, Moment, Moment)>,
    /// A member whose claim is deleted at this time.
    pub(super) deletion: Option<(usize, Moment)>,
    /// Whether another client takes every claim that becomes free.
    pub(super) has_rival: bool,
    /// When the command ends by itself.
    pub(super) ends: Moment,
    pub(super) heeds_term: bool,
    /// Whether another process of the group stays when the command ends by itself.
    pub(super) leaves_child: bool,
}

impl Plan {
    /// A run in which nothing happens for two seconds.
    pub(super) fn quiet(seed: u64, members: usize) -> Self {
        Plan {
            seed,
            members,
            faults: Vec::new(),
            silences: Vec::new(),
            deletion: None,
            has_rival: true,
            ends: ms(2_000),
            heeds_term: false,
            leaves_child: false,
        }
    }

    /// A plan that a seed draws.
    pub(super) fn drawn(seed: u64) -> Self {
        let mut random = Random(seed);
        let members = [1, 3, 5][random.below(3) as usize];
        let mut plan = Plan::quiet(seed, members);
        plan.heeds_term = random.one_in(2);
        plan.leaves_child = random.one_in(2);
        plan.has_rival = random.one_in(2);
        plan.ends = ms(1_500 + random.below(3_000));
        for _ in 0..random.below(2 + members as u64) {
            let from = 1 + random.below(2_000);
            let member = random.below(members as u64) as usize;
            plan.silences
                .push((member, ms(from), ms(from + random.below(2_500))));
        }
        if random.one_in(2) {
            let member = random.below(members as u64) as usize;
            let at = 400 + random.below(1_600);
            plan.deletion = Some((member, ms(at)));
            // Without a silent member the others have terms that are as late as that of the deleted claim.
            let from = at.saturating_sub(random.below(800));
            for silent in 1..=members / 2 {
                let silent = (member + silent) % members;
                let to = from + random.below(1_500);
                plan.silences.push((silent, ms(from), ms(to)));
            }
        }
        for _ in 0..random.below(6) {
            let at = ms(1 + random.below(3_000));
            let fate = [Fate::Stopped, Fate::Stopped, Fate::Continued, Fate::Killed]
                [random.below(4) as usize];
            // One signal reaches any set of the processes, as that of `killall` does.
            for who in Who::ALL {
                if random.one_in(2) {
                    plan.faults.push(Fault { at, who, fate });
                }
            }
        }
        plan.faults.sort_by_key(|fault| fault.at);
        plan
    }
}
