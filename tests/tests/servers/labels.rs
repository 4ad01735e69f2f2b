//! Tests that operators see which client holds a name.

use std::time::Duration;

use quorlock::operate::Inspection;
use quorlock::{AcquireError, ConfigError, Locks};
use quorlock_testbed::server::{Server, programs};
use quorlock_testbed::server_tests;
use quorlock_tests::clients::{locks_on, settings};

server_tests![
    the_label_of_the_holder_is_shown_while_it_is_connected,
    the_label_is_shown_on_a_majority_and_for_a_writer,
    the_error_of_a_wait_names_the_holder,
    CHANNELS: the_error_of_a_client_that_may_not_look_is_as_without_labels,
    CHANNELS: a_user_who_may_name_or_list_no_connections_locks_without_a_label,
    a_label_that_no_connection_can_have_is_refused,
];

fn shown(inspection: &Inspection) -> Vec<Option<String>> {
    let nodes = inspection.nodes.iter();
    let found = nodes.map(|node| node.found.as_ref().unwrap());
    found.map(|reply| reply.client.clone()).collect()
}

async fn labelled(server: &Server, label: &str) -> Locks {
    let builder = settings().label(label);
    builder.connect(server.address()).await.unwrap()
}

async fn the_label_of_the_holder_is_shown_while_it_is_connected() {
    for program in programs() {
        let server = Server::start_program(&program, &[]);
        let builder = settings().label("web-1:4242");
        // Two clients of one builder are two clients.
        let one = builder.clone().connect(server.address()).await.unwrap();
        let other = builder.label("web-2").connect(server.address()).await;
        let (other, operator) = (other.unwrap(), locks_on(&server).await);
        let guard = one.lock("a").acquire().await.unwrap();
        other.lock("b").acquire().await.unwrap().leak();
        let seen = operator.inspect("a").await.unwrap();
        let [Some(client)] = &shown(&seen)[..] else {
            panic!("{program}: {seen}");
        };
        assert!(client.starts_with("web-1:4242 at 127.0.0.1:"), "{client}");
        let owner = guard.owner_id();
        let text = format!("held by {owner} ({client}), count 1");
        assert!(seen.to_string().contains(&text), "{seen}");
        let seen = operator.inspect("b").await.unwrap();
        assert!(seen.to_string().contains("(web-2 at "), "{seen}");
        // The claim stays, and the client is gone.
        drop((other, operator));
        server.command::<i64>(&["CLIENT", "KILL", "TYPE", "normal"]);
        let operator = locks_on(&server).await;
        let seen = operator.inspect("b").await.unwrap();
        assert_eq!(shown(&seen), [None], "{program}: {seen}");
        guard.release().await.unwrap();
    }
}

async fn the_label_is_shown_on_a_majority_and_for_a_writer() {
    let servers: Vec<Server> = (0..3).map(|_| Server::start()).collect();
    let addresses = || servers.iter().map(Server::address);
    let builder = settings().trust_fresh_nodes().label("worker");
    let locks = builder.quorum(addresses()).await.unwrap();
    let operator = settings()
        .for_operators()
        .quorum(addresses())
        .await
        .unwrap();
    let guard = locks.write("a").acquire().await.unwrap();
    let seen = operator.inspect("a").await.unwrap();
    let labels = shown(&seen).into_iter().flatten();
    let labels = labels.filter(|client| client.starts_with("worker at "));
    assert!(2 <= labels.count(), "{seen}");
    guard.release().await.unwrap();
}

/// Of one who waits and has a label too, for a lock, several names, permits, on one server and on a majority.
async fn the_error_of_a_wait_names_the_holder() {
    let servers: Vec<Server> = (0..3).map(|_| Server::start()).collect();
    let addresses = || servers.iter().map(Server::address);
    let brief = Duration::from_millis(50);
    for one in [true, false] {
        let client = async |label: &str| {
            let builder = settings().trust_fresh_nodes().label(label);
            match one {
                true => builder.connect(servers[0].address()).await.unwrap(),
                false => builder.quorum(addresses()).await.unwrap(),
            }
        };
        let holder = client("web-1").await;
        for name in ["a", "b"] {
            holder.lock(name).acquire().await.unwrap().leak();
        }
        holder.semaphore("s", 1).acquire().await.unwrap().leak();
        // Each waits once: a client looks once in a second.
        let lock = client("w").await.lock("a").wait(brief).acquire().await;
        let both = client("w").await.all(["a", "b"]).wait(brief);
        let permits = client("w").await.semaphore("s", 1).wait(brief);
        let once = client("w").await.lock("a").wait(Duration::ZERO);
        for refused in [
            lock,
            both.acquire().await,
            permits.acquire().await,
            once.acquire().await,
        ] {
            let error = refused.unwrap_err();
            let AcquireError::Contended { clients, .. } = &error else {
                panic!("{error}");
            };
            let [client] = &clients[..] else {
                panic!("{error}");
            };
            assert!(client.starts_with("web-1 at 127.0.0.1:"), "{error}");
            let text = format!(": held by others ({client})");
            assert!(error.to_string().contains(&text), "{error}");
        }
        let unlabelled = settings().trust_fresh_nodes();
        let unlabelled = match one {
            true => unlabelled.connect(servers[0].address()).await.unwrap(),
            false => unlabelled.quorum(addresses()).await.unwrap(),
        };
        let refused = unlabelled.lock("a").wait(brief).acquire().await;
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("held by others, tried for "), "{text}");
        for server in &servers {
            server.command::<()>(&["FLUSHALL"]);
        }
    }
}

async fn the_error_of_a_client_that_may_not_look_is_as_without_labels() {
    let server = Server::start();
    labelled(&server, "web")
        .await
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .leak();
    for right in ["-client|list", "-hgetall"] {
        server.command::<()>(&["ACL", "SETUSER", "default", right]);
        let lock = labelled(&server, "w").await.lock("a");
        let refused = lock.wait(Duration::from_millis(50)).acquire().await;
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("a: held by others, tried for "), "{text}");
    }
}

async fn a_user_who_may_name_or_list_no_connections_locks_without_a_label() {
    let server = Server::start();
    server.command::<()>(&["ACL", "SETUSER", "default", "-client|setname"]);
    let locks = labelled(&server, "web").await;
    let guard = locks.lock("a").acquire().await.unwrap();
    let seen = locks_on(&server).await.inspect("a").await.unwrap();
    assert_eq!(shown(&seen), [None]);
    guard.release().await.unwrap();
    server.command::<()>(&[
        "ACL",
        "SETUSER",
        "default",
        "+client|setname",
        "-client|list",
    ]);
    let locks = labelled(&server, "web").await;
    let _guard = locks.lock("a").acquire().await.unwrap();
    let seen = locks_on(&server).await.inspect("a").await.unwrap();
    assert_eq!(shown(&seen), [None]);
}

async fn a_label_that_no_connection_can_have_is_refused() {
    let server = Server::start();
    for label in ["", "a b", "a\nb", "größe", &"x".repeat(101)] {
        let refused = settings().label(label).connect(server.address()).await;
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("label"), "{error}");
        assert!(matches!(
            error,
            quorlock::ConnectError::Config(ConfigError::Label)
        ));
    }
}
