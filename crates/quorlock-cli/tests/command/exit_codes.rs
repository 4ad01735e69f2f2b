//! Every exit code, and the situations that cause it.

use std::process::Stdio;

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;

use super::support::{Folder, HeldElsewhere, end_of, quorlock, quorlock_on, run};

server_tests![
    the_code_of_the_command_comes_back,
    a_command_that_died_of_a_signal_is_128_and_the_signal,
    a_command_that_is_not_there_or_cannot_be_executed_is_127_and_126,
    a_lock_that_others_hold_is_75_or_what_was_asked_for,
    a_key_that_is_no_lock_is_78_and_is_not_waited_for,
    a_wait_ends_with_75_and_with_the_lock_if_it_comes_free,
    all_of_several_names_are_taken_or_none,
    readers_come_together_and_writers_alone,
    servers_that_cannot_be_reached_are_69,
    servers_that_come_up_are_waited_for,
    servers_that_are_new_are_watched_also_by_a_run_that_does_not_wait,
    what_is_wrong_on_the_command_line_is_64,
    settings_and_logins_that_are_wrong_are_78,
    addresses_that_are_wrong_are_78,
    a_release_that_is_not_confirmed_is_74_after_a_0,
    a_lock_that_was_lost_is_76_also_after_a_0,
    a_lock_that_is_kept_ends_with_its_lease,
];

async fn the_code_of_the_command_comes_back() {
    let server = Server::start();
    for code in [0, 1, 7, 64, 75, 255] {
        let (ended, _, said) = end_of(&mut run(&server, &["a"], &format!("exit {code}")));
        assert_eq!((ended, said.as_str()), (code, ""));
        assert_eq!(server.command::<i64>(&["EXISTS", "a"]), 0);
    }
}

async fn a_command_that_died_of_a_signal_is_128_and_the_signal() {
    let server = Server::start();
    for (name, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139)] {
        let script = format!("kill -{name} $$");
        let (ended, _, said) = end_of(&mut run(&server, &["a"], &script));
        assert_eq!((ended, said.as_str()), (code, ""));
    }
}

async fn a_command_that_is_not_there_or_cannot_be_executed_is_127_and_126() {
    let server = Server::start();
    for (program, code) in [
        ("/not/there", 127),
        ("not-on-the-path", 127),
        ("/etc/passwd", 126),
    ] {
        let mut command = quorlock_on(&server);
        let (ended, _, said) = end_of(command.args(["run", "a", "--", program]));
        assert_eq!(ended, code, "{said}");
        assert!(
            said.starts_with(&format!("quorlock: {program}: ")),
            "{said}"
        );
        assert_eq!(server.command::<i64>(&["EXISTS", "a"]), 0);
    }
}

async fn a_lock_that_others_hold_is_75_or_what_was_asked_for() {
    let server = Server::start();
    let _holder = HeldElsewhere::new(&server, "a");
    let (code, printed, said) = end_of(&mut run(&server, &["-n", "a"], "echo inside"));
    assert_eq!((code, printed.as_str()), (75, ""));
    // With the label of the holder, which is another of these processes.
    assert!(said.starts_with("quorlock: a: others hold it ("), "{said}");
    let (code, printed, _) = end_of(&mut run(&server, &["-n", "-E", "3", "a"], "echo inside"));
    assert_eq!((code, printed.as_str()), (3, ""));
    let (code, _, said) = end_of(&mut run(&server, &["-nq", "a"], "echo inside"));
    assert_eq!((code, said.as_str()), (75, ""));
    let (code, _, said) = end_of(&mut run(&server, &["-n", "--json", "a"], "echo inside"));
    assert_eq!(code, 75);
    let last: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["code"]),
        (&"failed".into(), &75.into())
    );
}

