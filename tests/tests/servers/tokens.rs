//! Tests the tokens that a real server hands out.

use quorlock_core::fencing::{Fence, Token};
use quorlock_core::message::{AcquireReply, Freshness, ReleaseReply, RenewReply, Retention};
use quorlock_core::time::{WallMillis, millis_of};
use quorlock_core::transport::Transport;
use quorlock_redis::{RedisConfig, RedisTransport};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use quorlock_tests::clients::{claim_of, quorum_of};
use quorlock_tests::page::block;
use quorlock_tests::requests::{
    RETENTION, SLACK, acquire, ask, claim, name, release, renew, take, wall_clock,
};
use quorlock_tests::wire::token_key;

server_tests![
    a_floor_near_the_clock_is_the_token,
    a_floor_far_ahead_is_clamped_to_the_server_s_clock,
    a_floor_far_behind_is_clamped_to_the_server_s_clock,
    every_new_hold_gets_a_larger_token,
    a_counter_keeps_all_its_digits,
    a_counter_expires_unless_it_is_shared,
    an_uncontended_quorum_agrees_on_the_token,
    a_renewal_stores_the_token_it_carries_if_it_is_larger,
    a_resource_in_redis_takes_no_smaller_token,
    a_fenced_read_in_redis_loses_no_update_and_a_plain_one_does,
];

fn open(server: &Server) -> RedisTransport {
    RedisTransport::open(&server.address(), RedisConfig::default()).unwrap()
}

async fn token_for(transport: &impl Transport, floor: WallMillis) -> Token {
    let mut request = acquire(&name("orders/42"), 1);
    request.fence = Fence::Mint {
        floor,
        slack_millis: millis_of(SLACK),
    };
    match ask(transport, request).await.unwrap() {
        AcquireReply::Granted { token, .. } => token,
        other => panic!("{other:?}"),
    }
}

