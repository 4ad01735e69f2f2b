//! Tests how a client discovers the primary, and its errors if there is none.

use std::time::Instant;

use quorlock::errors::NodeProblem;
use quorlock::redis::NodeConnectError;
use quorlock::transport::Cause;
use quorlock::{ConfigError, ConnectError, Locks};
use quorlock_redis::advice;
use quorlock_testbed::sentinels::{NAME, SentinelGroup};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::BOUND;
use quorlock_tests::clients::{hasty, is_claimed_by, settings};

use super::stage::{client, group};

server_tests![
    the_primary_is_found_by_any_sentinel,
    dead_and_stopped_sentinels_are_passed_over,
    an_unknown_name_is_named,
    sentinels_that_are_all_gone_are_named,
    a_sentinel_that_wants_a_password_is_told_one,
    a_server_is_no_sentinel,
    one_group_under_two_addresses_is_refused,
];

async fn works(locks: &Locks, group: &SentinelGroup) {
    let guard = locks.lock("found").acquire().await.unwrap();
    let primary = group.settle();
    assert!(is_claimed_by(&group.servers()[primary], "found", &guard));
    guard.release().await.unwrap();
}

async fn the_primary_is_found_by_any_sentinel() {
    let group = group().await;
    works(&client(&group).await, &group).await;
    for sentinel in group.sentinels() {
        let locks = settings().connect(group.address_by(&[sentinel])).await;
        works(&locks.unwrap(), &group).await;
    }
}

async fn dead_and_stopped_sentinels_are_passed_over() {
    let group = group().await;
    let [first, second, third] = group.sentinels() else {
        panic!("there are three")
    };
    let dead = Server::start();
    dead.kill();
    first.pause();
    let address = group.address_by(&[&dead, first, second, third]);
    let began = Instant::now();
    let patient = settings().redis(hasty().connect_timeout(BOUND));
    let locks = patient.connect(&address).await.unwrap();
    println!(
        "connected past a dead and a stopped sentinel in {:?}",
        began.elapsed()
    );
    assert!(began.elapsed() < BOUND, "it waited for the silent sentinel");
    first.resume();
    works(&locks, &group).await;
}

async fn problem(address: &str) -> NodeConnectError {
    let began = Instant::now();
    let error = settings().connect(address).await.unwrap_err();
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    match error {
        ConnectError::Nodes { mut problems, .. } => match problems.remove(0) {
            NodeProblem::Redis(problem) => problem,
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

#[track_caller]
fn assert_says(problem: &NodeConnectError, words: &str) {
    let text = problem.to_string();
    assert!(text.contains(words), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

async fn an_unknown_name_is_named() {
    let group = group().await;
    let address = group.address().replace(NAME, "nobody");
    let problem = problem(&address).await;
    assert_says(&problem, "knows no primary of this name");
    assert_says(&problem, "\"nobody\"");
    assert_says(&problem, advice(Cause::UnknownGroup));
}

async fn sentinels_that_are_all_gone_are_named() {
    let dead = [Server::start(), Server::start()];
    dead.iter().for_each(Server::kill);
    let ports = dead.each_ref().map(Server::port);
    let address = format!(
        "redis+sentinel://:s3cret@127.0.0.1:{},127.0.0.1:{}/{NAME}",
        ports[0], ports[1]
    );
    let problem = problem(&address).await;
    assert!(matches!(problem, NodeConnectError::Unreachable { .. }));
    for port in ports {
        assert_says(&problem, &format!("127.0.0.1:{port}: "));
    }
    assert_says(&problem, "no sentinel names");
}

async fn a_sentinel_that_wants_a_password_is_told_one() {
    let group = SentinelGroup::start_of(1, 1);
    let sentinel = &group.sentinels()[0];
    sentinel.command::<()>(&["ACL", "SETUSER", "default", ">s3cret"]);
    let looker = [
        "ACL",
        "SETUSER",
        "looker",
        "on",
        ">0ther s3cret",
        "&*",
        "+@all",
    ];
    sentinel.command::<()>(&looker);
    let address = group.address();
    let wrong = format!("{address}?sentinel_password=s3cret.not");
    let missing = problem(&address).await;
    assert!(matches!(missing, NodeConnectError::BadCredentials { .. }));
    assert_says(&missing, "sentinel_password=..");
    let wrong = problem(&wrong).await;
    assert!(matches!(wrong, NodeConnectError::BadCredentials { .. }));
    assert_says(&wrong, "refused the login");
    for login in [
        "?sentinel_password=s3cret",
        "?sentinel_user=looker&sentinel_password=0ther%20s3cret",
    ] {
        let locks = settings().connect(format!("{address}{login}")).await;
        let guard = locks.unwrap().lock("x").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    let redis = hasty().sentinel_login(Some("looker"), "0ther s3cret");
    assert!(!format!("{redis:?}").contains("s3cret"));
    let locks = settings().redis(redis).connect(&address).await.unwrap();
    let guard = locks.lock("y").acquire().await.unwrap();
    guard.release().await.unwrap();
}

async fn a_server_is_no_sentinel() {
    let server = Server::start();
    let address = format!("redis+sentinel://127.0.0.1:{}/{NAME}", server.port());
    assert_says(&problem(&address).await, "a server, not a sentinel");
}

async fn one_group_under_two_addresses_is_refused() {
    let group = group().await;
    let other = Server::start();
    let [first, second, third] = group.sentinels() else {
        panic!("there are three")
    };
    let primary = group.settle();
    for second in [
        group.address_by(&[second, third]),
        group.servers()[primary].address(),
    ] {
        let addresses = [group.address_by(&[first]), other.address(), second];
        let error = settings().quorum(addresses).await.unwrap_err();
        let same = matches!(error, ConnectError::Config(ConfigError::SameServer { .. }));
        assert!(same, "{error}");
    }
    let turned = group.address_by(&[third, second, first]);
    let addresses = [group.address(), other.address(), turned];
    let error = settings().quorum(addresses).await.unwrap_err();
    let same = matches!(error, ConnectError::Config(ConfigError::SameNode { .. }));
    assert!(same, "{error}");
}