/// To an acquire, a stranger's hash looks like another owner's claim. `inspect` can tell them apart.
async fn a_key_that_is_no_lock_is_78_and_is_not_waited_for() {
    let server = Server::start();
    server.command::<i64>(&["HSET", "session/1", "user", "bob", "cart", "7"]);
    for words in [
        &["-n", "session/1"][..],
        &["-w", "1m", "session/1"],
        &["session/1"],
        &["-n", "a", "--also", "session/1"],
    ] {
        let (code, printed, said) = end_of(&mut run(&server, words, "echo inside"));
        assert_eq!((code, printed.as_str()), (78, ""), "{said}");
        assert!(said.contains("session/1: a key that is no lock"), "{said}");
    }
    assert_eq!(server.command::<i64>(&["HLEN", "session/1"]), 2);
    assert_eq!(server.command::<i64>(&["EXISTS", "a"]), 0);
}

async fn a_wait_ends_with_75_and_with_the_lock_if_it_comes_free() {
    let server = Server::start();
    let holder = HeldElsewhere::new(&server, "a");
    let (code, _, said) = end_of(&mut run(&server, &["-w", "200ms", "a"], "echo inside"));
    assert_eq!(code, 75);
    assert!(said.contains("a: held by others ("), "{said}");
    assert!(said.contains("tried for"), "{said}");
    let waits = [&["-w", "1m", "a"][..], &["a"]].map(|words| {
        let mut waits = run(&server, words, "echo inside");
        waits.stdout(Stdio::piped()).spawn().unwrap()
    });
    drop(holder);
    for waiter in waits {
        assert_eq!(waiter.wait_with_output().unwrap().stdout, b"inside\n");
    }
}

async fn all_of_several_names_are_taken_or_none() {
    let server = Server::start();
    let script =
        "echo $QUORLOCK_NAME $QUORLOCK_NAME_1 $QUORLOCK_NAME_2 $((QUORLOCK_FENCING_TOKEN_2 > 0))";
    let words = ["-n", "a", "--also", "b", "--also", "c"];
    let (code, printed, _) = end_of(&mut run(&server, &words, script));
    assert_eq!((code, printed.as_str()), (0, "a b c 1\n"));
    let _holder = HeldElsewhere::new(&server, "b");
    let (code, printed, _) = end_of(&mut run(&server, &words, script));
    assert_eq!((code, printed.as_str()), (75, ""));
    assert_eq!(server.command::<i64>(&["EXISTS", "a", "c"]), 0);
}

async fn readers_come_together_and_writers_alone() {
    let server = Server::start();
    let inside = format!(
        "{q} run -n --read r -- true && ! {q} run -nq --write r -- true",
        q = env!("CARGO_BIN_EXE_quorlock")
    );
    let (code, _, said) = end_of(&mut run(&server, &["--read", "r"], &inside));
    assert_eq!(code, 0, "{said}");
    let inside = format!("{} run -n --read r -- true", env!("CARGO_BIN_EXE_quorlock"));
    let (code, _, _) = end_of(&mut run(&server, &["--write", "r"], &inside));
    assert_eq!(code, 75);
    let (code, _, _) = end_of(&mut run(&server, &["--fair", "f"], "exit 5"));
    assert_eq!(code, 5);
}

async fn servers_that_cannot_be_reached_are_69() {
    let server = Server::start();
    server.kill();
    for words in [&["-n", "a"][..], &["-w", "300ms", "a"]] {
        let (code, _, said) = end_of(&mut run(&server, words, "echo inside"));
        assert_eq!(code, 69, "{said}");
        assert!(
            said.contains("check that the node runs, and that its address is right"),
            "{said}"
        );
    }
}

async fn servers_that_come_up_are_waited_for() {
    let server = Server::start();
    server.kill();
    let waits = run(&server, &["-w", "1m", "a"], "echo inside")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    server.restart();
    let output = waits.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"inside\n");
}

