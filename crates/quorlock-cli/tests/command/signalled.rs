//! Signals that reach several processes of a run at once, and orders that arrive while a process is stopped.

use std::process::Stdio;

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{wait_for, wait_until};
use rustix::process::{Pid, Signal};

use super::ending::{LEASE, Running, STUBBORN, boottime};
use super::support::{
    guardian_of, helpers_of, is_alive, lives, pid_of, process, quorlock_on, send,
};

server_tests![
    no_subset_of_killed_and_stopped_processes_leaves_the_group_alive,
    a_name_that_is_killed_or_stopped_is_not_that_of_the_guardian,
    a_run_whose_processes_are_all_killed_leaves_no_command,
    a_guardian_that_was_stopped_heeds_what_waited,
    a_validity_that_moves_back_reaches_the_guardian,
    a_process_that_was_reaped_while_it_was_read_is_none,
];

/// The fate of one process of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Spared,
    Stopped,
    Killed,
}

const FATES: [Fate; 3] = [Fate::Spared, Fate::Stopped, Fate::Killed];

impl Fate {
    fn befalls(self, pid: Pid) {
        match self {
            Fate::Spared => {}
            Fate::Stopped => send(pid, Signal::STOP),
            Fate::Killed => send(pid, Signal::KILL),
        }
    }
}

/// Ends what a test has stopped, and what is left of the group.
fn clean_up(running: Running, processes: &[Pid]) {
    let _ = rustix::process::kill_process_group(running.group, Signal::KILL);
    for pid in processes {
        let _ = rustix::process::kill_process(*pid, Signal::KILL);
    }
    running.code();
    for pid in processes {
        wait_until("it is gone", || !is_alive(*pid));
    }
}

/// Every wrapper is stopped or killed, so that the lock is no longer renewed; its helpers meet every combination of
/// fates except that all processes are killed.
async fn no_subset_of_killed_and_stopped_processes_leaves_the_group_alive() {
    let server = Server::start();
    for wrapper in [Fate::Stopped, Fate::Killed] {
        for first in FATES {
            // The runs of one row go on together.
            let row = FATES.map(|second| {
                let name = format!("{wrapper:?}{first:?}{second:?}");
                let words = ["--lease", LEASE, name.as_str()];
                let running = Running::start(&server, &words, STUBBORN);
                running.folder.pid("child");
                let own = pid_of(&running.wrapper);
                let helpers = helpers_of(&running.wrapper);
                let fates: Vec<(Pid, Fate)> = [(own, wrapper)]
                    .into_iter()
                    .chain(helpers.into_iter().zip([first, second]))
                    .collect();
                (name, running, fates)
            });
            for (_, _, fates) in &row {
                if fates.iter().any(|(_, fate)| *fate != Fate::Killed) {
                    for (pid, fate) in fates {
                        fate.befalls(*pid);
                    }
                }
            }
            for (name, running, fates) in row {
                if fates.iter().any(|(_, fate)| *fate != Fate::Killed) {
                    wait_until("the claim is gone", || {
                        let is_gone = server.command::<i64>(&["EXISTS", &name]) == 0;
                        assert!(
                            !is_gone || !lives(running.group),
                            "{fates:?}: the group outlives the claim"
                        );
                        is_gone
                    });
                }
                let processes: Vec<Pid> = fates.iter().map(|(pid, _)| *pid).collect();
                clean_up(running, &processes);
            }
        }
    }
}

/// `pkill -x quorlock` and `killall quorlock` compare the name of a process with that of the program.
async fn a_name_that_is_killed_or_stopped_is_not_that_of_the_guardian() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    let name_of = |pid: Pid| {
        let pid = pid.as_raw_nonzero();
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        (
            comm.trim_end().to_owned(),
            String::from_utf8_lossy(&line).into_owned(),
        )
    };
    assert_eq!(name_of(pid_of(&running.wrapper)).0, "quorlock");
    let helpers = helpers_of(&running.wrapper);
    let expected = ["lock-guardian", "lock-sentry"];
    let mut names = Vec::new();
    wait_until("they have their names", || {
        names = helpers.iter().map(|pid| name_of(*pid)).collect();
        names.sort();
        names.iter().map(|(comm, _)| comm).eq(expected)
    });
    for (_, line) in names {
        assert!(!line.contains("quorlock"), "{line}");
    }
    clean_up(running, &helpers);
}

