//! Tests groups that clients reach by other means than unencrypted IPv4 addresses.

use std::path::Path;

use quorlock::Locks;
use quorlock::redis::{RedisConfig, Tls};
use quorlock_testbed::certificates::{Authority, Validity};
use quorlock_testbed::sentinels::{GroupSetup, NAME, SentinelGroup};
use quorlock_testbed::server::Door;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{hasty, is_claimed_by, settings};
use tempfile::TempDir;

server_tests![
    a_group_is_spoken_to_under_tls,
    sentinels_have_an_authority_of_their_own,
    sentinels_announce_host_names,
    a_group_is_reached_over_ipv6,
];

/// A claim is held across a requested failover, and then handed over to a waiter.
async fn works_through_a_failover(group: &SentinelGroup, redis: RedisConfig) {
    let connect = || settings().redis(redis.clone()).connect(group.address());
    let (ours, theirs): (Locks, Locks) = (connect().await.unwrap(), connect().await.unwrap());
    let guard = ours.lock("held").lease(4 * BOUND).acquire().await.unwrap();
    let servers = group.servers();
    until("all servers have the claim", || {
        servers.iter().all(|s| is_claimed_by(s, "held", &guard))
    })
    .await;
    let lock = theirs.lock("held").wait(4 * BOUND);
    let waiter = tokio::spawn(async move { lock.acquire().await });
    let before = group.settle();
    let primary = tokio::task::block_in_place(|| group.fail_over(before));
    until("the waiter listens to the new primary", || {
        let words = ["PUBSUB", "CHANNELS", "redisson_lock__channel:*"];
        let channels: Vec<String> = servers[primary].try_command(&words).unwrap_or_default();
        channels.len() == 1
    })
    .await;
    assert!(guard.is_held() && is_claimed_by(&servers[primary], "held", &guard));
    guard.release().await.unwrap();
    let next = waiter.await.unwrap().unwrap();
    assert!(is_claimed_by(&servers[primary], "held", &next));
    next.release().await.unwrap();
}

/// The certificates of a group.
struct Papers {
    folder: TempDir,
    authority: Authority,
}

impl Papers {
    fn new() -> Papers {
        Papers {
            folder: tempfile::tempdir().unwrap(),
            authority: Authority::new(),
        }
    }

    /// Returns the options of a process that presents a certificate of this authority and trusts the other processes'
    /// authority.
    fn options(&self, believes: &str) -> Vec<String> {
        let certificate = self
            .authority
            .sign(&["localhost", "127.0.0.1"], Validity::Now);
        let files = certificate.write(self.folder.path(), "own");
        let ca = self.folder.path().join("believed.pem");
        std::fs::write(&ca, believes).unwrap();
        let text = |path: &Path| path.display().to_string();
        let options = [
            ("--tls-cert-file", text(&files.certificate)),
            ("--tls-key-file", text(&files.key)),
            ("--tls-ca-cert-file", text(&ca)),
            ("--tls-auth-clients", "no".to_owned()),
            ("--tls-replication", "yes".to_owned()),
        ];
        let options = options.into_iter();
        options
            .flat_map(|(option, value)| [option.to_owned(), value])
            .collect()
    }

    fn tls(&self) -> Tls {
        Tls::new().roots_pem(self.authority.pem())
    }
}

fn encrypted(servers: &Papers, sentinels: &Papers) -> SentinelGroup {
    let believed = servers.authority.pem() + &sentinels.authority.pem();
    let setup = GroupSetup {
        door: Door::Tls,
        server_options: servers.options(&believed),
        sentinel_options: sentinels.options(&believed),
        ..GroupSetup::new(2, 1)
    };
    SentinelGroup::start_by(setup)
}

async fn a_group_is_spoken_to_under_tls() {
    let papers = Papers::new();
    let group = encrypted(&papers, &papers);
    assert!(group.address().starts_with("rediss+sentinel://"));
    works_through_a_failover(&group, hasty().tls(papers.tls())).await;
    // Without the authority, neither the sentinels nor the servers are trusted.
    let error = settings().connect(group.address()).await.unwrap_err();
    assert!(error.to_string().contains("authority"), "{error}");
}

async fn sentinels_have_an_authority_of_their_own() {
    let (servers, sentinels) = (Papers::new(), Papers::new());
    let group = encrypted(&servers, &sentinels);
    let redis = || hasty().tls(servers.tls());
    works_through_a_failover(&group, redis().sentinel_tls(sentinels.tls())).await;
    for wrong in [redis(), redis().sentinel_tls(servers.tls())] {
        let error = settings().redis(wrong).connect(group.address()).await;
        let error = error.unwrap_err();
        assert!(error.to_string().contains("authority"), "{error}");
    }
}

async fn sentinels_announce_host_names() {
    let names = ["resolve-hostnames", "announce-hostnames"];
    let setup = GroupSetup {
        host: "localhost",
        server_options: [
            "--bind",
            "127.0.0.1",
            "-::1",
            "--replica-announce-ip",
            "localhost",
        ]
        .map(String::from)
        .to_vec(),
        lines: names.map(|name| format!("sentinel {name} yes")).to_vec(),
        ..GroupSetup::new(2, 1)
    };
    let group = SentinelGroup::start_by(setup);
    let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
    let (host, _): (String, u16) = group.sentinels()[0].command(&words);
    assert_eq!(host, "localhost");
    works_through_a_failover(&group, hasty()).await;
    let (host, _): (String, u16) = group.sentinels()[0].command(&words);
    assert_eq!(host, "localhost");
}

async fn a_group_is_reached_over_ipv6() {
    if let Err(error) = std::net::TcpListener::bind(("::1", 0)) {
        println!("not tried: this machine has no IPv6 ({error})");
        return;
    }
    let bind = ["--bind", "127.0.0.1", "::1"].map(String::from).to_vec();
    let setup = GroupSetup {
        host: "::1",
        server_options: bind.clone(),
        sentinel_options: bind,
        ..GroupSetup::new(2, 1)
    };
    let group = SentinelGroup::start_by(setup);
    assert!(group.address().contains("[::1]"));
    let words = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
    let (host, _): (String, u16) = group.sentinels()[0].command(&words);
    assert_eq!(host, "::1");
    works_through_a_failover(&group, hasty()).await;
}
