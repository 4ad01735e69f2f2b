//! The production adapter behind sentinels, with failovers that go wrong, in virtual time. Each test reproduces a failure
//! that other clients have had or could have.

use std::time::Duration;

use quorlock::redis::{RedisTransport, Wait};
use quorlock::transport::{AcquireReply, Cause, Execution, ReleaseReply, Request, Transport};

use crate::turmoil_adapter::town::{ADDRESS, SENTINELS, Town, config, fail_over, transport};
use crate::turmoil_adapter::two_hosts::{Heard, acquire, acquire_for, name, pass, release, until};

const HOUR: Duration = Duration::from_secs(3600);

fn is_granted(reply: &AcquireReply) -> bool {
    matches!(reply, AcquireReply::Granted { .. })
}

async fn passes(span: u64) {
    pass(Duration::from_millis(span)).await;
}

#[test]
fn the_first_sentinel_may_be_stopped() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        hall.stop("s1");
        let transport = transport();
        let began = turmoil::elapsed();
        let reply = acquire(&transport, &name("x"), 1).await.unwrap();
        assert!(is_granted(&reply) && hall.has("a", "x"));
        let took = turmoil::elapsed() - began;
        assert!(took < Duration::from_millis(300), "{took:?}");
        // The sentinel that answered is the first one that the adapter queries next time.
        hall.hang_up("a");
        passes(50).await;
        let began = turmoil::elapsed();
        acquire(&transport, &name("y"), 1).await.unwrap();
        let took = turmoil::elapsed() - began;
        assert!(took < Duration::from_millis(100), "{took:?}");
    });
}

#[test]
fn a_stale_sentinel_is_not_believed_by_a_client_that_has_seen_the_failover() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        let transport = transport();
        acquire(&transport, &name("x"), 1).await.unwrap();
        // The first sentinel is cut off together with the old primary, which still grants.
        hall.promote("b");
        hall.tell("s2", "b", 2);
        hall.tell("s3", "b", 2);
        passes(100).await;
        let reply = acquire(&transport, &name("y"), 1).await.unwrap();
        assert!(is_granted(&reply));
        assert!(hall.has("b", "y") && !hall.has("a", "y"));
        let before = hall.accepted("a");
        for round in 0..10 {
            hall.hang_up("b");
            for sentinel in SENTINELS {
                hall.hang_up(sentinel);
            }
            passes(20).await;
            let key = format!("z{round}");
            let deadline = turmoil::elapsed() + Duration::from_secs(2);
            while acquire(&transport, &name(&key), 1).await.is_err() {
                assert!(turmoil::elapsed() < deadline);
                passes(20).await;
            }
            assert!(hall.has("b", &key), "{key}");
        }
        assert_eq!(hall.accepted("a"), before, "the old primary is left alone");
    });
}

#[test]
fn sentinels_that_were_all_set_up_anew_are_believed() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        let transport = transport();
        fail_over(&hall);
        acquire(&transport, &name("x"), 1).await.unwrap();
        hall.promote("a");
        for sentinel in SENTINELS {
            hall.tell(sentinel, "a", 0);
        }
        hall.hang_up("b");
        passes(200).await;
        acquire(&transport, &name("y"), 1).await.unwrap();
        assert!(hall.has("a", "y"));
    });
}

#[test]
fn a_live_connection_that_says_readonly_is_left() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        let transport = transport();
        acquire(&transport, &name("x"), 1).await.unwrap();
        for sentinel in SENTINELS {
            hall.stop(sentinel);
        }
        // No sentinel announces the promotion.
        hall.promote("b");
        hall.demote("a", "b");
        let error = acquire(&transport, &name("y"), 1).await.unwrap_err();
        assert_eq!(
            (error.cause, error.execution),
            (Cause::ReadOnly, Execution::Definite)
        );
        for sentinel in SENTINELS {
            hall.resume(sentinel);
            hall.tell(sentinel, "b", 2);
        }
        acquire(&transport, &name("y"), 1).await.unwrap();
        assert!(hall.has("b", "y"));
    });
}

