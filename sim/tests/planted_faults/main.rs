//! Faults that are planted on purpose must be found: a simulator that cannot fail shows nothing.
//!
//! Each row is a variant of a lock with one thing wrong, the work and the faults that bring it out, the property that
//! breaks, and within how many seeds that must be seen. The variant in which nothing is wrong runs the same plans and
//! must break nothing.

use std::rc::Rc;

use quorlock_sim::checker::Property;
use quorlock_sim::fault::{
    ClientFault, Direction, Fault, FaultKind, LinkFault, NodeFault, ServerError,
};
use quorlock_sim::plan::{LockKind, Plan, Watchdog, WorkloadKind};
use quorlock_sim::plan_file;
use quorlock_sim::simulation::{Verdict, run};
use quorlock_sim::span::{Span, Step};
use quorlock_sim::swarm::Swarm;
use quorlock_sim::variant::Variant;

/// Those in which nothing is wrong. (`SET NX` refuses a claim to its own owner, who then asks as another one. A win that
/// came too late is noticed when it is used.)
const RIGHT: [Variant; 4] = [
    Variant::Product,
    Variant::Published,
    Variant::SetNx,
    Variant::LateWin,
];

#[test]
fn every_variant_is_planted_or_right() {
    for variant in Variant::ALL {
        let is_planted = PLANTED.contains(variant);
        assert_ne!(is_planted, RIGHT.contains(variant), "{variant}");
    }
}

/// Each lock with faults inside its assumptions, for so many seeds.
const CLEAN_SEEDS: u64 = 100;

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    for variant in RIGHT {
        for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
            let swarm = Swarm {
                lock,
                variant,
                ..Swarm::default()
            };
            for seed in 0..CLEAN_SEEDS {
                let verdict = run(&Rc::new(swarm.plan(seed))).verdict;
                let is_clean = !matches!(verdict, Verdict::Violated(_));
                assert!(is_clean, "{variant}, {lock:?}, seed {seed}: {verdict:?}");
            }
        }
    }
}

/// Each lock with queues or readers, for so many.
const MODE_SEEDS: u64 = 40;

#[test]
fn nothing_is_found_about_the_queues_and_readers_of_the_product() {
    use LockKind::{Multi, Redlock, Single};
    for (workload, locks) in [
        (WorkloadKind::Fair, &[Single, Multi][..]),
        (WorkloadKind::ReadWrite, &[Single, Multi, Redlock]),
    ] {
        for lock in locks.iter().copied() {
            let swarm = Swarm {
                lock,
                workload: Some(workload),
                ..Swarm::default()
            };
            let mut turns = 0;
            for seed in 0..MODE_SEEDS {
                let run = run(&Rc::new(swarm.plan(seed)));
                let verdict = &run.verdict;
                let is_clean = !matches!(verdict, Verdict::Violated(_));
                assert!(is_clean, "{workload:?}, {lock:?}, seed {seed}: {verdict:?}");
                turns += run.history.turns.len() as u64;
            }
            // What no node answered was not checked either.
            assert!(MODE_SEEDS * 100 < turns, "{workload:?}, {lock:?}: {turns}");
        }
    }
}

/// What is planted, and how it comes to light.
struct Planted {
    variant: Variant,
    lock: LockKind,
    workload: WorkloadKind,
    /// Which kinds of fault are drawn, as on the command line.
    faults: &'static str,
    /// What is set beside that.
    shape: fn(&mut Plan),
    breaks: Property,
    within_seeds: u64,
}

