//! Tests the simulated server on a real port, used by the product and by other clients.

use std::cell::RefCell;
use std::process::Command;

use quorlock::Locks;
use quorlock_testbed::wait::wait_until;
use quorlock_tests::conformance::{Cases, Coverage, RedisArm, SpecArm, agree, names, sequences};
use quorlock_tests::requests::wall_clock;
use quorlock_tests::simulated::Simulated;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scripts_in_the_embedded_interpreter_agree_with_the_specification() {
    let (names, now, cases) = (names(), wall_clock(), Cases::from_environment());
    let server = Simulated::start();
    let spec = RefCell::new(SpecArm::new(now));
    let arm = RefCell::new(RedisArm::at(server.ports()[0], &names));
    let coverage = RefCell::new(Coverage::default());
    cases.run(&sequences(now), |steps| {
        agree(
            steps,
            &names,
            &mut spec.borrow_mut(),
            &mut *arm.borrow_mut(),
            &mut coverage.borrow_mut(),
        )
    });
    coverage
        .borrow()
        .assert_each_occurred(cases.count as usize / 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_product_locks_on_one_simulated_node_and_is_woken() {
    let server = Simulated::start();
    let locks = Locks::connect(&server.address()).await.unwrap();
    let others = Locks::connect(&server.address()).await.unwrap();
    let guard = locks.lock("orders/42").acquire().await.unwrap();
    assert!(
        others
            .lock("orders/42")
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    let waiting = others.lock("orders/42");
    let waiting = tokio::spawn(async move { waiting.acquire().await });
    let first = guard.fencing_token();
    guard.release().await.unwrap();
    let second = waiting.await.unwrap().unwrap();
    assert!(first < second.fencing_token());
    second.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_product_shows_the_password() {
    let server = Simulated::start_with(1, Some("hunter2"), &[]);
    assert!(Locks::connect(&server.address()).await.is_err());
    let address = server.address().replace("//", "//:hunter2@");
    let locks = Locks::connect(&address).await.unwrap();
    locks
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

#[test]
fn redis_cli_talks_to_it() {
    let server = Simulated::start();
    let port = server.ports()[0].to_string();
    let cli = |words: &[&str]| {
        let said = Command::new("redis-cli")
            .args(["-p", &port])
            .args(words)
            .output();
        said.map(|said| String::from_utf8(said.stdout).unwrap())
    };
    let Ok(said) = cli(&["PING"]) else {
        println!("there is no redis-cli on the PATH");
        return;
    };
    assert_eq!(said, "PONG\n");
    assert_eq!(cli(&["SET", "a", "1"]).unwrap(), "OK\n");
    assert_eq!(cli(&["-3", "HSET", "h", "f", "v"]).unwrap(), "1\n");
    assert_eq!(cli(&["-3", "HGETALL", "h"]).unwrap(), "f v\n");
    assert_eq!(
        cli(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "a"]).unwrap(),
        "1\n"
    );
    assert!(cli(&["INFO", "server"]).unwrap().contains("redis_version:"));
}

/// Returns a node's answer to this, whatever the state of its connections.
fn ask<T: redis::FromRedisValue>(port: u16, words: &[&str]) -> redis::RedisResult<T> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/"))?;
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(*word);
    }
    command.query(&mut client.get_connection()?)
}

#[test]
fn a_node_that_crashes_comes_back_on_its_port_as_another_process() {
    let server = Simulated::start_with(
        2,
        None,
        &["kind = 'crash-node', at = '100ms', restart_after = '100ms', node = 1"],
    );
    let run_id = |node: usize| {
        let info: String = ask(server.ports()[node], &["INFO", "server"]).ok()?;
        info.lines()
            .find_map(|line| line.strip_prefix("run_id:"))
            .map(str::to_owned)
    };
    let at_first = |seed| redis_sim::Server::new(seed).run_id();
    wait_until("node 1 is another process", || {
        run_id(1).is_some_and(|id| id != at_first(1))
    });
    assert_eq!(run_id(0), Some(at_first(0)));
}

#[test]
fn the_clock_of_a_node_is_set() {
    let server = Simulated::start_with(1, None, &["kind = 'node-step', at = '0s', by = '3600s'"]);
    wait_until("its clock is an hour ahead", || {
        let time: (u64, u64) = ask(server.ports()[0], &["TIME"]).unwrap();
        wall_clock().0 / 1_000 + 3_500 < time.0
    });
}