/// Returns how many scripts a server has executed.
fn scripts(server: &Server) -> u64 {
    let stats: String = server.command(&["INFO", "commandstats"]);
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let calls = line.and_then(|rest| rest.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

/// Five nodes hand out the same token in at least 95 of 100 uncontended acquisitions, and then one round trip is enough:
/// each node executes one acquire and one release. A larger token would have to be proposed to three of them.
async fn an_uncontended_quorum_agrees_on_the_token() {
    const HOLDS: u64 = 200;
    let servers: Vec<_> = (0..5).map(|_| Server::start()).collect();
    let locks = quorum_of(&servers).await;
    let lock = locks.lock("a");
    // A node that is late would have the token of the previous hold. So the client waits until all nodes have released
    // it.
    let hold = async || {
        lock.acquire().await.unwrap().release().await.unwrap();
        wait_until("the hold is over", || {
            servers.iter().all(|server| claim_of(server, "a").is_none())
        });
    };
    hold().await;
    // Three of the servers are enough for a hold. The others may not have received their first requests yet.
    wait_until("each server has granted and released it", || {
        servers.iter().all(|server| 2 <= scripts(server))
    });
    let executed = || servers.iter().map(scripts).sum::<u64>();
    let before = executed();
    for _ in 0..HOLDS {
        hold().await;
    }
    locks.close().await;
    let proposals = (executed() - before).saturating_sub(2 * 5 * HOLDS);
    println!("{proposals} proposals to single nodes in {HOLDS} acquisitions");
    assert!(proposals <= 3 * HOLDS / 20, "{proposals}");
}

async fn a_floor_near_the_clock_is_the_token() {
    let server = Server::start();
    let floor = wall_clock().plus(1_000);
    assert_eq!(token_for(&open(&server), floor).await, Token(floor.0));
}

async fn a_floor_far_ahead_is_clamped_to_the_server_s_clock() {
    let server = Server::start();
    let transport = open(&server);
    let before = wall_clock();
    let token = token_for(&transport, before.plus(3_600_000)).await;
    let slack = millis_of(SLACK);
    // The bounds allow for two readings of the same clock, and a millisecond for rounding.
    let (least, most) = (before.plus(slack - 1), wall_clock().plus(slack + 1));
    assert!(least.0 <= token.0 && token.0 <= most.0, "{token:?}");
}

async fn a_floor_far_behind_is_clamped_to_the_server_s_clock() {
    let server = Server::start();
    let transport = open(&server);
    let before = wall_clock();
    let token = token_for(&transport, WallMillis(0)).await;
    let slack = millis_of(SLACK);
    let (least, most) = (before.minus(slack + 1), wall_clock().minus(slack - 1));
    assert!(least.0 <= token.0 && token.0 <= most.0, "{token:?}");
}

async fn every_new_hold_gets_a_larger_token() {
    let server = Server::start();
    let transport = open(&server);
    let name = name("orders/42");
    let mut last = Token(0);
    for number in 1..=20 {
        let token = take(&transport, &name, number).await;
        assert!(last < token, "{last:?}, then {token:?}");
        last = token;
        let released = release(&transport, &name, number, 0).await;
        assert_eq!(released, Ok(ReleaseReply::FREED));
    }
}

async fn a_counter_keeps_all_its_digits() {
    let server = Server::start();
    let transport = open(&server);
    let name = name("orders/42");
    let largest = (1u64 << 53) - 2;
    server.command::<()>(&["SET", &token_key(&name), &largest.to_string()]);
    assert_eq!(take(&transport, &name, 1).await, Token(largest + 1));
    let stored: String = server.command(&["GET", &token_key(&name)]);
    assert_eq!(stored, "9007199254740991");
}

async fn a_counter_expires_unless_it_is_shared() {
    let server = Server::start();
    let transport = open(&server);
    let (ours, shared) = (name("ours"), name("shared"));
    take(&transport, &ours, 1).await;
    let ttl: u64 = server.command(&["PTTL", &token_key(&ours)]);
    let most = millis_of(RETENTION);
    assert!(most - 10_000 < ttl && ttl <= most, "{ttl}");

    let mut request = acquire(&shared, 1);
    request.retention = Retention::Forever;
    ask(&transport, request).await.unwrap();
    let ttl: i64 = server.command(&["PTTL", &token_key(&shared)]);
    assert_eq!(ttl, -1);
}

async fn a_renewal_stores_the_token_it_carries_if_it_is_larger() {
    let server = Server::start();
    let transport = open(&server);
    let name = name("orders/42");
    let token = take(&transport, &name, 1).await;
    let stored = |token| Ok(vec![RenewReply::AlreadyYours { token }]);

    let smaller = claim(&name, 1, Token(token.0 - 1));
    assert_eq!(renew(&transport, vec![smaller]).await, stored(token));
    let larger = Token(token.0 + 5);
    let claim = claim(&name, 1, larger);
    assert_eq!(renew(&transport, vec![claim]).await, stored(larger));
    let again = ask(&transport, acquire(&name, 1)).await;
    let freshness = Freshness::AlreadyYours;
    let token = larger;
    assert_eq!(again, Ok(AcquireReply::Granted { freshness, token }));
}

const FENCING: &str = include_str!("../../../docs/src/fencing.md");

/// Runs the script of the page about fencing, word for word.
async fn a_resource_in_redis_takes_no_smaller_token() {
    let script = block(FENCING, "lua write");
    let server = Server::start();
    let write = |token: u64, value: &str| -> u32 {
        server.command(&["EVAL", script, "1", "report", &token.to_string(), value])
    };
    let largest = (1 << 53) - 1;
    assert_eq!(write(7, "first"), 1);
    assert_eq!(write(7, "again by the same hold"), 1);
    assert_eq!(write(6, "too late"), 0);
    assert_eq!(write(largest, "largest"), 1);
    assert_eq!(write(largest - 1, "one less"), 0);
    let stored: Vec<String> = server.command(&["HMGET", "report", "value", "token"]);
    assert_eq!(stored, ["largest", &largest.to_string()]);
}

/// Runs two writers in the order of the page's table: the old holder writes between the new one's read and write.
async fn a_fenced_read_in_redis_loses_no_update_and_a_plain_one_does() {
    type Read = (u32, Option<String>);
    let server = Server::start();
    let write = |token: &str, value: &str| -> u32 {
        let script = block(FENCING, "lua write");
        server.command(&["EVAL", script, "1", "report", token, value])
    };
    let plain = |_: &str| -> Read {
        (
            1,
            server.command::<Option<String>>(&["HGET", "report", "value"]),
        )
    };
    let fenced = |token: &str| -> Read {
        let script = block(FENCING, "lua read");
        let answer: (u32, Option<String>) =
            match server.command::<Vec<redis::Value>>(&["EVAL", script, "1", "report", token]) {
                answer if answer.len() == 1 => (0, None),
                answer => (1, redis::from_redis_value(answer[1].clone()).unwrap()),
            };
        answer
    };
    // The outcome of the old holder's update, and the final value.
    let told = |read: &dyn Fn(&str) -> Read| -> (u32, String) {
        server.command::<()>(&["DEL", "report"]);
        assert_eq!(write("7", "a"), 1);
        let old = read("7").1.unwrap() + ", b";
        let new = read("9").1.unwrap() + ", c";
        let taken = write("7", &old);
        assert_eq!(write("9", &new), 1);
        (taken, server.command(&["HGET", "report", "value"]))
    };
    assert_eq!(told(&plain), (1, "a, c".into()), "acknowledged, and lost");
    assert_eq!(told(&fenced), (0, "a, c".into()));
    assert_eq!(fenced("8"), (0, None), "a read that is too late is refused");
    assert_eq!(fenced("9"), (1, Some("a, c".into())));
    server.command::<()>(&["DEL", "report"]);
    assert_eq!(fenced("7"), (1, None));
}
