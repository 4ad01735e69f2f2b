//! The process group has ended before a server may give the lock to another, whatever is killed or stopped.
//!
//! A test first reads the state of the server, and then that of the processes. If the claim is gone and the group is
//! alive, the promise is broken, however long the test was delayed in between. If the server cannot be read, the test
//! computes the end of the claim on `CLOCK_BOOTTIME` from the server's last answer.

use std::process::{Child, Stdio};

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{wait_for, wait_until};
use rustix::process::{Pid, Signal};
use rustix::time::{ClockId, clock_gettime};

use super::support::{Folder, guardian_of, is_alive, lives, pid_of, run, send};

server_tests![
    a_wrapper_that_is_killed_leaves_nothing_behind,
    a_wrapper_that_is_stopped_does_not_keep_the_command_running,
    a_guardian_that_is_killed_takes_the_group_along,
    a_guardian_that_is_stopped_is_replaced_by_the_wrapper,
    a_guardian_outlives_what_ends_programs,
    a_server_that_is_stopped_ends_the_command,
    a_server_that_is_killed_ends_the_command,
    a_command_that_ignores_term_is_killed,
    a_command_that_heeds_term_has_its_grace,
    a_command_that_is_stopped_holds_on_and_is_killed_in_time,
    grandchildren_end_with_the_group,
    what_has_left_the_group_and_its_parents_is_found_at_a_loss,
    what_the_command_leaves_behind_ends_before_the_release,
    a_hold_of_the_longest_time_ends_the_command,
    a_minority_that_is_gone_ends_nothing,
];

/// A short lease that is long enough for a busy machine.
pub(super) const LEASE: &str = "2s";

/// The command and a child of it; both ignore TERM. Their process ids are left in files.
pub(super) const STUBBORN: &str = "trap '' TERM
sh -c 'trap \"\" TERM; echo $$ >child; while :; do sleep 1; done' &
echo $$ >command
while :; do sleep 1; done";

/// Returns the nanoseconds on the clock that counts suspended time.
pub(super) fn boottime() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
}

/// A run whose command has started.
pub(super) struct Running {
    pub(super) wrapper: Child,
    pub(super) folder: Folder,
    pub(super) group: Pid,
}

impl Running {
    pub(super) fn start(server: &Server, words: &[&str], script: &str) -> Self {
        let folder = Folder::new();
        let mut command = run(server, words, script);
        let command = command.current_dir(folder.path()).stderr(Stdio::piped());
        let wrapper = command.spawn().expect("quorlock starts");
        let group = folder.pid("command");
        Running {
            wrapper,
            folder,
            group,
        }
    }

    pub(super) fn stubborn(server: &Server) -> Self {
        let running = Self::start(server, &["--lease", LEASE, "a"], STUBBORN);
        running.folder.pid("child");
        running
    }

    /// Polls the server until the claim is gone, and checks that the group had ended by then.
    fn goes_before_the_claim_on(&self, server: &Server) {
        wait_until("the claim is gone", || {
            let is_gone = server.command::<i64>(&["EXISTS", "a"]) == 0;
            if is_gone {
                assert!(!lives(self.group), "the group outlives the claim");
            }
            is_gone
        });
    }

    pub(super) fn code(mut self) -> (Option<i32>, String) {
        let stderr = self.wrapper.stderr.take().expect("it is piped");
        let said = std::io::read_to_string(stderr).expect("it is text");
        (self.wrapper.wait().expect("it ends").code(), said)
    }
}

/// Returns the latest time at which the claim ends on the server, if it is not renewed.
fn end_of_claim(server: &Server) -> u64 {
    let left: u64 = server.command(&["PTTL", "a"]);
    boottime() + left * 1_000_000
}

async fn a_wrapper_that_is_killed_leaves_nothing_behind() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    let guardian = guardian_of(&running.wrapper);
    send(pid_of(&running.wrapper), Signal::KILL);
    running.goes_before_the_claim_on(&server);
    wait_until("the guardian ends", || !is_alive(guardian));
    running.code();
}