/// Each run is a new client. If it gave up at once, no run would ever get the lock.
async fn servers_that_are_new_are_watched_also_by_a_run_that_does_not_wait() {
    let servers: Vec<Server> = (0..3).map(|_| Server::start()).collect();
    let addresses: Vec<String> = servers.iter().map(Server::address).collect();
    let addresses = addresses.join(",");
    let once = |words: &[&str]| {
        let mut command = quorlock();
        command.args(["run", "--nodes", &addresses, "--lease", "2s"]);
        command.args(["--longest-lease", "2s", "--grace", "500ms"]);
        end_of(command.args(words).args(["-n", "a", "--", "true"]))
    };
    let (code, _, said) = once(&[]);
    assert_eq!(code, 0, "{said}");
    let expected = "quorlock: a: the servers are new or were restarted, and are watched first";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(once(&[]), (0, String::new(), String::new()));
    servers[1..].iter().for_each(Server::kill);
    let (code, _, said) = once(&[]);
    assert_eq!(code, 69, "{said}");
    assert!(!said.contains("watched"), "{said}");
}

async fn what_is_wrong_on_the_command_line_is_64() {
    let server = Server::start();
    let long = "n".repeat(513);
    for (words, says) in [
        (
            &["--lease", "100ms", "a"][..],
            "--lease, 100ms, is too short",
        ),
        (&["--lease", "soon", "a"], "is not a duration"),
        (&["--lease", "90s", "a"], "--longest-lease"),
        (
            &["--lease", "3s", "--grace", "2s", "a"],
            "--grace, 2s, leaves no time",
        ),
        (
            &["--min-validity", "25s", "a"],
            "--min-validity, 25s, is more than",
        ),
        (
            &["--max-hold", "5s", "a"],
            "max_hold, 5s, must not be less than",
        ),
        (&["-n", "-w", "3s", "a"], "cannot be used with"),
        (&["--read", "--write", "a"], "cannot be used with"),
        (&["--read", "a", "--also", "a"], ""),
        (&[""], "the given one is empty"),
        (&[&long], "at most 512 are allowed"),
        (
            &["redisson_lock_token:{a}"],
            "is a key that stores another name's token counter",
        ),
        (&["--unknown", "a"], "unexpected argument"),
    ] {
        let (code, _, said) = end_of(&mut run(&server, words, "true"));
        if says.is_empty() {
            assert_eq!(code, 0, "{words:?}: {said}");
            continue;
        }
        assert_eq!(code, 64, "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
    }
    for words in [&["run", "a"][..], &["run"], &["walk"], &[]] {
        let (code, _, said) = end_of(quorlock_on(&server).args(words));
        assert_eq!(code, 64, "{words:?}: {said}");
    }
    for words in [&["--help"][..], &["run", "--help"], &["--version"]] {
        let (code, printed, _) = end_of(quorlock().args(words));
        assert_eq!(code, 0);
        assert!(printed.contains("quorlock"), "{printed}");
    }
}

/// Runs `quorlock run` with these words, which must fail with this text and without a password.
fn is_78(words: &[&str], says: &str) {
    let mut command = quorlock();
    let command = command.args(["run", "-n", "a"]).args(words);
    let (code, _, said) = end_of(command.args(["--", "true"]));
    assert_eq!(code, 78, "{words:?}: {said}");
    assert!(
        said.to_lowercase().contains(&says.to_lowercase()),
        "{words:?}: {said}"
    );
    assert!(
        !said.contains("s3cret") && !said.contains("t0psecret"),
        "{said}"
    );
}

async fn settings_and_logins_that_are_wrong_are_78() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", "s3cret"]);
    let address = server.address();
    let folder = Folder::new();
    let file = |name, text| {
        std::fs::write(folder.file(name), text).unwrap();
        folder.file(name).display().to_string()
    };
    let (config, empty, wrong) = (
        file("config", "nodes = 3\n"),
        file("empty", "\n"),
        file("wrong", "t0psecret\n"),
    );
    is_78(&["--nodes", &address], "password");
    is_78(
        &["--nodes", &address, "--password-file", &wrong],
        "password",
    );
    is_78(&[], "no servers are configured");
    is_78(&["--config", &config], "line 1");
    is_78(&["--config", "/not/there"], "cannot be read");
    is_78(
        &["--nodes", "redis://h", "--password-file", &empty],
        "must be the password",
    );
}

