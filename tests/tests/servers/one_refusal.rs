//! Tests that what a server refuses about one name ends no hold on another.

use std::time::Duration;

use quorlock::{Guard, Locks};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::{settings, until_renewed};

server_tests![
    USERS: a_pattern_that_is_revoked_ends_the_holds_under_it_and_no_others,
];

/// The renewals of all names are one call, which the server refuses because of one key.
async fn a_pattern_that_is_revoked_ends_the_holds_under_it_and_no_others() {
    let server = Server::start();
    let patterns = ["~kept:*", "~*{kept:*", "~gone:*", "~*{gone:*"];
    let allow = |rules: &[&str]| {
        let user = ["ACL", "SETUSER", "locks", "on", ">secret", "+@all", "&*"];
        server.command::<()>(&[&user, rules].concat());
    };
    allow(&patterns);
    let address = server.address();
    let address = address.replace("redis://", "redis://locks:secret@");
    let settings = settings().watchdog_lease(Duration::from_secs(6));
    let locks = settings.connect(address).await.unwrap();
    let (mut kept, gone) = (Vec::new(), held(&locks, "gone").await);
    for number in 0..5 {
        kept.extend(held(&locks, &format!("kept:{number}")).await);
    }
    allow(&["resetkeys", "~kept:*", "~*{kept:*"]);
    until("the forbidden names are lost", || {
        gone.iter().all(|guard| !guard.is_held())
    })
    .await;
    for guard in &kept {
        until_renewed(guard).await;
    }
    for guard in kept {
        guard.release().await.unwrap();
    }
}

/// Acquires a name in each mode whose renewals have their own script.
async fn held(locks: &Locks, name: &str) -> Vec<Guard> {
    let plain = locks.lock(format!("{name}:plain"));
    let read = locks.read(format!("{name}:read"));
    let write = locks.write(format!("{name}:write"));
    let mut guards = Vec::new();
    for lock in [plain, read, write] {
        guards.push(lock.acquire().await.unwrap());
    }
    guards
}