async fn a_wrapper_that_is_stopped_does_not_keep_the_command_running() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    send(pid_of(&running.wrapper), Signal::STOP);
    running.goes_before_the_claim_on(&server);
    send(pid_of(&running.wrapper), Signal::CONT);
    assert_eq!(running.code().0, Some(76));
}

async fn a_guardian_that_is_killed_takes_the_group_along() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    send(guardian_of(&running.wrapper), Signal::KILL);
    running.goes_before_the_claim_on(&server);
    let (code, said) = running.code();
    assert_eq!(code, Some(137));
    assert!(
        said.contains("the guardian of the command is gone"),
        "{said}"
    );
}

async fn a_guardian_that_is_stopped_is_replaced_by_the_wrapper() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    send(guardian_of(&running.wrapper), Signal::STOP);
    server.pause();
    // From now on the lock is not renewed, so its lease ends by this time.
    let end = boottime() + 2_000_000_000;
    let gone = goes(&running);
    assert!(gone <= end, "{} ms too late", (gone - end) / 1_000_000);
    server.resume();
    assert_eq!(running.code().0, Some(76));
}

/// Returns when the group was found to have ended.
fn goes(running: &Running) -> u64 {
    wait_for("the group is gone", || {
        let now = boottime();
        (!lives(running.group)).then_some(now)
    })
}

async fn a_guardian_outlives_what_ends_programs() {
    let server = Server::start();
    let running = Running::start(
        &server,
        &["a"],
        "trap 'exit 9' USR1; echo $$ >command; while :; do sleep 0.01; done",
    );
    let guardian = guardian_of(&running.wrapper);
    for signal in [
        Signal::TERM,
        Signal::INT,
        Signal::HUP,
        Signal::QUIT,
        Signal::TSTP,
    ] {
        send(guardian, signal);
    }
    assert!(is_alive(guardian) && lives(running.group));
    send(pid_of(&running.wrapper), Signal::USR1);
    let (code, said) = running.code();
    assert_eq!(code, Some(9));
    assert!(!said.contains("quorlock"), "{said}");
}

async fn a_server_that_is_stopped_ends_the_command() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    let end = end_of_claim_after_pause(&server);
    let gone = goes(&running);
    assert!(gone <= end, "{} ms too late", (gone - end) / 1_000_000);
    let (code, said) = running.code();
    assert_eq!(code, Some(76));
    assert!(said.contains("the lock was not renewed in time"), "{said}");
    server.resume();
}

/// Stops the server between two renewals, and returns when its claim ends.
fn end_of_claim_after_pause(server: &Server) -> u64 {
    loop {
        let before = end_of_claim(server);
        server.pause();
        // If it had been renewed in the meantime, the claim would end later.
        server.resume();
        let after = end_of_claim(server);
        server.pause();
        if after <= before + 2_000_000 {
            return after;
        }
        server.resume();
    }
}

async fn a_server_that_is_killed_ends_the_command() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    let end = boottime() + 2_000_000_000;
    server.kill();
    let gone = goes(&running);
    assert!(gone <= end, "{} ms too late", (gone - end) / 1_000_000);
    assert_eq!(running.code().0, Some(76));
}

async fn a_command_that_ignores_term_is_killed() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    server.command::<i64>(&["DEL", "a"]);
    // The wrapper learns of the loss, and ends the command then.
    wait_until("the group ends", || !lives(running.group));
    assert_eq!(running.code().0, Some(76));
}

