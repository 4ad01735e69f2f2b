//! Users and their rights.

use etcd_client::Permission;
use quorlock::Locks;
use quorlock_core::transport::Execution;
use quorlock_store::{Cause, Draft, Key, Store, open};
use quorlock_testbed::etcd::Etcd;

use crate::databases::{bare, check, patient, problem, refused};
use crate::operator;

/// The password of the user `locks`, and how an address has it.
const PASSWORD: [&str; 2] = ["s3cret@:/?#%", "s3cret%40%3a%2f%3f%23%25"];

/// Lets the server ask for a user from now on.
async fn ask_for_users(server: &Etcd) {
    let mut operator = operator(server).await;
    for (user, password, right) in [
        ("root", "root", None),
        (
            "locks",
            PASSWORD[0],
            Some(Permission::read_write("quorlock/")),
        ),
        ("reader", "reads", Some(Permission::read("quorlock/"))),
        ("other", "other", Some(Permission::read_write("other/"))),
    ] {
        operator.user_add(user, password, None).await.unwrap();
        operator.role_add(user).await.unwrap();
        operator.user_grant_role(user, user).await.unwrap();
        if let Some(right) = right {
            let right = right.with_prefix();
            operator.role_grant_permission(user, right).await.unwrap();
        }
    }
    operator.auth_enable().await.unwrap();
}

fn with_login(server: &Etcd, login: &str) -> String {
    server.address().replace("://", &format!("://{login}@"))
}

pub(crate) async fn what_is_wrong_with_a_user_is_said(server: Etcd) {
    let right = with_login(&server, &format!("locks:{}", PASSWORD[1]));
    let (cause, said) = problem(refused(&right).await);
    assert_eq!(cause, Cause::NoAuth, "{said}");
    assert!(said.contains("leave the user out"), "{said}");
    let before = bare(&server);
    check(&*before).await.unwrap();
    ask_for_users(&server).await;
    for (address, cause, words) in [
        (
            with_login(&server, "locks:wrong"),
            Cause::NoAuth,
            "user or password",
        ),
        (
            with_login(&server, "stranger:wrong"),
            Cause::NoAuth,
            "user or password",
        ),
        (server.address(), Cause::NoAuth, "asks for a user"),
        (
            with_login(&server, "other:other"),
            Cause::NoPermission,
            "readwrite",
        ),
    ] {
        let error = refused(&address).await;
        assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
        let (found, said) = problem(error);
        assert_eq!(found, cause, "{address}: {said}");
        assert!(said.contains(words), "{address}: {said}");
    }
    // A client that was there before.
    let error = check(&*before).await.unwrap_err();
    assert_eq!(error.cause, Cause::NoAuth, "{error:?}");
    who_may_only_read_is_refused(&with_login(&server, "reader:reads")).await;
    let locks = Locks::connect(&right).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
}

async fn who_may_only_read_is_refused(reader: &str) {
    let locks = Locks::connect(reader).await.unwrap();
    let error = locks.lock("a").acquire().await.unwrap_err();
    assert!(error.to_string().contains("readwrite"), "{error}");
    let draft = Draft {
        record: b"x".to_vec(),
        number: 7,
        has_news: false,
        useful_until: None,
    };
    let reader = open(reader).unwrap();
    let error = reader
        .write_if(&Key::new("a"), None, draft)
        .await
        .unwrap_err();
    assert_eq!(error.cause, Cause::NoPermission, "{error:?}");
    assert_eq!(error.execution, Execution::Definite);
}

/// A server that is started again knows none of the tokens that it has given.
pub(crate) async fn a_token_that_a_restart_has_ended_is_replaced(mut server: Etcd) {
    ask_for_users(&server).await;
    let right = with_login(&server, &format!("locks:{}", PASSWORD[1]));
    let client = || patient(open(&right).unwrap());
    let (one, other) = (client(), client());
    let guard = one.lock("a").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { other.lock("a").acquire().await.unwrap() });
    server.kill();
    server.launch();
    guard.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
}
