//! The environment and input of the command, and what others can see of it.

use std::io::Write as _;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;

use super::support::{
    Folder, HeldElsewhere, end_of, guardian_of, pid_of, quorlock, quorlock_on, run,
};

server_tests![
    stdin_and_stdout_are_the_commands,
    the_token_grows_with_every_hold,
    the_owner_and_the_deadline_are_those_of_the_claim,
    the_pipe_is_at_its_end_when_the_lock_is_lost_and_not_before,
    a_password_is_in_a_file_and_nowhere_else,
    a_file_has_the_settings,
    systemd_is_told,
    a_prefix_comes_before_the_name,
    every_event_is_a_line_of_json,
    a_wait_is_an_event_and_a_try_is_not,
    the_command_follows_the_name,
];

async fn stdin_and_stdout_are_the_commands() {
    let server = Server::start();
    let mut command = quorlock_on(&server);
    command.args(["run", "--json", "a", "--", "tr", "a-z", "A-Z"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = "all of it\n".repeat(100_000);
    let copy = text.clone();
    let writes = std::thread::spawn(move || stdin.write_all(copy.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writes.join().unwrap().unwrap();
    assert!(output.stdout == text.to_uppercase().as_bytes());
    // Input that the command does not read is left for the next program.
    let mut command = std::process::Command::new("sh");
    let script = format!(
        "{q} run a -- sh -c 'read -r one; echo $one'; cat",
        q = env!("CARGO_BIN_EXE_quorlock")
    );
    command.env("QUORLOCK_NODES", server.address());
    let mut child = command
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"one\ntwo\n")
        .unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"one\ntwo\n");
}

async fn the_token_grows_with_every_hold() {
    let server = Server::start();
    let mut last = 0;
    for _ in 0..5 {
        let (_, printed, _) = end_of(&mut run(&server, &["a"], "echo $QUORLOCK_FENCING_TOKEN"));
        let token: u64 = printed.trim().parse().unwrap();
        assert!(last < token);
        last = token;
    }
}

async fn the_owner_and_the_deadline_are_those_of_the_claim() {
    let server = Server::start();
    let script = format!(
        "test $(redis-cli -p {} hget a $QUORLOCK_OWNER) = 1 || exit 1
        left=$((QUORLOCK_DEADLINE - $(date +%s))); echo $left; test $left -ge 27 -a $left -le 30",
        server.port()
    );
    let (code, printed, said) = end_of(&mut run(&server, &["a"], &script));
    assert_eq!(code, 0, "{printed}{said}");
}

async fn the_pipe_is_at_its_end_when_the_lock_is_lost_and_not_before() {
    let server = Server::start();
    let folder = Folder::new();
    let script = "exec 8<&$QUORLOCK_FD
        echo $$ >command; read -r line <&8; echo $? >read";
    let mut command = run(
        &server,
        &["--lease", "1s", "--on-loss", "ignore", "a"],
        script,
    );
    let mut wrapper = command
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    folder.pid("command");
    // The lock is renewed several times in the meantime.
    for _ in 0..3 {
        wait_until("a third of the lease is over", || left(&server) < 750);
        wait_until("it is renewed", || 850 < left(&server));
    }
    assert!(folder.read("read").is_empty());
    server.command::<i64>(&["DEL", "a"]);
    assert_eq!(folder.line("read"), "1");
    assert_eq!(wrapper.wait().unwrap().code(), Some(76));
}

/// Returns the remaining TTL of the claim, in milliseconds.
fn left(server: &Server) -> i64 {
    server.command(&["PTTL", "a"])
}

async fn a_password_is_in_a_file_and_nowhere_else() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", "s3cret p@ss"]);
    let folder = Folder::new();
    std::fs::write(folder.file("password"), "s3cret p@ss\n").unwrap();
    let mut command = quorlock_on(&server);
    command
        .env("QUORLOCK_PASSWORD_FILE", folder.file("password"))
        .args(["run", "--json", "a", "--", "sh", "-c"])
        .arg("env >env; echo $$ >command; read -r line");
    let mut child = command
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let group = folder.pid("command");
    for pid in [pid_of(&child), guardian_of(&child), group] {
        for file in ["cmdline", "environ"] {
            let seen = std::fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap();
            assert!(!String::from_utf8_lossy(&seen).contains("s3cret"));
        }
    }
    assert!(!folder.read("env").contains("s3cret"));
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("s3cret"), "{said}");
    assert!(said.contains("released"), "{said}");
}

