//! Runs that do not end by themselves are stopped and reported.

use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::Duration;

use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_lab::client::context::Context;
use quorlock_sim_lab::simulation::Simulation;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;

fn plan() -> Plan {
    Plan {
        clients: 2,
        duration: SimTime::millis(500),
        ..Plan::default()
    }
}

/// Runs client 1 with this work from 100 ms on, while another client acquires and releases.
fn run<F: Future<Output = ()> + 'static>(
    does: impl Fn(Context) -> F + Clone + Send + Sync + 'static,
) -> Run {
    let simulation = Simulation::new(plan(), move |ctx: Context| {
        let does = does.clone();
        async move {
            ctx.sleep(Duration::from_millis(100)).await;
            if ctx.client() == 1 {
                does(ctx).await;
                return;
            }
            let lock = ctx.lock(["a"]);
            while let Ok(guard) = lock.acquire().await {
                let section = ctx.critical_section(&guard);
                ctx.sleep(Duration::from_millis(5)).await;
                drop(section);
                let _ = guard.release().await;
            }
        }
    });
    simulation.run(3)
}

/// Checks that the run was stopped soon after 100 ms. Returns the clients that are reported as having run last.
fn stopped(run: &Run) -> Vec<u16> {
    let Verdict::Violated(violation) = &run.verdict else {
        panic!("{:?}", run.verdict);
    };
    assert_eq!(violation.property, Property::Termination);
    assert!(SimTime::millis(100) <= violation.at, "{violation}");
    assert!(violation.at < SimTime::millis(200), "{violation}");
    violation.processes.iter().map(|p| p.client).collect()
}

#[test]
fn a_client_that_wakes_itself_for_ever_is_found() {
    let run = run(|_| {
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    });
    assert_eq!(stopped(&run), [1]);
}

#[test]
fn a_client_that_looks_at_its_clock_for_ever_in_one_step_is_found() {
    let run = run(|ctx| async move {
        let lock = ctx.lock(["b"]);
        let guard = lock.acquire().await.expect("nothing is in the way");
        while guard.is_held() {}
    });
    assert_eq!(stopped(&run), [1]);
}

#[test]
fn clients_whose_time_hardly_passes_are_found() {
    let run = run(|ctx| async move {
        loop {
            ctx.sleep(Duration::from_nanos(1)).await;
        }
    });
    assert!(stopped(&run).iter().all(|client| *client == 1));
}

/// The same program is stopped at the same point when it runs again, and does not affect a later run.
#[test]
fn a_run_after_one_that_was_stopped_is_as_if_there_had_been_none() {
    let alone = run(|_| pending());
    assert_eq!(alone.verdict, Verdict::Holds);
    let spin = || {
        run(|ctx| async move {
            let guard = ctx.lock(["b"]).acquire().await;
            while guard.as_ref().is_ok_and(quorlock::Guard::is_held) {}
        })
    };
    assert_eq!(spin().trace, spin().trace);
    assert_eq!(run(|_| pending()).trace, alone.trace);
}