/// What remains when no process is left that could act: the kernel kills the command itself.
async fn a_run_whose_processes_are_all_killed_leaves_no_command() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    let child = running.folder.pid("child");
    let all = [vec![pid_of(&running.wrapper)], helpers_of(&running.wrapper)].concat();
    // A wrapper or a helper that still runs would kill the rest of the group.
    for pid in &all {
        send(*pid, Signal::STOP);
    }
    for pid in &all {
        send(*pid, Signal::KILL);
    }
    wait_until("the command is killed", || !is_alive(running.group));
    let _ = rustix::process::kill_process(child, Signal::KILL);
    clean_up(running, &all);
}

async fn a_guardian_that_was_stopped_heeds_what_waited() {
    let server = Server::start();
    let script = "trap 'exit 9' TERM; trap 'exit 5' USR1
        echo $$ >command; while :; do sleep 0.01; done";
    let running = Running::start(&server, &["--lease", LEASE, "a"], script);
    let guardian = guardian_of(&running.wrapper);
    // It is stopped again as often as the kernel continues it. The lock is renewed all the time.
    let until = boottime() + 5_000_000_000;
    wait_until("two leases have gone by", || {
        send(guardian, Signal::STOP);
        until < boottime()
    });
    send(guardian, Signal::CONT);
    // What it does about the past it does before it hears of this signal.
    send(pid_of(&running.wrapper), Signal::USR1);
    let (code, said) = running.code();
    assert_eq!(code, Some(5), "{said}");
}

/// Returns how many scripts a server has executed.
fn scripts_of(server: &Server) -> u64 {
    let stats: String = server.command(&["INFO", "commandstats"]);
    let calls = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    calls
        .and_then(|calls| calls.split(',').next()?.parse().ok())
        .unwrap_or(0)
}

/// A holds the name on three servers. One does not answer from now on, and one gives the name to B. What A has left is
/// the term of the silent one.
async fn a_validity_that_moves_back_reaches_the_guardian() {
    let servers: Vec<Server> = (0..3).map(|_| Server::start()).collect();
    let [one, two, three] = servers.as_slice() else {
        unreachable!()
    };
    let addresses: Vec<String> = servers.iter().map(Server::address).collect();
    let addresses = addresses.join(",");
    let words = [
        "--nodes",
        &addresses,
        "--trust-fresh-nodes",
        "--lease",
        "6s",
        "--grace",
        "1s",
        "a",
    ];
    let running = Running::start(one, &words, STUBBORN);
    // The claim version is behind the hold count.
    let claim = || two.command::<Vec<String>>(&["HVALS", "a"]);
    // The command may have begun on the other two servers.
    wait_until("the second has it", || !claim().is_empty());
    let next_renewal = || {
        let before = claim();
        wait_until("it is renewed", || claim() != before);
    };
    next_renewal();
    wait_until("the third has renewed it too", || {
        5_000 < three.command::<i64>(&["PTTL", "a"])
    });
    let end = boottime() + three.command::<u64>(&["PTTL", "a"]) * 1_000_000;
    three.pause();
    next_renewal();
    one.command::<i64>(&["DEL", "a"]);
    let mut other = quorlock_on(one);
    other.args(["run", "-n", "a", "--", "sleep", "60"]);
    let mut other = other.stderr(Stdio::null()).spawn().unwrap();
    wait_until("B has it", || one.command::<i64>(&["EXISTS", "a"]) == 1);
    let before = scripts_of(one);
    // A renews, hears that the claim is not its own, and asks for a new one.
    wait_until("A knows", || before + 2 <= scripts_of(one));
    send(pid_of(&running.wrapper), Signal::STOP);
    let gone = wait_for("the group is gone", || {
        let now = boottime();
        (!lives(running.group)).then_some(now)
    });
    assert!(
        gone <= end,
        "{} ms too late",
        gone.saturating_sub(end) / 1_000_000
    );
    let _ = other.kill();
    let _ = other.wait();
    three.resume();
    let wrapper = pid_of(&running.wrapper);
    clean_up(running, &[wrapper]);
}

/// The tests read the states of all processes, also of those that other tests end at that moment.
async fn a_process_that_was_reaped_while_it_was_read_is_none() {
    let stat = "7 (a) b) Z 0 -1 -1 0 -1 4227084";
    assert!(process(7, stat).is_none());
    let stat = "7 (a) b) S 1 7 7 0 -1 4194304";
    let process = process(7, stat).unwrap();
    assert_eq!((process.state, process.parent), ('S', 1));
    assert_eq!(process.group.as_raw_nonzero().get(), 7);
}
