//! A seed always produces the same run: in this process, in another process, and beside other runs.

use std::process::Command;
use std::rc::Rc;

use quorlock_sim_lab::simulation::{run, run_recorded};
use quorlock_sim_plan::LockKind;
use quorlock_sim_plan::generator::{FaultChoice, PlanGenerator};

const LOCKS: [(LockKind, &str); 3] = [
    (LockKind::Single, "single"),
    (LockKind::Multi, "multi"),
    (LockKind::Redlock, "redlock"),
];

fn trace(lock: LockKind, faults: FaultChoice, seed: u64) -> u64 {
    let generator = PlanGenerator {
        lock,
        faults,
        ..PlanGenerator::default()
    };
    run(&Rc::new(generator.plan(seed))).trace
}

#[test]
fn a_seed_tells_one_story_again_and_again_and_two_seeds_tell_two() {
    for (lock, _) in LOCKS {
        let mut traces: Vec<u64> = (0..20)
            .map(|seed| trace(lock, FaultChoice::All, seed))
            .collect();
        let again: Vec<u64> = (0..20)
            .map(|seed| trace(lock, FaultChoice::All, seed))
            .collect();
        assert_eq!(traces, again);
        traces.sort_unstable();
        traces.dedup();
        assert_eq!(traces.len(), 20);
    }
}

#[test]
fn another_process_tells_the_same_story_also_under_load() {
    for (lock, name) in LOCKS {
        for faults in ["inside", "all"] {
            let child = |seed: u64| {
                Command::new(env!("CARGO_BIN_EXE_quorlock-sim"))
                    .args(["run", "--json", "--lock", name, "--faults", faults])
                    .args(["--seed", &seed.to_string()])
                    .stdout(std::process::Stdio::piped())
                    .spawn()
                    .unwrap()
            };
            // The processes run at the same time, so that they compete for the cores.
            let children: Vec<_> = (0..8).map(|seed| (seed % 4, child(seed % 4))).collect();
            for (seed, child) in children {
                let output = child.wait_with_output().unwrap();
                let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                let expected = format!("{:016x}", trace(lock, faults.parse().unwrap(), seed));
                assert_eq!(told["trace"], expected.as_str(), "{name} {faults} {seed}");
            }
        }
    }
}

#[test]
fn threads_do_not_disturb_each_other() {
    let expected: Vec<u64> = (0..10)
        .map(|seed| trace(LockKind::Redlock, FaultChoice::All, seed))
        .collect();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                (0..10)
                    .map(|seed| trace(LockKind::Redlock, FaultChoice::All, seed))
                    .collect::<Vec<u64>>()
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), expected);
    }
}

#[test]
fn a_recording_changes_nothing_and_sees_every_command_and_every_hold() {
    for (lock, _) in LOCKS {
        for seed in 0..5 {
            let generator = PlanGenerator {
                lock,
                faults: FaultChoice::All,
                ..PlanGenerator::default()
            };
            let plan = Rc::new(generator.plan(seed));
            let (recorded, recording) = run_recorded(&plan);
            assert_eq!(recorded.trace, run(&plan).trace);
            let commands = usize::try_from(recorded.counters.commands).unwrap();
            assert!(commands <= recording.messages.len());
            for grant in &recorded.history.grants {
                let claims = recording.claims.iter();
                let mut theirs = claims.filter(|c| c.owner == Some(grant.process));
                assert!(
                    theirs.any(|c| c.name == grant.name && c.from <= grant.won),
                    "{grant:?}"
                );
            }
        }
    }
}
