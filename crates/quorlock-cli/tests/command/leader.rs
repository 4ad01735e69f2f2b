//! `quorlock leader`: a command runs whenever this process leads, and never at the same time as another leader's.
//!
//! The tests measure as in `ending`: they read the state of the server first and that of the processes afterwards.

use std::process::{Child, Command, Stdio};

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use rustix::process::{Pid, Signal};

use super::support::{Folder, end_of, lives, pid_of, quorlock, quorlock_on, send};

server_tests![
    the_command_of_a_leader_has_its_term,
    a_candidate_takes_over_from_a_leader_that_is_killed,
    a_leader_that_is_stopped_has_no_command_when_another_leads,
    commands_of_ten_candidates_never_overlap_and_their_terms_grow,
    a_leader_whose_lock_is_taken_by_force_leads_again,
    a_command_that_ends_is_run_again_and_another_candidate_gets_its_turn,
    a_signal_ends_a_leader_with_the_code_of_its_command,
    a_signal_ends_a_candidate,
    hup_is_for_the_command,
    once_ends_with_the_code_of_the_command,
    a_server_that_comes_back_has_a_leader_again,
    what_cannot_be_executed_ends_it,
    mistakes_of_usage_and_settings_end_it,
];

/// Returns `quorlock leader` with these words before the `--`, and this script for a shell after it.
fn leader(server: &Server, words: &[&str], script: &str) -> Command {
    let mut command = quorlock_on(server);
    command
        .arg("leader")
        .args(words)
        .args(["--", "sh", "-c", script]);
    command
}

/// A script that records its process id and its term, and keeps running.
const STAYS: &str = "echo $$ >>groups; echo $QUORLOCK_TERM >>terms; while :; do sleep 0.05; done";

/// A candidate with its own folder.
struct Candidate {
    wrapper: Child,
    folder: Folder,
}

impl Candidate {
    fn start(server: &Server, words: &[&str], script: &str) -> Self {
        let folder = Folder::new();
        let mut command = leader(server, words, script);
        let command = command.current_dir(folder.path()).stderr(Stdio::piped());
        let wrapper = command.spawn().expect("quorlock starts");
        Candidate { wrapper, folder }
    }

    /// Returns the terms in which its command has run so far.
    fn terms(&self) -> Vec<u64> {
        let text = self.folder.read("terms");
        // The last line may be incomplete.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|term| term.parse().unwrap()).collect()
    }

    /// Waits until its command has been run this many times, and returns the term of the last time.
    fn leads(&self, times: usize) -> u64 {
        wait_until("it leads", || times <= self.terms().len());
        self.terms()[times - 1]
    }

    /// Returns the process group of its first command.
    fn group(&self) -> Pid {
        self.folder.pid("groups")
    }

    fn pid(&self) -> Pid {
        pid_of(&self.wrapper)
    }

    /// Waits for its end. Returns the exit code and the messages.
    fn end(mut self) -> (Option<i32>, String) {
        let stderr = self.wrapper.stderr.take().expect("it is piped");
        let said = std::io::read_to_string(stderr).expect("it is text");
        (self.wrapper.wait().expect("it ends").code(), said)
    }

    /// Sends it TERM, and waits until it has ended.
    fn stop(self) {
        send(self.pid(), Signal::TERM);
        self.end();
    }
}

/// Returns whether the name is free.
fn is_free(server: &Server) -> bool {
    server.command::<i64>(&["EXISTS", "a"]) == 0
}

/// Returns the owner of the name.
fn owner(server: &Server) -> Option<String> {
    let owners: Vec<String> = server.command(&["HKEYS", "a"]);
    owners.into_iter().next()
}

