//! Tests a holder that is killed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use libtest_mimic::Trial;
use quorlock_testbed::wait::BOUND;
use tokio::time::timeout;

use super::cases::{Held, SOON, outlive_a_lease, wait_for_it};
use super::jvm::Jvm;
use super::mode::Mode;
use super::party::{Party, Released};
use super::stage::{Side, Stage, Version, WATCHDOG, locks_at};
use super::table::case;

/// If this variable is set to a mode, a name and addresses, this program acquires that lock, reports it, and waits to be
/// killed.
const HOLD: &str = "QUORLOCK_INTEROP_HOLDS_A_LOCK";

/// Returns the tests of this file.
pub(crate) fn trials(version: &'static Version) -> Vec<Trial> {
    let mut trials = Vec::new();
    for mode in Mode::ALL {
        for first in Side::BOTH {
            let stage = Stage::new(version, mode, first);
            trials.push(case(
                "outlives_its_killed_holder",
                stage,
                is_free_in_the_end,
            ));
        }
    }
    trials
}

/// Holds a lock until this process is killed, if the variable requests that: the other side of these tests.
pub(crate) fn hold_a_lock_if_asked() {
    let Ok(what) = std::env::var(HOLD) else {
        return;
    };
    let words: Vec<_> = what.split(' ').collect();
    let [mode, name, addresses] = words[..] else {
        panic!("a mode, a name and addresses, not {what}")
    };
    let mode = Mode::ALL.into_iter().find(|m| m.word() == mode).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _party = runtime.block_on(async {
        let locks = locks_at(addresses.split(',')).await;
        let mut party = Party::rust(&locks, mode, name);
        party.acquire(None).await;
        party
    });
    println!("held");
    let _ = std::io::stdin().read(&mut [0]);
    unreachable!("this process is killed before its input ends");
}

/// A holder of the lock in its own process.
enum Victim {
    Jvm(Jvm),
    Rust(Process),
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Victim {
    async fn of(stage: &Stage) -> Victim {
        match stage.first {
            Side::Jvm => {
                let jvm = Jvm::start(stage.version.number);
                let words = stage.mode.words(&stage.name);
                let held = jvm.ask("holder", format!("acquire {words} 0")).await;
                held.expect("the JVM acquires");
                Victim::Jvm(jvm)
            }
            Side::Rust => Victim::Rust(Process::that_holds(stage)),
        }
    }

    fn kill(self) {
        match self {
            Victim::Jvm(jvm) => jvm.kill(),
            Victim::Rust(process) => drop(process),
        }
    }
}

impl Process {
    fn that_holds(stage: &Stage) -> Process {
        let mode = stage.mode;
        let addresses = mode.addresses().join(",");
        let child = Command::new(std::env::current_exe().unwrap())
            .env(HOLD, format!("{} {} {addresses}", mode.word(), stage.name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut process = Process(child);
        let output = process.0.stdout.as_mut().unwrap();
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        process
    }
}

async fn is_free_in_the_end(stage: Stage) -> String {
    for (stage, rival) in stage.with_rivals() {
        let victim = Victim::of(&stage).await;
        let other = stage.rival(rival).await;
        let watch = other.watch();
        let waiting = tokio::spawn(wait_for_it(other));
        stage.until_asleep(&watch).await;
        outlive_a_lease(&stage).await;
        assert!(!waiting.is_finished(), "{rival:?}");
        let held = Held::now(&stage, None);
        victim.kill();
        let killed = Instant::now();
        if oversleeps(&stage) {
            stage.until_free().await;
            assert!(watch.sees_it_sleep().await && !waiting.is_finished());
            stage.wake_whoever_waits();
            timeout(BOUND, waiting).await.unwrap().unwrap();
            return "oversleeps".into();
        }
        let (mut other, entered) = timeout(BOUND, waiting).await.unwrap().unwrap();
        held.assert_was_not_entered_before(entered);
        assert!(entered < killed + WATCHDOG + SOON, "{held:?}");
        assert_eq!(other.release().await, Released::Yes, "{rival:?}");
    }
    "ok".into()
}

/// Returns whether the waiter sleeps until it is woken. Before 3.32, a waiter for Redisson's fair lock computes its
/// sleep from the TTL at its arrival. That time has passed by then.
fn oversleeps(stage: &Stage) -> bool {
    stage.mode == Mode::Fair && stage.first == Side::Rust && stage.is_before((3, 32))
}
