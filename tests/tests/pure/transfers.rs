//! Tests the example of a service: two processes of it, each with its own client and connections, on one database.

#[path = "../../examples/transfers.rs"]
#[allow(unreachable_pub, reason = "an example is a program of its own")]
mod example;

use std::path::Path;

use example::{Balances, Bank, Fence, Refusal, Transfer};
use quorlock::{EmbeddedNode, Locks};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Starts a service. Returns its address.
async fn start(locks: Locks, database: &Path) -> String {
    let bank = Bank {
        locks,
        database: database.to_owned(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async { axum::serve(listener, example::service(bank)).await });
    address
}

/// Returns the code and the body of the answer.
async fn post(address: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /transfers HTTP/1.1\r\nHost: bank\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}

fn balance(database: &Path, account: &str) -> i64 {
    let database = example::open(database).unwrap();
    let sql = "SELECT balance FROM account WHERE name = ?1";
    database
        .query_row(sql, [account], |row| row.get(0))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_services_lose_no_transfer() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("bank");
    example::create(&database, &["alice", "bob", "carol"]).unwrap();
    let node = EmbeddedNode::new();
    let mut services = Vec::new();
    for _ in 0..2 {
        services.push(start(Locks::on_node(node.clone()).unwrap(), &database).await);
    }
    let accounts = ["alice", "bob", "carol"];
    let tasks: Vec<_> = (0..24)
        .map(|number| {
            let service = services[number % 2].clone();
            let (from, to) = (
                accounts[number % 3],
                accounts[(number / 3 + number + 1) % 3],
            );
            let body = format!(r#"{{"from":"{from}","to":"{to}","amount":7}}"#);
            tokio::spawn(async move { (from, to, post(&service, &body).await) })
        })
        .collect();
    let mut expected = [100, 100, 100];
    let mut made = 0;
    for task in tasks {
        let (from, to, (code, body)) = task.await.unwrap();
        let at = |account| accounts.iter().position(|name| *name == account).unwrap();
        match code {
            200 => {
                made += 1;
                expected[at(from)] -= 7;
                expected[at(to)] += 7;
            }
            // The transfer was from an account to itself, there was no money left, or other clients held an account
            // for two seconds.
            400 | 409 => {}
            _ => panic!("{code} {body}"),
        }
    }
    assert!(10 < made, "{made}");
    let there = accounts.map(|account| balance(&database, account));
    assert_eq!(there, expected);
}

#[tokio::test]
async fn a_hold_that_was_overtaken_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("bank");
    example::create(&database, &["alice", "bob"]).unwrap();
    let transfer = Transfer {
        from: "alice".into(),
        to: "bob".into(),
        amount: 30,
    };
    let write = |token: i64, from: i64, to: i64| {
        let fence = Fence(vec![("alice".into(), 9), ("bob".into(), token)]);
        let (database, transfer) = (&database, &transfer);
        async move { example::write(database, &fence, transfer, &Balances { from, to }).await }
    };
    write(8, 70, 130).await.unwrap();
    // Another client acquired only one of the two names in the meantime, but neither account is written.
    let late = write(7, 1, 1).await;
    assert!(matches!(late, Err(Refusal::TooLate)), "{late:?}");
    assert_eq!(balance(&database, "alice"), 70);
    assert_eq!(balance(&database, "bob"), 130);
}

#[tokio::test]
async fn what_cannot_be_done_is_answered_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("bank");
    example::create(&database, &["alice", "bob"]).unwrap();
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let service = start(locks.clone(), &database).await;
    let (code, body) = post(&service, r#"{"from":"alice","to":"alice","amount":1}"#).await;
    assert_eq!(
        (code, body.as_str()),
        (400, "a positive amount, between two accounts\n")
    );
    let (code, body) = post(&service, r#"{"from":"alice","to":"bob","amount":101}"#).await;
    assert_eq!((code, body.as_str()), (409, "not enough money\n"));
    let guard = locks.lock("bob").acquire().await.unwrap();
    let (code, body) = post(&service, r#"{"from":"alice","to":"bob","amount":1}"#).await;
    assert_eq!((code, body.as_str()), (409, "not now: try again\n"));
    guard.release().await.unwrap();
    let (code, body) = post(&service, r#"{"from":"alice","to":"bob","amount":1}"#).await;
    assert_eq!((code, body.as_str()), (200, r#"{"from":99,"to":101}"#));
}