async fn addresses_that_are_wrong_are_78() {
    let server = Server::start();
    // The address was database 0, so that two services held one name at the same time.
    let two_databases = format!("{}?db=1", server.address() + "2");
    let parameter = format!("{}?timeout=5", server.address());
    for (nodes, says) in [
        ("rediss://h#insecure", "#insecure"),
        ("http://h", "http://h has a scheme that is not known"),
        (&two_databases, "it names two databases, 2 and 1"),
        (&parameter, "a parameter timeout"),
        (
            "redis://a,b:7000",
            "redis://a,b:7000 is malformed (its host has a comma",
        ),
        (
            "redis://a,redis://:s3#cret@b",
            "percent-encode special characters, %23 for #",
        ),
        ("a,b", "a,b has no scheme"),
    ] {
        is_78(&["--nodes", nodes], says);
    }
}

async fn a_release_that_is_not_confirmed_is_74_after_a_0() {
    // A command that fails says more by its own code.
    for subcommand in [&["run"][..], &["leader", "--once"]] {
        for (code, expected) in [(0, 74), (7, 7)] {
            let server = Server::start();
            let folder = Folder::new();
            let script =
                format!("echo $$ >command; until [ -e end ]; do sleep 0.01; done; exit {code}");
            let mut command = quorlock_on(&server);
            command
                .args(subcommand)
                .args(["a", "--", "sh", "-c", &script]);
            let command = command.current_dir(folder.path()).stderr(Stdio::piped());
            let wrapper = command.spawn().unwrap();
            folder.pid("command");
            server.kill();
            std::fs::write(folder.file("end"), "").unwrap();
            let output = wrapper.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                output.status.code(),
                Some(expected),
                "{subcommand:?}: {said}"
            );
            assert!(said.contains("the lease ends it at the latest"), "{said}");
        }
    }
}

async fn a_lock_that_was_lost_is_76_also_after_a_0() {
    let server = Server::start();
    let cli = format!("redis-cli -p {}", server.port());
    // The command ends with 0 when the wrapper is told of the loss, or before.
    let (code, _, said) = end_of(&mut run(
        &server,
        &["a"],
        &format!("{cli} del a >/dev/null"),
    ));
    assert_eq!(code, 76, "{said}");
    assert!(
        said.contains("the lock was lost while the command ran")
            || said.contains("the lock is lost"),
        "{said}"
    );
    // The command would run for a long time.
    let script = format!("{cli} del a >/dev/null; sleep 100");
    let (code, _, said) = end_of(&mut run(&server, &["--lease", "1s", "a"], &script));
    assert_eq!(code, 76, "{said}");
    assert!(said.contains("the command is ended"), "{said}");
    // The command ignores TERM, sees that the pipe is closed, and ends with 0.
    let script = format!("trap '' TERM; {cli} del a >/dev/null; cat <&$QUORLOCK_FD; exit 0");
    for policy in ["ignore", "term"] {
        let words = ["--lease", "1s", "--on-loss", policy, "a"];
        let (code, _, said) = end_of(&mut run(&server, &words, &script));
        assert_eq!(code, 76, "{policy}: {said}");
    }
}

async fn a_lock_that_is_kept_ends_with_its_lease() {
    let server = Server::start();
    let (code, _, _) = end_of(&mut run(
        &server,
        &["--keep", "--lease", "20s", "a"],
        "true",
    ));
    assert_eq!(code, 0);
    let left: i64 = server.command(&["PTTL", "a"]);
    assert!(10_000 < left && left <= 20_000, "{left}");
    let (code, _, _) = end_of(&mut run(&server, &["-n", "a"], "true"));
    assert_eq!(code, 75);
    // A job that failed is left to others.
    let (code, _, _) = end_of(&mut run(&server, &["--keep", "b"], "exit 3"));
    assert_eq!(code, 3);
    assert_eq!(server.command::<i64>(&["EXISTS", "b"]), 0);
}
