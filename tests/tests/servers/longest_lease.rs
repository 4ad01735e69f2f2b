//! A rolling deployment changes `longest_lease`, on a majority of servers and on one.

use std::time::{Duration, Instant};

use quorlock::{Locks, NodeTrust};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_tests::clients::hasty;

server_tests![
    a_longer_setting_locks_at_once_and_has_longer_leases_one_old_longest_lease_later,
    a_shorter_setting_locks_at_once_beside_a_longer_one,
];

const OLD: Duration = Duration::from_secs(3);
const NEW: Duration = Duration::from_secs(6);
const LONG: Duration = Duration::from_secs(5);
const MARKER: &str = "quorlock_marker";

async fn client(servers: &[Server], longest: Duration) -> Locks {
    let settings = Locks::builder().redis(hasty()).trust_fresh_nodes();
    let settings = settings.longest_lease(longest).watchdog_lease(OLD);
    let settings = settings.node_trust(NodeTrust::Watched);
    let connected = match servers {
        [only] => settings.connect(only.address()).await,
        several => settings.quorum(several.iter().map(Server::address)).await,
    };
    connected.expect("the servers can be used")
}

/// The figures in the marker of a server.
fn figures(server: &Server) -> String {
    let marker: String = server.command(&["GET", MARKER]);
    marker.split(':').nth(2).unwrap().to_owned()
}

async fn a_longer_setting_locks_at_once_and_has_longer_leases_one_old_longest_lease_later() {
    for many in [1, 3] {
        let servers: Vec<Server> = std::iter::repeat_with(Server::start).take(many).collect();
        let old = client(&servers, OLD).await;
        let held = old.lock("job").acquire().await.unwrap();
        let new = client(&servers, NEW).await;
        let began = Instant::now();
        drop(new.lock("other").try_acquire().await.unwrap().unwrap());
        assert!(new.lock("job").try_acquire().await.unwrap().is_none());
        let refused = new.lock("long").lease(LONG).try_acquire().await;
        assert!(refused.is_err(), "{refused:?}");
        let long = new.lock("long").lease(LONG).wait(4 * NEW).acquire().await;
        println!("{many}: a longer lease after {:?}", began.elapsed());
        assert!(OLD < long.unwrap().validity() && OLD <= began.elapsed());
        assert!(held.is_held());
        held.extend(OLD).await.unwrap();
        drop(old.lock("another").try_acquire().await.unwrap().unwrap());
        assert!(servers.iter().all(|server| figures(server) == "6000"));
    }
}

async fn a_shorter_setting_locks_at_once_beside_a_longer_one() {
    let servers: Vec<Server> = std::iter::repeat_with(Server::start).take(3).collect();
    let old = client(&servers, NEW).await;
    let held = old.lock("job").lease(LONG).acquire().await.unwrap();
    let new = client(&servers, OLD).await;
    drop(new.lock("other").try_acquire().await.unwrap().unwrap());
    assert!(new.lock("job").try_acquire().await.unwrap().is_none());
    assert!(new.lock("long").lease(LONG).try_acquire().await.is_err());
    assert!(held.is_held());
    assert!(servers.iter().all(|server| figures(server) == "6000"));
}
