//! Many clients that want one name on a majority of nodes: one gets it, as soon as it is free.

use std::rc::Rc;

use quorlock_sim::plan::{LockKind, Plan};
use quorlock_sim::simulation::run;

/// Holds, and commands of all clients, of some seeds.
fn measure(clients: u16) -> (u64, u64) {
    let mut sum = (0, 0);
    for seed in 0..3 {
        let plan = Rc::new(Plan {
            seed,
            clients,
            lock: LockKind::Redlock,
            ..Plan::default()
        });
        let run = run(&plan);
        sum.0 += u64::from(run.history.holds);
        sum.1 += run.counters.commands;
    }
    sum
}

#[test]
fn a_crowd_wins_as_many_holds_as_a_few_and_each_of_it_asks_a_few_times() {
    let (few, _) = measure(3);
    for clients in [10, 20, 40] {
        let (holds, commands) = measure(clients);
        assert!(3 * few <= 4 * holds, "{clients}: {holds} holds, and {few}");
        let bound = 5 * u64::from(clients) * holds;
        assert!(commands <= bound, "{clients}: {commands} of {bound}");
    }
}
