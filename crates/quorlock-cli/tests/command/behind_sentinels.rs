//! The command behind a Sentinel group of real processes.

use std::process::Stdio;

use quorlock_testbed::sentinels::SentinelGroup;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use serde_json::Value;

use super::support::{end_of, listed, quorlock, watch_sees_a_release_by_force};

server_tests![a_hold_of_run_lives_through_a_failover];

async fn a_hold_of_run_lives_through_a_failover() {
    let group = SentinelGroup::start_of(2, 1);
    let on_group = || {
        let mut command = quorlock();
        command.env("QUORLOCK_NODES", group.address());
        command
    };
    let inspect = || -> Value {
        let (code, printed, said) = end_of(on_group().args(["inspect", "--json", "held"]));
        assert_eq!(code, 0, "{said}");
        serde_json::from_str(&printed).expect("one line of JSON")
    };
    let mut command = on_group();
    command.args(["run", "--lease", "60s", "held", "--", "cat"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let has_it = |server: &Server| {
        let exists: Result<i64, _> = server.try_command(&["EXISTS", "held"]);
        exists == Ok(1)
    };
    until("both servers have the claim", || {
        group.servers().iter().all(has_it)
    })
    .await;
    let seen = inspect();
    assert_eq!(seen["state"], "held");
    assert_eq!(
        listed(&mut on_group(), &[]),
        [("held".into(), seen["owner"].clone())]
    );

    let before = group.settle();
    let primary = tokio::task::block_in_place(|| group.fail_over(before));
    let after = inspect();
    assert_eq!(
        (&after["state"], &after["owner"]),
        (&seen["state"], &seen["owner"])
    );
    // `list` scans the new primary.
    assert_eq!(
        listed(&mut on_group(), &[]),
        [("held".into(), seen["owner"].clone())]
    );
    watch_sees_a_release_by_force(on_group, "forced");
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!has_it(&group.servers()[primary]));
    assert_eq!(inspect()["state"], "free");
}
