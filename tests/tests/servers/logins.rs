//! Tests logins that change while connections are open.

mod bench;
mod forgetful;

use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorlock::Guard;
use quorlock::redis::{
    Changing, Credentials, LoggingIn, Login, PasswordFile, RedisCredentialsProvider,
    StreamedCredentials,
};
use quorlock::transport::Cause;
use quorlock_redis::advice;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{acquire_at_last, is_claimed_by, settings, until_renewed};
use tokio::sync::{Notify, watch};

use self::bench::{Bench, redis};
use self::forgetful::Forgetful;

server_tests![
    USERS: a_password_is_rotated_under_load_and_no_hold_is_lost,
    USERS: a_password_that_the_server_gets_later_ends_nothing,
    USERS: a_password_that_was_replaced_between_two_looks_is_asked_for_once_more,
    USERS: credentials_that_change_reach_the_connections_that_live,
    USERS: credentials_of_the_redis_crate_reach_the_connections_that_live,
    USERS: a_server_that_has_forgotten_the_login_is_logged_in_to_again,
    USERS: where_there_are_no_credentials_the_error_says_so_and_shows_nothing,
    USERS: a_password_in_the_address_goes_before,
];

async fn a_password_is_rotated_under_load_and_no_hold_is_lost() {
    let bench = Bench::start("secret-0");
    let locks = bench.locks(bench.file()).await;
    let held = locks.lock("held").acquire().await.unwrap();
    let waiter = locks.lock("held");
    let waiting = tokio::spawn(async move { waiter.acquire().await });
    until("there is a listener", || {
        let channels: Vec<String> = bench.server.command(&["PUBSUB", "CHANNELS"]);
        !channels.is_empty()
    })
    .await;
    let is_over = Arc::new(AtomicBool::new(false));
    let taken = Arc::<AtomicUsize>::default();
    let load = (0..4).map(|number| {
        let lock = locks.lock(format!("load/{number}"));
        let (is_over, taken) = (is_over.clone(), taken.clone());
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let guard = lock.acquire().await.expect("the login is always right");
                guard.release().await.expect("and so it is here");
                taken.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let load: Vec<_> = load.collect();
    for round in 1..=3 {
        let before = bench.connection().await;
        bench.forget_logins();
        bench.acl(&[&format!(">secret-{round}")]);
        bench.write(&format!("secret-{round}"));
        // The command connection logs in again; the wake-up connection is tried, and then replaced.
        until("both connections are logged in again", || {
            3 <= bench.logins()
        })
        .await;
        bench.acl(&[&format!("<secret-{}", round - 1)]);
        assert_eq!(
            bench.connection().await,
            before,
            "requests stay on their connection"
        );
        until_renewed(&held).await;
        let so_far = taken.load(Ordering::Relaxed);
        until("the load goes on", || {
            so_far < taken.load(Ordering::Relaxed)
        })
        .await;
    }
    is_over.store(true, Ordering::Relaxed);
    for task in load {
        task.await.unwrap();
    }
    // Every later connection uses the last password.
    bench.cut();
    until_renewed(&held).await;
    assert!(is_claimed_by(&bench.server, "held", &held));
    assert_eq!(bench.refusals(), 0);
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

async fn a_password_that_the_server_gets_later_ends_nothing() {
    let bench = Bench::start("old");
    let locks = bench.locks(bench.file()).await;
    let guard = locks.lock("a").acquire().await.unwrap();
    let before = bench.connection().await;
    bench.write("new");
    until("it is refused, and tried again", || 2 <= bench.refusals()).await;
    until_renewed(&guard).await;
    bench.forget_logins();
    bench.acl(&[">new", "<old"]);
    until("it is accepted", || 1 <= bench.logins()).await;
    assert_eq!(bench.connection().await, before);
    assert!(is_claimed_by(&bench.server, "a", &guard));
    guard.release().await.unwrap();
}

/// Returns the passwords one after another, and then the last one forever.
struct InTurn(Mutex<Vec<&'static str>>);

impl Credentials for InTurn {
    fn login(&self) -> LoggingIn<'_> {
        let mut words = self.0.lock().unwrap();
        let word = if 1 < words.len() {
            words.remove(0)
        } else {
            words[0]
        };
        Box::pin(async move { Ok(Login::new(word)) })
    }
}

async fn a_password_that_was_replaced_between_two_looks_is_asked_for_once_more() {
    let bench = Bench::start("new");
    let in_turn = |words: &[&'static str]| InTurn(Mutex::new(words.to_vec()));
    let locks = bench.locks(in_turn(&["old", "new"])).await;
    locks
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let wrong = bench
        .settings(in_turn(&["wrong"]))
        .connect(bench.address())
        .await;
    let told = format!("{:?}", wrong.unwrap_err());
    assert!(
        told.contains("BadCredentials") && !told.contains("wrong\""),
        "{told}"
    );
}

/// A vault that returns what the test has set.
struct Vault {
    password: Arc<Mutex<String>>,
    changed: Arc<Notify>,
}

impl Credentials for Vault {
    fn login(&self) -> LoggingIn<'_> {
        let password = self.password.lock().unwrap_or_else(PoisonError::into_inner);
        let login = Login::new(password.as_str()).user("jobs");
        Box::pin(async { Ok(login) })
    }

    fn changed(&self, _: &Login) -> Changing<'_> {
        Box::pin(self.changed.notified())
    }
}

async fn credentials_that_change_reach_the_connections_that_live() {
    let bench = Bench::start("one");
    let password = Arc::new(Mutex::new("one".to_owned()));
    let changed = Arc::<Notify>::default();
    let vault = Vault {
        password: password.clone(),
        changed: changed.clone(),
    };
    let address = bench.address().replace("jobs@", "");
    let locks = bench.settings(vault).connect(address).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let before = bench.connection().await;
    bench.forget_logins();
    bench.acl(&[">two"]);
    "two".clone_into(&mut password.lock().unwrap());
    changed.notify_waiters();
    until("it is logged in again", || bench.logins() == 1).await;
    assert_eq!(bench.connection().await, before);
    guard.release().await.unwrap();
}

/// A provider like that of Entra ID. It sends the newest token to a new subscriber, and then each later one.
struct Tokens(watch::Sender<String>);

impl RedisCredentialsProvider for Tokens {
    fn subscribe(
        &self,
    ) -> Pin<Box<dyn futures_util::Stream<Item = redis::RedisResult<redis::BasicAuth>> + Send>>
    {
        let mut receiver = self.0.subscribe();
        receiver.mark_changed();
        let stream = futures_util::stream::unfold(receiver, async |mut receiver| {
            receiver.changed().await.ok()?;
            let token = receiver.borrow_and_update().clone();
            Some((
                Ok(redis::BasicAuth::new("jobs".to_owned(), token)),
                receiver,
            ))
        });
        Box::pin(stream)
    }
}

async fn credentials_of_the_redis_crate_reach_the_connections_that_live() {
    let bench = Bench::start("one");
    let tokens = Arc::new(Tokens(watch::channel("one".to_owned()).0));
    let provider = StreamedCredentials::from_redis_provider(tokens.clone());
    let locks = bench.locks(provider).await;
    let guard = locks.lock("a").acquire().await.unwrap();
    bench.forget_logins();
    bench.acl(&[">two"]);
    tokens.0.send_replace("two".to_owned());
    until("it is logged in again", || bench.logins() == 1).await;
    bench.acl(&["<one"]);
    bench.cut();
    until_renewed(&guard).await;
    guard.release().await.unwrap();
}

async fn a_server_that_has_forgotten_the_login_is_logged_in_to_again() {
    let bench = Bench::start("one");
    let forgetful = Forgetful::default();
    let config = redis().credentials(bench.file()).network(forgetful.clone());
    let locks = settings()
        .redis(config)
        .connect(bench.address())
        .await
        .unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let before = bench.connection().await;
    forgetful.0.store(true, Ordering::SeqCst);
    let inspected = locks.inspect("a").await.unwrap();
    let nodes = inspected.nodes.iter();
    let causes: Vec<_> = nodes
        .filter_map(|node| Some(node.found.as_ref().err()?.cause))
        .collect();
    assert_eq!(causes, [Cause::NoAuth]);
    until_extended(&guard).await;
    assert_ne!(bench.connection().await, before, "another connection");
    guard.release().await.unwrap();
}

async fn until_extended(guard: &Guard) {
    let start = std::time::Instant::now();
    while let Err(error) = guard.extend(Duration::from_secs(3)).await {
        assert!(guard.is_held() && start.elapsed() < BOUND, "{error}");
    }
}

async fn where_there_are_no_credentials_the_error_says_so_and_shows_nothing() {
    let bench = Bench::start("hunter2");
    let missing = PasswordFile::new("/not/there");
    let empty = bench.server.dir().join("empty");
    std::fs::write(&empty, "\nhunter2\n").unwrap();
    for (file, says) in [
        (missing, "/not/there"),
        (PasswordFile::new(&empty), "first line"),
        (PasswordFile::new(Path::new("/")), "/"),
    ] {
        let builder = bench.settings(file);
        let shown = format!("{builder:?}");
        let error = builder.connect(bench.address()).await.unwrap_err();
        let told = format!("{error} {error:?} {shown}");
        assert!(
            told.contains(says) && told.contains(advice(Cause::NoCredentials)),
            "{told}"
        );
        assert!(!told.contains("hunter2"), "{told}");
    }
    // The file may be created later.
    let late = bench.server.dir().join("late");
    let client = redis::Client::open(bench.address()).unwrap();
    let locks = bench
        .settings(PasswordFile::new(&late))
        .from_redis_client(&client)
        .unwrap();
    let error = locks.lock("a").try_acquire().await.unwrap_err();
    assert!(
        error.to_string().contains(advice(Cause::NoCredentials)),
        "{error}"
    );
    std::fs::write(&late, "hunter2").unwrap();
    acquire_at_last(&locks.lock("a"))
        .await
        .release()
        .await
        .unwrap();
}

async fn a_password_in_the_address_goes_before() {
    let bench = Bench::start("own");
    let file = bench.server.dir().join("other");
    std::fs::write(&file, "other").unwrap();
    let address = bench.address().replace("jobs@", "jobs:own@");
    let locks = bench
        .settings(PasswordFile::new(&file))
        .connect(address)
        .await
        .unwrap();
    locks
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}
