//! Tests the exact keys on the server, and that a JVM client would agree with them.

use std::collections::BTreeMap;

use quorlock_core::message::{AcquireReply, Freshness, ReleaseReply, RenewReply, Ttl};
use quorlock_core::time::millis_of;
use quorlock_redis::{RedisConfig, RedisTransport};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_tests::requests::{
    LEASE, acquire, ask, claim, name, owner, refusal, release, renew, take,
};
use quorlock_tests::wire::{acquire_as_jvm, channel, claim_key, release_as_jvm, token_key};

server_tests![
    a_claim_is_one_field_with_the_owner_and_the_count,
    a_claim_expires_with_its_lease,
    an_acquisition_writes_the_claim_and_the_token_and_nothing_else,
    a_released_name_leaves_the_token_alone,
    a_name_without_braces_is_put_into_braces,
    a_name_with_an_opening_brace_is_left_as_it_is,
    a_release_publishes_a_zero,
    a_partial_release_publishes_nothing,
    a_resent_acquisition_counts_once,
    a_resent_release_frees_nothing_of_the_next_holder,
    a_shorter_lease_leaves_the_ttl,
    a_jvm_client_is_excluded_by_ours,
    ours_is_excluded_by_a_jvm_client,
    a_jvm_client_s_hold_is_not_extended_by_our_renewal,
    a_jvm_client_s_reentry_keeps_excluding_ours,
];

/// An owner as a JVM client writes it.
const JVM: &str = "0fb4a3e4-4b32-4d3b-9d5e-3a2b1c0d9e8f:31";

fn open(server: &Server) -> RedisTransport {
    RedisTransport::open(&server.address(), RedisConfig::default()).unwrap()
}

fn keys(server: &Server) -> Vec<String> {
    let mut keys: Vec<String> = server.command(&["KEYS", "*"]);
    keys.sort();
    keys
}

fn fields(server: &Server, key: &str) -> BTreeMap<String, String> {
    server.command(&["HGETALL", key])
}

async fn a_claim_is_one_field_with_the_owner_and_the_count() {
    let server = Server::start();
    let mut request = acquire(&name("orders/42"), 7);
    request.count = 3;
    ask(&open(&server), request).await.unwrap();
    let field = "00000000-0000-4000-8000-000000000007:7";
    assert_eq!(owner(7).to_string(), field);
    assert_eq!(
        fields(&server, "orders/42"),
        BTreeMap::from([(field.into(), "3".into())])
    );
}

async fn a_claim_expires_with_its_lease() {
    let server = Server::start();
    take(&open(&server), &name("orders/42"), 1).await;
    let ttl: u64 = server.command(&["PTTL", "orders/42"]);
    let lease = millis_of(LEASE);
    assert!(lease - 10_000 < ttl && ttl <= lease, "{ttl}");
}

async fn an_acquisition_writes_the_claim_and_the_token_and_nothing_else() {
    let server = Server::start();
    take(&open(&server), &name("orders/42"), 1).await;
    assert_eq!(
        keys(&server),
        ["orders/42", "redisson_lock_token:{orders/42}"]
    );
}

async fn a_released_name_leaves_the_token_alone() {
    let server = Server::start();
    let (transport, name) = (open(&server), name("orders/42"));
    let token = take(&transport, &name, 1).await;
    release(&transport, &name, 1, 0).await.unwrap();
    assert_eq!(keys(&server), ["redisson_lock_token:{orders/42}"]);
    let stored: String = server.command(&["GET", &token_key(&name)]);
    assert_eq!(stored, token.to_string());
}

async fn a_name_without_braces_is_put_into_braces() {
    let name = name("a}b ü");
    assert_eq!(claim_key(&name), "a}b ü");
    assert_eq!(token_key(&name), "redisson_lock_token:{a}b ü}");
    assert_eq!(channel(&name), "redisson_lock__channel:{a}b ü}");
    let server = Server::start();
    take(&open(&server), &name, 1).await;
    assert_eq!(keys(&server), ["a}b ü", "redisson_lock_token:{a}b ü}"]);
}

async fn a_name_with_an_opening_brace_is_left_as_it_is() {
    for text in ["{tag}:stock", "half {open"] {
        let name = name(text);
        assert_eq!(token_key(&name), format!("redisson_lock_token:{text}"));
        assert_eq!(channel(&name), format!("redisson_lock__channel:{text}"));
        let server = Server::start();
        take(&open(&server), &name, 1).await;
        let mut expected = vec![text.to_string(), format!("redisson_lock_token:{text}")];
        expected.sort();
        assert_eq!(keys(&server), expected);
    }
}

/// Returns everything that is published while the test does something.
async fn published(server: &Server, during: impl AsyncFnOnce()) -> Vec<(String, String)> {
    let mut connection = server.connect().unwrap();
    let mut subscriber = connection.as_pubsub();
    subscriber.psubscribe("*").unwrap();
    during().await;
    server.command::<()>(&["PUBLISH", "the end", ""]);
    let mut messages = Vec::new();
    loop {
        let message = subscriber.get_message().unwrap();
        let channel = message.get_channel_name().to_string();
        if channel == "the end" {
            return messages;
        }
        messages.push((channel, message.get_payload().unwrap()));
    }
}