impl Planted {
    fn plan(&self, seed: u64, variant: Variant) -> Rc<Plan> {
        let swarm = Swarm {
            faults: self.faults.parse().expect("kinds of fault"),
            lock: self.lock,
            workload: Some(self.workload),
            variant,
            ..Swarm::default()
        };
        let mut plan = swarm.plan(seed);
        (self.shape)(&mut plan);
        plan_file::check(&plan).expect("a plan that can be run");
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

/// Nothing is set beside what was drawn.
fn as_drawn(_: &mut Plan) {}

/// All clients want one lock.
fn one_name(plan: &mut Plan) {
    plan.workload.names = 1;
}

/// Two clients want two names, and both must still be at it in the second half.
fn two_names_for_two(plan: &mut Plan) {
    plan.clients = 2;
    plan.workload.names = 2;
    plan.healed_at = Some(Span::secs(1));
    plan.progress_within = Some(Span::millis(900));
}

/// Sections last for about a lease, and holders look often whether they may stay.
fn at_the_deadline(plan: &mut Plan) {
    one_name(plan);
    let workload = &mut plan.workload;
    workload.lease = Span::millis(200);
    workload.hold_least = Span::millis(150);
    workload.hold_most = Span::millis(300);
    workload.think_least = Span::ZERO;
    workload.think_most = Span::millis(5);
    workload.looks = 60;
}

/// The same, and the wall clock of one client is set back every now and then.
fn set_back(plan: &mut Plan) {
    at_the_deadline(plan);
    plan.faults.extend((1..10).map(|n| {
        Fault::of_client(
            Span::millis(170 * n),
            0,
            ClientFault::Step {
                by: Step::millis(-60),
            },
        )
    }));
}

/// The same with longer leases, and the replies to one of two clients take their time.
fn slow_replies(plan: &mut Plan) {
    at_the_deadline(plan);
    plan.clients = 2;
    plan.duration = Span::secs(8);
    let workload = &mut plan.workload;
    workload.lease = Span::secs(1);
    workload.hold_least = Span::millis(1_050);
    workload.hold_most = Span::millis(1_200);
    workload.looks = 300;
    plan.network.least = Span::micros(100);
    plan.network.most = Span::millis(1);
    plan.faults.push(Fault {
        at: Span::ZERO,
        lasts: Span::secs(8),
        what: FaultKind::Link {
            clients: vec![0],
            nodes: nodes(plan),
            direction: Direction::ToClient,
            fault: LinkFault::Delay {
                least: Span::millis(40),
                most: Span::millis(40),
            },
        },
    });
}

/// The first client's replies take half a lease, then its requests are lost.
fn slow_replies_then_none(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 2;
    plan.duration = Span::secs(4);
    plan.workload.lease = Span::millis(300);
    plan.workload.think_most = plan.workload.think_least;
    plan.network.call_timeout = Span::secs(1);
    for start in [300, 1_400, 2_500] {
        let at = Span::millis(start + plan.seed % 7 * 40);
        plan.faults.push(Fault {
            at,
            lasts: Span::millis(300),
            what: FaultKind::Link {
                clients: vec![0],
                nodes: nodes(plan),
                direction: Direction::ToClient,
                fault: LinkFault::Delay {
                    least: Span::millis(150),
                    most: Span::millis(150),
                },
            },
        });
        plan.faults.push(Fault {
            at: at.plus(Span::millis(140)),
            lasts: Span::millis(600),
            what: FaultKind::Link {
                clients: vec![0],
                nodes: nodes(plan),
                direction: Direction::ToNode,
                fault: LinkFault::Cut,
            },
        });
    }
}

/// Sections may last for several leases under the watchdog, nobody looks before their end, and the first client is cut
/// off again and again.
fn unattended(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 2;
    let workload = &mut plan.workload;
    workload.lease = Span::millis(100);
    workload.watchdog = Watchdog::On;
    workload.hold_least = Span::millis(10);
    workload.hold_most = Span::millis(500);
    workload.looks = 1;
    for n in 0..5 {
        plan.faults.push(Fault {
            at: Span::millis(50 + 350 * n),
            lasts: Span::millis(200),
            what: FaultKind::Link {
                clients: vec![0],
                nodes: nodes(plan),
                direction: Direction::Both,
                fault: LinkFault::Cut,
            },
        });
    }
}

/// The first node forgets what it has again and again; the others do not.
fn forgetful(plan: &mut Plan) {
    one_name(plan);
    plan.faults
        .extend((1..7).map(|n| Fault::of_node(Span::millis(180 * n), 0, NodeFault::Flush)));
}

/// What clients wait for is dropped again and again.
fn dropped(plan: &mut Plan) {
    one_name(plan);
    for n in 1..10 {
        plan.faults.push(Fault::of_client(
            Span::millis(120 * n),
            u16::try_from(n).expect("small") % plan.clients,
            ClientFault::Cancel { nth: 2 },
        ));
    }
}

/// For one of three clients, asking a node takes longer than the lease.
fn far_away(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 3;
    plan.nodes.count = 3;
    plan.network.call_timeout = Span::millis(300);
    let workload = &mut plan.workload;
    workload.lease = Span::millis(200);
    workload.hold_most = workload.hold_least.plus(Span::millis(60));
    plan.faults.push(Fault {
        at: Span::ZERO,
        lasts: plan.duration,
        what: FaultKind::Link {
            clients: vec![0],
            nodes: nodes(plan),
            direction: Direction::Both,
            fault: LinkFault::Delay {
                least: Span::millis(115),
                most: Span::millis(130),
            },
        },
    });
}

/// Every request comes twice, the second time much later.
fn everything_twice(plan: &mut Plan) {
    one_name(plan);
    plan.faults.push(Fault {
        at: Span::ZERO,
        lasts: plan.duration,
        what: FaultKind::Link {
            clients: (0..plan.clients).collect(),
            nodes: nodes(plan),
            direction: Direction::ToNode,
            fault: LinkFault::Duplicate {
                of_million: 1_000_000,
                most: Span::millis(60),
            },
        },
    });
}

fn nodes(plan: &Plan) -> Vec<u16> {
    (0..plan.nodes.count).collect()
}

/// Eight clients want a majority of fifteen nodes, and come to each node in another order.
fn crowd(plan: &mut Plan) {
    plan.clients = 8;
    plan.nodes.count = 15;
    plan.duration = Span::secs(1);
    plan.progress_within = Some(plan.duration);
    plan.network.least = Span::millis(1);
    plan.network.most = Span::millis(9);
    let workload = &mut plan.workload;
    workload.names = 1;
    workload.lease = Span::secs(1);
    workload.think_least = Span::ZERO;
    workload.think_most = Span::millis(1);
    workload.backoff_cap = Span::secs(1);
}

/// The same with more clients.
fn larger_crowd(plan: &mut Plan) {
    crowd(plan);
    plan.clients = 16;
}

/// The wall clock of one client is ten minutes ahead, that of another as much behind.
fn clocks_of_clients_off(plan: &mut Plan) {
    one_name(plan);
    for (client, by) in [(0, 600_000), (1, -600_000)] {
        let by = Step::millis(by);
        let at = Span::ZERO;
        plan.faults
            .push(Fault::of_client(at, client, ClientFault::Step { by }));
    }
}

/// All clients want one lock, and must be at it in the second half yet.
fn still_at_it(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 4;
    plan.workload.watchdog = Watchdog::On;
    plan.healed_at = Some(Span::secs(1));
    plan.progress_within = Some(Span::millis(900));
}

/// Work takes longer than a lease, and one node refuses everything for a while.
fn refusing(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 2;
    plan.workload.hold_least = Span::millis(100);
    plan.workload.hold_most = Span::millis(400);
    plan.faults.push(
        Fault::of_node(
            Span::millis(300),
            0,
            NodeFault::Error {
                error: ServerError::Busy,
            },
        )
        .lasting(Span::millis(500)),
    );
}

/// Holders of one lock stay for long enough to be renewed, and one of three clients dies again and again.
fn renewed_and_killed(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 3;
    let workload = &mut plan.workload;
    workload.watchdog = Watchdog::On;
    workload.lease = Span::millis(90);
    workload.hold_least = Span::millis(20);
    workload.hold_most = Span::millis(160);
    workload.think_least = Span::millis(20);
    workload.think_most = Span::millis(60);
    plan.faults.extend((1..10).map(|n| {
        Fault::of_client(Span::millis(180 * n), 0, ClientFault::Crash).lasting(Span::millis(40))
    }));
}

/// Leaders work for about two leases, look often, and stand still for longer than one at times.
fn led_at_the_deadline(plan: &mut Plan) {
    one_name(plan);
    let workload = &mut plan.workload;
    workload.lease = Span::millis(100);
    workload.hold_least = Span::millis(100);
    workload.hold_most = Span::millis(300);
    workload.looks = 40;
    let clients = plan.clients;
    plan.faults.extend((1..10).map(|n| {
        let client = u16::try_from(n).expect("small") % clients;
        Fault::of_client(Span::millis(180 * n), client, ClientFault::Pause)
            .lasting(Span::millis(150))
    }));
}

/// The first client's replies take half a lease, and then nothing it sends arrives: its lease is not renewed.
fn led_by_slow_replies(plan: &mut Plan) {
    slow_replies_then_none(plan);
    let workload = &mut plan.workload;
    workload.hold_least = Span::millis(400);
    workload.hold_most = Span::millis(700);
    workload.looks = 200;
}

/// The first client is cut off again and again, for longer than its lease.
fn led_and_cut_off(plan: &mut Plan) {
    unattended(plan);
    plan.workload.looks = 100;
}

macro_rules! planted {
    ($($name:ident: $variant:ident, $lock:ident, $work:ident, $faults:literal, $shape:ident => $breaks:ident within $seeds:literal;)+) => {
        /// All variants that are planted.
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

// What is wrong: the variant, the lock, the work, kinds of fault, what is set => what breaks within so many seeds.
planted! {
    half_of_the_nodes_are_enough: HalfQuorum, Redlock, MutualExclusion, "none", as_drawn => Exclusion within 10;
    a_holder_ignores_its_deadline: ValidityIgnored, Redlock, MutualExclusion, "none", at_the_deadline => Exclusion within 10;
    a_lease_counts_from_the_reply: LeaseFromReply, Single, MutualExclusion, "none", slow_replies => Exclusion within 30;
    an_extension_counts_from_the_reply: ExtensionFromReply, Single, LongWork, "none", slow_replies_then_none => Exclusion within 20;
    only_what_was_granted_is_released: GrantedReleasedOnly, Redlock, MutualExclusion, "inside", as_drawn => Progress within 50;
    a_claim_is_deleted_unchecked: PlainDelete, Single, MutualExclusion, "inside", as_drawn => Ownership within 20;
    nodes_count_up_and_down: Increments, Single, Reentrant, "none", everything_twice => Exclusion within 20;
    one_number_serves_all_rounds: ReusedNumber, Redlock, MutualExclusion, "none", everything_twice => Exclusion within 10;
    confirmations_count_for_the_last_pass: LastPassCredited, Single, LongWork, "none", slow_replies_then_none => Exclusion within 20;
    a_fresh_grant_counts_as_renewal: ExtendOrSet, Redlock, MutualExclusion, "none", unattended => Exclusion within 60;
    the_maximum_is_the_token: MaximumToken, Redlock, FencedWrites, "inside", as_drawn => Fencing within 20;
    plain_counters_are_tokens: CounterTokens, Redlock, FencedWrites, "inside", as_drawn => Fencing within 10;
    a_message_is_taken_for_a_grant: WakeIsGrant, Single, MutualExclusion, "none", as_drawn => Exclusion within 10;
    waiters_wait_for_messages_only: MessagesOnly, Single, MutualExclusion, "crash-client", one_name => Progress within 100;
    messages_end_random_pauses: CutBackOff, Redlock, MutualExclusion, "none", crowd => Progress within 10;
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
    the_maximum_is_the_term: MaximumToken, Redlock, Leading, "inside", one_name => Terms within 60;
    del_comes_after_get: GetThenDel, Single, MutualExclusion, "inside", as_drawn => Ownership within 30;
}
