//! Invalid names and numbers.

use quorlock::{AcquireError, ConfigError, EmbeddedNode, Locks, NameError, Semaphore};

use crate::failures::support::millis;

/// The error of acquiring and of trying, which sends nothing.
async fn refused(node: &EmbeddedNode, semaphore: &Semaphore) -> ConfigError {
    let acquired = semaphore.acquire().await.unwrap_err();
    let at_once = semaphore.clone().wait(millis(0)).acquire().await;
    assert_eq!(acquired, at_once.unwrap_err());
    assert_eq!(acquired, semaphore.try_acquire().await.unwrap_err());
    assert_eq!((node.executed(), node.names()), (0, vec![]));
    match acquired {
        AcquireError::Config(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_and_names_that_cannot_be_are_refused() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    for permits in [0, 1_001, usize::MAX] {
        for semaphore in [
            locks.semaphore("s", permits),
            locks.owner().semaphore("s", permits),
        ] {
            let error = refused(&node, &semaphore).await;
            let text =
                format!("s: a semaphore has 1 to 1000 permits, and {permits} were asked for");
            assert_eq!(error.to_string(), text);
        }
    }
    for (name, error) in [
        (String::new(), NameError::Empty),
        ("a\0b".into(), NameError::Nul),
    ] {
        for semaphore in [locks.semaphore(&name, 1), locks.owner().semaphore(&name, 1)] {
            assert_eq!(refused(&node, &semaphore).await, ConfigError::Name(error));
        }
    }
    let lease = locks.semaphore("s", 3).lease(millis(0));
    assert!(matches!(
        refused(&node, &lease).await,
        ConfigError::LeaseTooShort { .. }
    ));
}

/// The limit leaves room for the addition, and does not depend on the number.
#[tokio::test(start_paused = true)]
async fn the_longest_name_can_have_the_most_permits() {
    for prefix in ["", "app:"] {
        let node = EmbeddedNode::new();
        let locks = Locks::builder()
            .key_prefix(prefix)
            .on_node(node.clone())
            .unwrap();
        let most = 499 - prefix.len();
        let long = "x".repeat(most + 1);
        for permits in [1, 1_000] {
            let error = refused(&node, &locks.semaphore(&long, permits)).await;
            let says = format!("{long}: the name of a semaphore has {} bytes", most + 1);
            assert!(error.to_string().starts_with(&says), "{error}");
            assert!(
                error.to_string().contains(&format!("at most {most} are")),
                "{error}"
            );
        }
        let guard = locks.semaphore(&long[1..], 1_000).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_client_says_so() {
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let semaphore = locks.semaphore("s", 2);
    let _held = [
        semaphore.acquire().await.unwrap(),
        semaphore.acquire().await.unwrap(),
    ];
    let waiter = semaphore.clone();
    let waiter = tokio::spawn(async move { waiter.acquire().await.map(drop) });
    tokio::time::sleep(millis(50)).await;
    locks.close().await;
    assert_eq!(waiter.await.unwrap(), Err(AcquireError::Closed));
    assert_eq!(
        semaphore.acquire().await.map(drop),
        Err(AcquireError::Closed)
    );
    assert_eq!(
        semaphore.try_acquire().await.map(drop),
        Err(AcquireError::Closed)
    );
}