async fn a_release_publishes_a_zero() {
    let server = Server::start();
    // Without a script, the release of a claim that has ended publishes one, too.
    let scripts = RedisConfig::default().only_scripts(true);
    let transport = RedisTransport::open(&server.address(), scripts).unwrap();
    for (text, channel) in [
        ("orders/42", "redisson_lock__channel:{orders/42}"),
        ("{tag}:stock", "redisson_lock__channel:{tag}:stock"),
    ] {
        let name = name(text);
        let messages = published(&server, async || {
            take(&transport, &name, 1).await;
            release(&transport, &name, 1, 0).await.unwrap();
            release(&transport, &name, 1, 0).await.unwrap();
        });
        assert_eq!(messages.await, [(channel.into(), "0".into())]);
    }
}

async fn a_partial_release_publishes_nothing() {
    let server = Server::start();
    let (transport, name) = (open(&server), name("orders/42"));
    let messages = published(&server, async || {
        let mut request = acquire(&name, 1);
        request.count = 2;
        ask(&transport, request).await.unwrap();
        let kept = release(&transport, &name, 1, 1).await;
        assert_eq!(kept, Ok(ReleaseReply::Kept));
    });
    assert_eq!(messages.await, []);
    assert_eq!(
        fields(&server, "orders/42"),
        BTreeMap::from([(owner(1).to_string(), "1".into())])
    );
}

async fn a_resent_acquisition_counts_once() {
    let server = Server::start();
    let (transport, name) = (open(&server), name("orders/42"));
    let request = acquire(&name, 1);
    let first = ask(&transport, request.clone()).await.unwrap();
    let AcquireReply::Granted { token, .. } = first else {
        panic!("{first:?}")
    };
    let freshness = Freshness::AlreadyYours;
    let second = ask(&transport, request).await;
    assert_eq!(second, Ok(AcquireReply::Granted { freshness, token }));
    assert_eq!(
        fields(&server, "orders/42"),
        BTreeMap::from([(owner(1).to_string(), "1".into())])
    );
    let released = release(&transport, &name, 1, 0).await;
    assert_eq!(released, Ok(ReleaseReply::FREED));
}

async fn a_resent_release_frees_nothing_of_the_next_holder() {
    let server = Server::start();
    let (transport, name) = (open(&server), name("orders/42"));
    take(&transport, &name, 1).await;
    release(&transport, &name, 1, 0).await.unwrap();
    take(&transport, &name, 2).await;
    let resent = release(&transport, &name, 1, 0).await;
    assert_eq!(resent, Ok(ReleaseReply::NotYours));
    refusal(&transport, &name, 3).await;
}

async fn a_shorter_lease_leaves_the_ttl() {
    let server = Server::start();
    let (transport, name) = (open(&server), name("orders/42"));
    take(&transport, &name, 1).await;
    let mut again = acquire(&name, 1);
    again.lease = quorlock_core::lease::Lease::new(LEASE / 30).unwrap();
    ask(&transport, again).await.unwrap();
    let ttl: u64 = server.command(&["PTTL", "orders/42"]);
    assert!(millis_of(LEASE) - 10_000 < ttl, "{ttl}");
}

async fn a_jvm_client_is_excluded_by_ours() {
    let server = Server::start();
    let transport = open(&server);
    for text in ["orders/42", "{tag}:stock", "заказ"] {
        let name = name(text);
        take(&transport, &name, 1).await;
        let shown = acquire_as_jvm(&server, &name, JVM, 30_000).unwrap();
        assert!((20_000..=30_000).contains(&shown), "{shown}");
        assert_eq!(release_as_jvm(&server, &name, JVM), None);
        release(&transport, &name, 1, 0).await.unwrap();
        assert_eq!(acquire_as_jvm(&server, &name, JVM, 30_000), None);
    }
}

async fn ours_is_excluded_by_a_jvm_client() {
    let server = Server::start();
    let transport = open(&server);
    for text in ["orders/42", "{tag}:stock", "заказ"] {
        let name = name(text);
        assert_eq!(acquire_as_jvm(&server, &name, JVM, 30_000), None);
        let Ttl::Millis(shown) = refusal(&transport, &name, 1).await else {
            panic!("it has an expiry")
        };
        assert!((20_000..=30_000).contains(&shown), "{shown}");
        let released = release(&transport, &name, 1, 0).await;
        assert_eq!(released, Ok(ReleaseReply::NotYours));
        assert_eq!(release_as_jvm(&server, &name, JVM), Some(1));
        take(&transport, &name, 1).await;
    }
}

async fn a_jvm_client_s_hold_is_not_extended_by_our_renewal() {
    let server = Server::start();
    let (transport, name) = (open(&server), name("orders/42"));
    acquire_as_jvm(&server, &name, JVM, 10_000);
    let token = quorlock_core::fencing::Token(1);
    let renewed = renew(&transport, vec![claim(&name, 1, token)]).await;
    assert_eq!(renewed, Ok(vec![RenewReply::NotYours]));
    let ttl: u64 = server.command(&["PTTL", "orders/42"]);
    assert!(ttl <= 10_000, "{ttl}");
    assert_eq!(keys(&server), ["orders/42"]);
}

async fn a_jvm_client_s_reentry_keeps_excluding_ours() {
    let server = Server::start();
    let (transport, name) = (open(&server), name("orders/42"));
    acquire_as_jvm(&server, &name, JVM, 30_000);
    acquire_as_jvm(&server, &name, JVM, 30_000);
    assert_eq!(release_as_jvm(&server, &name, JVM), Some(0));
    refusal(&transport, &name, 1).await;
    assert_eq!(release_as_jvm(&server, &name, JVM), Some(1));
    take(&transport, &name, 1).await;
}