async fn the_command_of_a_leader_has_its_term() {
    let server = Server::start();
    let script = "test \"$QUORLOCK_TERM\" = \"$QUORLOCK_FENCING_TOKEN\" || exit 9
        test \"$QUORLOCK_DEADLINE\" -ge \"$(date +%s)\" || exit 8
        echo $QUORLOCK_NAME; redis-cli -p $PORT HEXISTS a $QUORLOCK_OWNER; read -r line; echo $line";
    let mut command = leader(&server, &["--once", "a"], script);
    let command = command
        .env("PORT", server.port().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"from outside\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert_eq!(printed, "a\n1\nfrom outside\n");
    assert!(is_free(&server));
}

async fn a_candidate_takes_over_from_a_leader_that_is_killed() {
    let server = Server::start();
    let first = Candidate::start(&server, &["--lease", "2s", "a"], STAYS);
    let term = first.leads(1);
    let group = first.group();
    let second = Candidate::start(&server, &["--lease", "2s", "a"], STAYS);
    let before = owner(&server);
    send(first.pid(), Signal::KILL);
    wait_until("another has the name", || {
        let is_another = owner(&server) != before;
        if is_another {
            assert!(!lives(group), "the command outlives the leadership");
        }
        is_another
    });
    assert!(term < second.leads(1));
    assert_eq!(first.end().0, None);
    second.stop();
    assert!(is_free(&server));
}

async fn a_leader_that_is_stopped_has_no_command_when_another_leads() {
    let server = Server::start();
    let first = Candidate::start(&server, &["--lease", "2s", "a"], STAYS);
    let mut last = first.leads(1);
    let group = first.group();
    let second = Candidate::start(&server, &["--lease", "2s", "a"], STAYS);
    let before = owner(&server);
    send(first.pid(), Signal::STOP);
    wait_until("another has the name", || {
        let is_another = owner(&server) != before;
        if is_another {
            assert!(!lives(group), "the command outlives the leadership");
        }
        is_another
    });
    let term = second.leads(1);
    assert!(last < term);
    last = term;
    // It is still a candidate, and leads when the other one is gone.
    send(first.pid(), Signal::CONT);
    second.stop();
    assert!(last < first.leads(2));
    first.stop();
    assert!(is_free(&server));
}

/// A folder cannot be created twice, so a second command inside leaves a mark.
const ALONE: &str = "mkdir inside || { echo overlap >>overlaps; exit 1; }
echo $QUORLOCK_TERM >>terms
rmdir inside";

async fn commands_of_ten_candidates_never_overlap_and_their_terms_grow() {
    let server = Server::start();
    let folder = Folder::new();
    let words = ["--lease", "20s", "--rest", "10ms", "-q", "a"];
    let candidates = (0..10).map(|_| {
        let mut command = leader(&server, &words, ALONE);
        command
            .current_dir(folder.path())
            .spawn()
            .expect("it starts")
    });
    let candidates: Vec<Child> = candidates.collect();
    wait_until("there were forty leaders", || {
        40 <= folder.read("terms").lines().count()
    });
    for candidate in &candidates {
        send(pid_of(candidate), Signal::TERM);
    }
    for mut candidate in candidates {
        assert!(candidate.wait().expect("it ends").code().is_some());
    }
    assert_eq!(folder.read("overlaps"), "");
    let terms = folder.read("terms");
    let terms: Vec<u64> = terms.lines().map(|term| term.parse().unwrap()).collect();
    assert!(terms.is_sorted_by(|one, next| one < next), "{terms:?}");
    assert!(is_free(&server));
}

async fn a_leader_whose_lock_is_taken_by_force_leads_again() {
    let server = Server::start();
    let candidate = Candidate::start(&server, &["--lease", "1s", "a"], STAYS);
    let first = candidate.leads(1);
    let group = candidate.group();
    let (code, ..) = end_of(quorlock_on(&server).args(["force-release", "a"]));
    assert_eq!(code, 0);
    assert!(first < candidate.leads(2));
    assert!(!lives(group));
    send(candidate.pid(), Signal::TERM);
    let (_, said) = candidate.end();
    assert!(said.contains("the lock is lost"), "{said}");
}

async fn a_command_that_ends_is_run_again_and_another_candidate_gets_its_turn() {
    let server = Server::start();
    let words = ["--rest", "200ms", "a"];
    let script = "echo $QUORLOCK_TERM >>terms; exit 3";
    let one = Candidate::start(&server, &words, script);
    one.leads(2);
    let other = Candidate::start(&server, &words, script);
    other.leads(2);
    one.leads(one.terms().len() + 2);
    for candidate in [one, other] {
        let terms = candidate.terms();
        assert!(terms.is_sorted_by(|a, b| a < b), "{terms:?}");
        send(candidate.pid(), Signal::TERM);
        let (_, said) = candidate.end();
        assert!(said.contains("the command ended with 3"), "{said}");
    }
    assert!(is_free(&server));
}

async fn a_signal_ends_a_leader_with_the_code_of_its_command() {
    let server = Server::start();
    let script = "trap 'exit 5' TERM; echo $QUORLOCK_TERM >>terms; while :; do sleep 0.01; done";
    let candidate = Candidate::start(&server, &["a"], script);
    candidate.leads(1);
    send(candidate.pid(), Signal::TERM);
    let (code, said) = candidate.end();
    assert_eq!(code, Some(5));
    assert!(!said.contains("quorlock"), "{said}");
    assert!(is_free(&server));
}

async fn a_signal_ends_a_candidate() {
    let server = Server::start();
    let first = Candidate::start(&server, &["a"], STAYS);
    first.leads(1);
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut second = Candidate::start(&server, &["--json", "a"], STAYS);
        let mut lines = std::io::BufReader::new(second.wrapper.stderr.as_mut().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
        assert!(line.contains("candidate"), "{line}");
        send(second.pid(), signal);
        let mut wrapper = second.wrapper;
        assert_eq!(wrapper.wait().unwrap().code(), Some(code));
        assert!(second.folder.read("terms").is_empty());
    }
    first.stop();
    assert!(is_free(&server));
}

async fn hup_is_for_the_command() {
    let server = Server::start();
    let script = "trap 'echo again >>heard' HUP; echo $$ >>groups
        echo $QUORLOCK_TERM >>terms; until test -e end; do sleep 0.01; done; rm end";
    let candidate = Candidate::start(&server, &["--rest", "10ms", "a"], script);
    candidate.leads(1);
    send(candidate.pid(), Signal::HUP);
    assert_eq!(candidate.folder.line("heard"), "again");
    // The command handles HUP and ends later for another reason, so it runs again.
    std::fs::write(candidate.folder.file("end"), "").unwrap();
    candidate.leads(2);
    candidate.stop();
    let dies = Candidate::start(&server, &["a"], STAYS);
    dies.leads(1);
    send(dies.pid(), Signal::HUP);
    assert_eq!(dies.end().0, Some(129));
}

async fn once_ends_with_the_code_of_the_command() {
    let server = Server::start();
    for code in [0, 7, 76] {
        let script = format!("exit {code}");
        let ended = end_of(&mut leader(&server, &["--once", "a"], &script));
        assert_eq!(ended, (code, String::new(), String::new()));
    }
    // A lost term does not end the process.
    let words = ["--once", "--lease", "1s", "a"];
    let script = "echo $QUORLOCK_TERM >>terms; test \"$(wc -l <terms)\" -gt 1 && exit 4
        while :; do sleep 0.05; done";
    let candidate = Candidate::start(&server, &words, script);
    candidate.leads(1);
    end_of(quorlock_on(&server).args(["force-release", "a"]));
    assert_eq!(candidate.end().0, Some(4));
    assert!(is_free(&server));
}

async fn a_server_that_comes_back_has_a_leader_again() {
    let server = Server::start();
    let candidate = Candidate::start(&server, &["--lease", "1s", "a"], STAYS);
    let first = candidate.leads(1);
    let group = candidate.group();
    server.kill();
    wait_until("the command is ended", || !lives(group));
    server.restart();
    assert!(first < candidate.leads(2));
    candidate.stop();
}

async fn what_cannot_be_executed_ends_it() {
    let server = Server::start();
    for (program, code) in [("/no/such/program", 127), ("/etc", 126)] {
        let mut command = quorlock_on(&server);
        let ended = end_of(command.args(["leader", "a", "--", program]));
        assert_eq!(ended.0, code, "{}", ended.2);
        assert!(is_free(&server));
    }
}

async fn mistakes_of_usage_and_settings_end_it() {
    let server = Server::start();
    for words in [
        &["leader", "a"][..],
        &["leader", "--", "true"],
        &[
            "leader", "--lease", "1s", "--grace", "1s", "a", "--", "true",
        ],
        &["leader", "", "--", "true"],
    ] {
        let (code, _, said) = end_of(quorlock_on(&server).args(words));
        assert_eq!(code, 64, "{words:?}: {said}");
    }
    let (code, _, said) = end_of(quorlock().args(["leader", "a", "--", "true"]));
    assert_eq!(code, 78, "{said}");
    // The key is not a lock, which waiting does not change.
    server.command::<()>(&["SET", "a", "text"]);
    let (code, _, said) = end_of(&mut leader(&server, &["a"], "true"));
    assert_eq!(code, 78, "{said}");
    // A stranger's hash looks like the claim of another leader, which is not waited for.
    server.command::<i64>(&["HSET", "session/1", "user", "bob"]);
    let (code, _, said) = end_of(&mut leader(&server, &["session/1"], "true"));
    assert_eq!(code, 78, "{said}");
    assert!(said.contains("session/1: a key that is no lock"), "{said}");
}