async fn a_file_has_the_settings() {
    let server = Server::start();
    let folder = Folder::new();
    let config = format!(
        "nodes = [\"{}\"]\nkey_prefix = \"app:\"\nlease = \"90s\"\nlongest_lease = \"2m\"\n",
        server.address()
    );
    std::fs::write(folder.file("quorlock.toml"), config).unwrap();
    let script = format!("redis-cli -p {} pttl app:a", server.port());
    let mut command = quorlock();
    command
        .env("QUORLOCK_CONFIG", folder.file("quorlock.toml"))
        .args(["run", "a", "--", "sh", "-c", &script]);
    let (code, printed, said) = end_of(&mut command);
    assert_eq!(code, 0, "{said}");
    let left: u64 = printed.trim().parse().unwrap();
    assert!(60_000 < left && left <= 90_000, "{left}");
}

async fn systemd_is_told() {
    let server = Server::start();
    let folder = Folder::new();
    let socket = UnixDatagram::bind(folder.file("notify")).unwrap();
    let mut command = run(&server, &["a"], "echo \"<$NOTIFY_SOCKET>\"");
    command.env("NOTIFY_SOCKET", folder.file("notify"));
    let (code, printed, _) = end_of(&mut command);
    assert_eq!((code, printed.as_str()), (0, "<>\n"));
    for says in [
        "STATUS=waiting for the lock a",
        "READY=1\nSTATUS=holds the lock a",
        "STOPPING=1",
    ] {
        let mut bytes = [0; 200];
        let length = socket.recv(&mut bytes).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes[..length]), says);
    }
}

async fn a_prefix_comes_before_the_name() {
    let server = Server::start();
    let script = format!(
        "echo $QUORLOCK_NAME; redis-cli -p {} exists app:a",
        server.port()
    );
    let (_, printed, _) = end_of(&mut run(&server, &["--key-prefix", "app:", "a"], &script));
    assert_eq!(printed, "a\n1\n");
}

async fn every_event_is_a_line_of_json() {
    let server = Server::start();
    let (code, _, said) = end_of(&mut run(&server, &["--json", "a"], "sleep 100 & exit 4"));
    assert_eq!(code, 4);
    let events: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = events
        .iter()
        .map(|e| e["event"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["acquired", "started", "left-others", "released"]);
    assert!(events[0]["token"].is_u64() && events[0]["owner"].is_string());
}

/// A command that does not wait says no word of waiting.
async fn a_wait_is_an_event_and_a_try_is_not() {
    let server = Server::start();
    let _holder = HeldElsewhere::new(&server, "a");
    for (options, is_told) in [(&["-n"][..], false), (&["-w", "200ms"], true)] {
        let options = [options, &["--json", "a"]].concat();
        let (code, _, said) = end_of(&mut run(&server, &options, "true"));
        assert_eq!(
            (code, said.contains("\"waiting\"")),
            (75, is_told),
            "{said}"
        );
    }
}

/// What follows the first word of the command is the command's, with or without two dashes before it.
async fn the_command_follows_the_name() {
    let server = Server::start();
    for before in [
        &["run", "a"][..],
        &["run", "a", "--"],
        &["run", "a", "-n"],
        &["run", "a", "-n", "--"],
    ] {
        let mut command = quorlock_on(&server);
        command.args(before).args(["echo", "-n", "--json", "x"]);
        let (code, printed, said) = end_of(&mut command);
        assert_eq!((code, &*printed, &*said), (0, "--json x", ""), "{before:?}");
    }
}