#[test]
fn a_primary_that_dies_between_a_script_and_wait_leaves_it_open_what_was_done() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        let config = config().wait(Wait::replicas(1, Duration::from_millis(50)));
        let transport = RedisTransport::open(ADDRESS, config).unwrap();
        acquire(&transport, &name("x"), 1).await.unwrap();
        hall.stop_at("a", "WAIT");
        let waiting = tokio::task::spawn_local({
            let transport = transport.clone();
            async move { acquire(&transport, &name("y"), 1).await }
        });
        passes(50).await;
        let began = turmoil::elapsed();
        fail_over(&hall);
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(error.execution, Execution::Indeterminate);
        // The call fails before its time-out.
        assert!(
            turmoil::elapsed() - began < Duration::from_millis(300),
            "{error}"
        );
        // The replica had the write, so no other owner has the name.
        let again = acquire(&transport, &name("y"), 1).await;
        // The new primary has no replica that confirms the claim either, so the claim does not count.
        let error = again.unwrap_err();
        assert_eq!(error.cause, Cause::NotReplicated);
        assert!(hall.has("b", "y"));
        let other = acquire(&transport, &name("y"), 2).await.unwrap();
        assert!(!is_granted(&other), "{other:?}");
    });
}

#[test]
fn a_request_under_way_in_a_failover_ends_at_once_and_is_executed_once_where_it_is_asked_again() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        let transport = transport();
        let renewed = || transport.call(Request::Acquire(acquire_for(&name("x"), HOUR)));
        renewed().await.unwrap();
        hall.stop_at("a", "EVALSHA");
        let under_way = tokio::task::spawn_local(renewed());
        passes(50).await;
        let began = turmoil::elapsed();
        fail_over(&hall);
        let error = under_way.await.unwrap().unwrap_err();
        assert_eq!(error.execution, Execution::Indeterminate);
        assert!(
            turmoil::elapsed() - began < Duration::from_millis(300),
            "{error}"
        );
        renewed().await.unwrap();
        assert_eq!(
            release(&transport, &name("x"), 1).await,
            Ok(ReleaseReply::FREED)
        );
        assert!(!hall.has("b", "x"));
    });
}

#[test]
fn an_old_primary_that_comes_back_and_still_grants_is_not_asked() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        let (ours, idle) = (transport(), transport());
        acquire(&idle, &name("used"), 2).await.unwrap();
        acquire(&ours, &name("x"), 1).await.unwrap();
        hall.stop("a");
        fail_over(&hall);
        passes(200).await;
        acquire(&ours, &name("fresh"), 1).await.unwrap();
        // The old primary answers, and claims to be the primary.
        hall.resume("a");
        for key in ["x", "fresh"] {
            let reply = acquire(&idle, &name(key), 2).await.unwrap();
            assert!(!is_granted(&reply), "{key}: {reply:?}");
        }
        assert!(!hall.has("a", "fresh"));
    });
}

#[test]
fn a_sentinel_that_names_a_replica_is_passed_over() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        hall.tell("s1", "b", 1);
        let began = turmoil::elapsed();
        acquire(&transport(), &name("x"), 1).await.unwrap();
        let took = turmoil::elapsed() - began;
        assert!(hall.has("a", "x"));
        assert!(took < Duration::from_millis(300), "{took:?}");
    });
}

#[test]
fn a_primary_that_is_not_one_yet_is_waited_for() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        hall.stop("a");
        for sentinel in SENTINELS {
            hall.tell(sentinel, "b", 2);
        }
        let promoting = hall.clone();
        let promoted = tokio::task::spawn_local(async move {
            passes(300).await;
            promoting.promote("b");
            turmoil::elapsed()
        });
        acquire(&transport(), &name("x"), 1).await.unwrap();
        let waited = turmoil::elapsed() - promoted.await.unwrap();
        assert!(waited < Duration::from_millis(200), "{waited:?}");
        assert!(hall.has("b", "x"));
    });
}

#[test]
fn a_group_without_a_primary_says_so() {
    let town = Town::open();
    let hall = town.hall();
    town.run(async move {
        for sentinel in SENTINELS {
            hall.tell(sentinel, "b", 2);
        }
        let error = acquire(&transport(), &name("x"), 1).await.unwrap_err();
        assert_eq!(
            (error.cause, error.execution),
            (Cause::NoPrimary, Execution::Definite)
        );
        assert!(
            error.detail.contains("b:6379, which the sentinel s"),
            "{error}"
        );
    });
}

#[test]
fn wake_ups_follow_the_primary() {
    let town = Town::open();
    let hall = town.hall();
    let heard = Heard::nothing();
    town.run(async move {
        let transport = transport();
        acquire(&transport, &name("x"), 1).await.unwrap();
        let _subscription = transport.subscribe(&name("x").into(), heard.clone());
        until("messages flow", || heard.lives() == 1).await;
        hall.stop("a");
        fail_over(&hall);
        until("messages flow again", || heard.lives() == 2).await;
        let released = release(&transport, &name("x"), 1).await;
        assert_eq!(released, Ok(ReleaseReply::FREED));
        until("it is heard", || 0 < heard.wakes()).await;
    });
}