async fn a_command_that_heeds_term_has_its_grace() {
    let server = Server::start();
    let script = "trap 'sleep 0.1; echo saved >saved; exit 0' TERM
        echo $$ >command; while :; do sleep 0.05; done";
    let words = [
        "--lease",
        "3s",
        "--grace",
        "1500ms",
        "--min-validity",
        "0",
        "a",
    ];
    let running = Running::start(&server, &words, script);
    server.pause();
    wait_until("the group ends", || !lives(running.group));
    assert_eq!(running.folder.read("saved"), "saved\n");
    assert_eq!(running.code().0, Some(76));
    server.resume();
}

async fn a_command_that_is_stopped_holds_on_and_is_killed_in_time() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    send(running.group, Signal::STOP);
    // The lock is renewed nevertheless, because nothing shows that the work is over.
    let first = end_of_claim(&server);
    wait_until("it is renewed", || {
        first + 500_000_000 < end_of_claim(&server)
    });
    send(pid_of(&running.wrapper), Signal::STOP);
    running.goes_before_the_claim_on(&server);
    send(pid_of(&running.wrapper), Signal::CONT);
    assert_eq!(running.code().0, Some(76));
}

async fn grandchildren_end_with_the_group() {
    let server = Server::start();
    let running = Running::stubborn(&server);
    let child = running.folder.pid("child");
    send(child, Signal::STOP);
    send(pid_of(&running.wrapper), Signal::KILL);
    running.goes_before_the_claim_on(&server);
    assert!(!is_alive(child));
    running.code();
}

async fn what_has_left_the_group_and_its_parents_is_found_at_a_loss() {
    let server = Server::start();
    let script = "(setsid sh -c 'echo $$ >daemon; while :; do sleep 1; done' &)
        while ! [ -s daemon ]; do sleep 0.01; done
        echo $$ >command; while :; do sleep 1; done";
    let running = Running::start(&server, &["--lease", LEASE, "a"], script);
    let daemon = running.folder.pid("daemon");
    send(pid_of(&running.wrapper), Signal::KILL);
    running.goes_before_the_claim_on(&server);
    assert!(!is_alive(daemon), "a daemon outlives the claim");
    running.code();
}

async fn what_the_command_leaves_behind_ends_before_the_release() {
    let server = Server::start();
    let script = "echo $$ >command
        sh -c 'trap \"\" TERM; echo $$ >child; while :; do sleep 1; done' &
        while ! [ -s child ]; do sleep 0.01; done";
    let words = ["--grace", "200ms", "a"];
    let running = Running::start(&server, &words, script);
    running.goes_before_the_claim_on(&server);
    let (code, said) = running.code();
    assert_eq!(code, Some(0));
    assert!(said.contains("left processes behind"), "{said}");
}

async fn a_hold_of_the_longest_time_ends_the_command() {
    let server = Server::start();
    let words = ["--lease", LEASE, "--max-hold", "3s", "a"];
    let running = Running::start(&server, &words, STUBBORN);
    running.goes_before_the_claim_on(&server);
    assert_eq!(running.code().0, Some(76));
}

async fn a_minority_that_is_gone_ends_nothing() {
    let servers: Vec<Server> = (0..3).map(|_| Server::start()).collect();
    let addresses: Vec<String> = servers.iter().map(Server::address).collect();
    let addresses = addresses.join(",");
    let words = [
        "--nodes",
        &addresses,
        "--trust-fresh-nodes",
        "--lease",
        LEASE,
        "a",
    ];
    let script = "trap 'exit 5' USR1; echo $$ >command; while :; do sleep 0.01; done";
    let running = Running::start(&servers[0], &words, script);
    servers[0].kill();
    // Without renewals it would have ended after two leases.
    let until = boottime() + 4_000_000_000;
    wait_until("two leases have gone by", || until < boottime());
    assert!(lives(running.group));
    // Without a second server there is no majority.
    servers[1].pause();
    let end = boottime() + 2_000_000_000;
    let gone = goes(&running);
    assert!(gone <= end, "{} ms too late", (gone - end) / 1_000_000);
    assert_eq!(running.code().0, Some(76));
    servers[1].resume();
}
