//! The commands for operators on a Redis Cluster of real processes.

use std::process::{Child, Command, Stdio};

use quorlock::Locks;
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::sentinels::SentinelGroup;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use serde_json::Value;

use super::support::{Folder, end_of, listed, quorlock, rows, watch_sees_a_release_by_force};

server_tests![
    operators_see_and_free_names_of_all_shards,
    names_of_a_majority_of_shards_are_listed_under_their_tags,
    list_says_which_part_of_a_cluster_is_down,
    list_logs_in_to_a_cluster_as_the_locks_do,
    a_name_of_a_mixed_majority_is_listed_once,
];

/// Returns the command for the locks at this address.
fn on(address: &str) -> Command {
    let mut command = quorlock();
    command.env("QUORLOCK_NODES", address);
    command
}

/// A `quorlock run` that holds a name until it is dropped.
struct Holder(Child);

impl Holder {
    fn start(mut command: Command, name: &str) -> Self {
        command.args(["run", name, "--", "cat"]);
        Holder(command.stdin(Stdio::piped()).spawn().expect("it starts"))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Returns the owner of a name, as `inspect` prints it.
fn owner(mut command: Command, name: &str) -> Value {
    let (code, printed, said) = end_of(command.args(["inspect", "--json", name]));
    assert_eq!(code, 0, "{said}");
    let seen: Value = serde_json::from_str(&printed).expect("one line of JSON");
    seen["owner"].clone()
}

/// Holds a name on each shard. Returns the names and the owners, in the order of the names, and what holds them.
fn held_on_each_shard(cluster: &Cluster) -> (Vec<(String, Value)>, Vec<Holder>) {
    let address = cluster.address();
    let primaries = cluster.primaries();
    let mut names: Vec<String> = Vec::new();
    let mut holders = Vec::new();
    for primary in primaries {
        let name = cluster.name_on(primary, "shard/");
        holders.push(Holder::start(on(&address), &name));
        let node = &cluster.nodes()[primary];
        wait_until("the lock is held", || {
            node.command::<i64>(&["EXISTS", &name]) == 1
        });
        names.push(name);
    }
    names.sort();
    let names = names.into_iter();
    let held = names.map(|name| {
        let owner = owner(on(&address), &name);
        assert!(owner.is_string(), "{owner}");
        (name, owner)
    });
    (held.collect(), holders)
}

async fn operators_see_and_free_names_of_all_shards() {
    let cluster = Cluster::start();
    let address = cluster.address();
    let (held, _holders) = held_on_each_shard(&cluster);
    assert_eq!(held.len(), 3);
    // A key of another program, which cannot be a name in a cluster.
    let other = &cluster.nodes()[cluster.owner_of("a}b").unwrap()];
    other.command::<i64>(&["HSET", "a}b", "field", "1"]);
    other.command::<i64>(&["EXPIRE", "a}b", "100"]);
    assert_eq!(listed(&mut on(&address), &[]), held);
    let (name, _) = &held[1];
    assert_eq!(listed(&mut on(&address), &[name]), held[1..2]);
    let (code, printed, said) = end_of(on(&address).arg("list"));
    assert_eq!((code, printed.lines().count()), (0, 4), "{printed}{said}");
    for primary in cluster.primaries() {
        let name = cluster.name_on(primary, "forced/");
        watch_sees_a_release_by_force(|| on(&address), &name);
    }
    // A shard whose replica was promoted is scanned there.
    cluster.fail_over(cluster.primaries()[0]);
    cluster.settle();
    assert_eq!(listed(&mut on(&address), &[]), held);
}

async fn names_of_a_majority_of_shards_are_listed_under_their_tags() {
    let cluster = Cluster::start();
    let address = cluster.address();
    let builder = Locks::builder().trust_fresh_nodes();
    let locks = builder.majority_of_shards(&address, 3).await.unwrap();
    let guard = locks.lock("orders/42").acquire().await.unwrap();
    let owner = Value::from(guard.owner_id().to_string());
    // The guard is there when two shards have granted. The claim of the third may follow.
    let mut found = Vec::new();
    tokio::task::block_in_place(|| {
        wait_until("each shard lists its claim", || {
            found = listed(&mut on(&address), &[]);
            found.len() == 3
        });
    });
    for (name, found) in &found {
        assert!(name.ends_with("}:orders/42"), "{name}");
        assert_eq!(found, &owner);
        assert_eq!(self::owner(on(&address), name), owner);
    }
    guard.release().await.unwrap();
}

async fn list_says_which_part_of_a_cluster_is_down() {
    let cluster = Cluster::start_with(&["--cluster-require-full-coverage", "no"]);
    let address = cluster.address().replace("://", "://default:@");
    let (held, _holders) = held_on_each_shard(&cluster);
    let primary = cluster.primaries()[0];
    let lost = cluster.name_on(primary, "shard/");
    let replica = cluster.replica_of(primary);
    cluster.nodes()[replica].kill();
    cluster.nodes()[primary].kill();
    let (code, printed, said) = end_of(on(&address).args(["list", "--json"]));
    assert_eq!(code, 69, "{printed}{said}");
    let left: Vec<_> = held.iter().filter(|(name, _)| *name != lost).collect();
    assert_eq!(rows(&printed).iter().collect::<Vec<_>>(), left);
    let at = format!("127.0.0.1:{}", cluster.nodes()[primary].port());
    assert!(said.contains(&at) && said.contains("refused"), "{said}");
    assert!(said.contains("names may be missing"), "{said}");

    let others: Vec<usize> = (0..cluster.nodes().len())
        .filter(|index| ![primary, replica].contains(index))
        .collect();
    for index in others {
        cluster.nodes()[index].kill();
    }
    let (code, printed, said) = end_of(on(&address).args(["list", "--json"]));
    assert_eq!((code, printed.as_str()), (69, ""), "{said}");
    assert!(said.contains("check that the node runs"), "{said}");
}

async fn list_logs_in_to_a_cluster_as_the_locks_do() {
    let cluster = Cluster::alone(&[]);
    let node = &cluster.nodes()[0];
    let rights = [
        "ACL",
        "SETUSER",
        "bob",
        "on",
        ">s3:cret@",
        "~*",
        "&*",
        "+@all",
    ];
    node.command::<()>(&rights);
    let folder = Folder::new();
    let file = folder.file("password");
    let address = cluster.address().replace("://", "://bob@");
    let with = |password: &str| {
        std::fs::write(&file, password).unwrap();
        let mut command = on(&address);
        command.env("QUORLOCK_PASSWORD_FILE", &file);
        command
    };
    let _holder = Holder::start(with("s3:cret@\n"), "held");
    wait_until("the lock is held", || {
        node.command::<i64>(&["EXISTS", "held"]) == 1
    });
    let held = [("held".to_owned(), owner(with("s3:cret@\n"), "held"))];
    assert_eq!(listed(&mut with("s3:cret@\n"), &[]), held);
    let (code, _, said) = end_of(with("wr0ng\n").arg("list"));
    assert_eq!(code, 78, "{said}");
    node.command::<()>(&["ACL", "SETUSER", "bob", "-scan"]);
    let (code, _, told) = end_of(with("s3:cret@\n").arg("list"));
    assert_eq!(code, 78, "{told}");
    assert!(told.contains("'scan'"), "{told}");
    assert!(
        !said.contains("wr0ng") && !told.contains("s3"),
        "{said}{told}"
    );
}

async fn a_name_of_a_mixed_majority_is_listed_once() {
    let (group, cluster, server) = (
        SentinelGroup::start_of(2, 1),
        Cluster::alone(&[]),
        Server::start(),
    );
    let addresses = [
        group.address(),
        cluster.address(),
        format!("unix://{}", server.socket().display()),
    ];
    // A key of another program, which cannot be a name in a majority with a cluster.
    server.command::<i64>(&["HSET", "{a}b", "field", "1"]);
    server.command::<i64>(&["EXPIRE", "{a}b", "100"]);
    let script = format!(
        "{q} list --json --trust-fresh-nodes; {q} list --json --trust-fresh-nodes 'orders/?2'",
        q = env!("CARGO_BIN_EXE_quorlock")
    );
    let mut run = on(&addresses.join(","));
    run.args([
        "run",
        "--trust-fresh-nodes",
        "orders/42",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let (code, printed, said) = end_of(&mut run);
    assert_eq!(code, 0, "{said}");
    let rows = rows(&printed);
    assert_eq!(rows.len(), 2, "{printed}{said}");
    assert!(
        rows.iter()
            .all(|(name, owner)| name == "orders/42" && owner.is_string())
    );
}
