//! Locks in a file of SQLite and in a table of PostgreSQL or MySQL, alone and beside Redis servers.

use std::process::Command;

use quorlock_testbed::mysql::Mysql;
use quorlock_testbed::postgres::Postgres;
use quorlock_testbed::s3::S3;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;

use super::support::{Folder, end_of, listed, quorlock, watch_sees_a_release_by_force};

server_tests![
    a_file_serves_every_command,
    POSTGRES: a_table_serves_every_command,
    MYSQL: a_table_of_mysql_serves_every_command,
    POSTGRES: a_majority_may_be_of_a_server_a_file_and_a_table,
    what_is_wrong_with_a_file_is_said,
    a_file_that_may_not_be_written_is_an_error,
    POSTGRES: what_is_wrong_with_a_database_is_said,
    the_sql_of_tables_is_printed,
];

/// Returns the command for the locks at this address, with the keys of a server of S3.
pub(crate) fn at(address: &str) -> Command {
    let mut command = quorlock();
    command.env("QUORLOCK_NODES", address).envs(S3::KEYS);
    command
}

/// Returns the address of a file, which is not there.
fn file(folder: &Folder) -> String {
    format!("sqlite:{}", folder.file("locks.db").display())
}

fn init(address: &str) {
    let (code, printed, said) = end_of(at(address).arg("init"));
    assert_eq!((code, printed.as_str(), said.as_str()), (0, "", ""));
}

/// Checks every command but `run` and `init` in a script that runs while the lock `orders/1` is held.
pub(crate) fn serves_every_command(address: &str) {
    init(address);
    init(address);
    let inside = |words: &[&str]| {
        let mut command = at(address);
        command.args(["run", "orders/1", "--", env!("CARGO_BIN_EXE_quorlock")]);
        end_of(command.args(words))
    };
    let (code, printed, said) = inside(&["inspect", "orders/1"]);
    assert_eq!(code, 0, "{said}");
    assert!(printed.contains("held by"), "{printed}");
    let (code, _, said) = inside(&["run", "-n", "orders/1", "--", "true"]);
    assert_eq!(code, 75, "{said}");
    for (words, names) in [
        (&["list"][..], 1),
        (&["list", "orders/[0-9]"], 1),
        (&["list", "stock/*"], 0),
        (&["list", "--key-prefix", "orders/"], 1),
        (&["list", "--key-prefix", "stock/"], 0),
    ] {
        let (code, printed, said) = inside(words);
        assert_eq!(code, 0, "{said}");
        assert_eq!(printed.lines().count(), 1 + names, "{words:?}: {printed}");
    }
    assert!(listed(&mut at(address), &[]).is_empty());
    let mut leader = at(address);
    leader.args(["leader", "--once", "scheduler", "--", "sh", "-c", "exit 3"]);
    assert_eq!(end_of(&mut leader).0, 3);
    watch_sees_a_release_by_force(|| at(address), "report");
}

async fn a_file_serves_every_command() {
    let folder = Folder::new();
    serves_every_command(&file(&folder));
}

async fn a_table_serves_every_command() {
    serves_every_command(&Postgres::start().address());
}

async fn a_table_of_mysql_serves_every_command() {
    let folder = Folder::new();
    let server = Mysql::start();
    let address = server.address();
    serves_every_command(&address);
    // A password that is in a file, and has every kind of character.
    server.execute(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON locks.quorlock TO jobs@'127.0.0.1' IDENTIFIED BY 's3cret@:/?#%'",
    );
    std::fs::write(folder.file("password"), "s3cret@:/?#%\n").unwrap();
    let mut command = at(&address.replace("locks:right", "jobs"));
    command.env("QUORLOCK_PASSWORD_FILE", folder.file("password"));
    let (code, _, said) = end_of(command.args(["run", "a", "--", "true"]));
    assert_eq!(code, 0, "{said}");
    let wrong = address.replace(Mysql::PASSWORD, "s3cret");
    fails(at(&wrong).args(["list"]), 78, "user or password");
}

async fn a_majority_may_be_of_a_server_a_file_and_a_table() {
    let folder = Folder::new();
    let (redis, mut postgres) = (Server::start(), Postgres::start());
    let nodes = [redis.address(), file(&folder), postgres.address()].join(",");
    init(&nodes);
    let run = |script: &str| {
        let mut command = at(&nodes);
        command.args(["run", "--trust-fresh-nodes", "a", "--", "sh", "-c", script]);
        end_of(&mut command)
    };
    let inspect = format!("{} inspect a", env!("CARGO_BIN_EXE_quorlock"));
    let (code, printed, said) = run(&inspect);
    assert_eq!(code, 0, "{said}");
    assert!(printed.contains("held by"), "{printed}");
    redis.kill();
    let (code, printed, said) = run(&inspect);
    assert_eq!(code, 0, "{said}");
    assert!(printed.contains("on 2 of 3 nodes"), "{printed}");
    postgres.kill();
    let (code, _, said) = end_of(at(&nodes).args(["inspect", "a"]));
    assert_eq!(code, 69, "{said}");
    assert!(
        !said.contains(&format!(":{}@", Postgres::PASSWORD)),
        "{said}"
    );
}

/// Checks the exit code and some of the words of an error.
#[track_caller]
pub(crate) fn fails(command: &mut Command, code: i32, words: &str) {
    let (found, _, said) = end_of(command);
    assert_eq!(found, code, "{said}");
    assert!(said.contains(words), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

async fn what_is_wrong_with_a_file_is_said() {
    let folder = Folder::new();
    let address = file(&folder);
    fails(
        at(&address).args(["inspect", "a"]),
        78,
        "`quorlock init ADDRESS`",
    );
    let missing = format!("sqlite:{}/no/folder/locks.db", folder.path().display());
    fails(
        quorlock().args(["init", &missing]),
        78,
        "a folder that is there",
    );
    std::fs::write(folder.file("locks.db"), "").unwrap();
    fails(at(&address).args(["list"]), 78, "no tables for locks");
    let unknown = format!("{address}?mode=s3cret");
    fails(
        at(&unknown).args(["list"]),
        78,
        "?mode, which means nothing here",
    );
    for unknown in ["cassandra://u:s3cret@h", "dynamodb://h"] {
        fails(
            at(unknown).args(["init"]),
            78,
            "of a store etcd://, mongodb://, mysql://, postgres://, s3://, sqlite:",
        );
    }
    fails(
        at(&address).args(["init", "--print", "redis://h"]),
        64,
        "no table is needed",
    );
}

/// Another user than the owner of the file, as the rights of files do not apply to root.
async fn a_file_that_may_not_be_written_is_an_error() {
    let folder = Folder::new();
    let address = file(&folder);
    init(&address);
    let open = |path: &std::path::Path, mode: &str| {
        let status = Command::new("chmod").arg(mode).arg(path).status();
        assert!(status.unwrap().success());
    };
    open(folder.path(), "755");
    open(&folder.file("locks.db"), "444");
    let mut command = if rustix::process::geteuid().is_root() {
        // The program may be in a folder that others may not enter.
        std::fs::copy(env!("CARGO_BIN_EXE_quorlock"), folder.file("quorlock")).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(folder.file("quorlock"));
        command
    } else {
        quorlock()
    };
    let command = command
        .args(["inspect", "a"])
        .env("QUORLOCK_NODES", &address);
    fails(command, 78, "cannot be written by this user");
}

async fn what_is_wrong_with_a_database_is_said() {
    let folder = Folder::new();
    let mut server = Postgres::start();
    let address = server.address();
    fails(
        at(&address).args(["run", "a", "--", "true"]),
        78,
        "`quorlock init ADDRESS`",
    );
    init(&address);
    let wrong = address.replace(Postgres::PASSWORD, "s3cret");
    fails(at(&wrong).args(["list"]), 78, "pg_hba.conf");
    // A password that is in a file, and has every kind of character.
    server.execute("CREATE ROLE jobs SUPERUSER LOGIN PASSWORD 's3cret@:/?#%'");
    std::fs::write(folder.file("password"), "s3cret@:/?#%\n").unwrap();
    let jobs = address.replace("locks:right", "jobs");
    let in_file = |command: &mut Command| {
        command.env("QUORLOCK_PASSWORD_FILE", folder.file("password"));
        end_of(command)
    };
    let (code, _, said) = in_file(at(&jobs).args(["run", "a", "--", "true"]));
    assert_eq!(code, 0, "{said}");
    let tls = folder.file("password");
    let tls = tls.to_str().unwrap();
    fails(
        at(&address).args(["list", "--tls-ca", tls]),
        78,
        "not encrypted",
    );
    server.kill();
    fails(at(&address).args(["inspect", "a"]), 69, "");
}

async fn the_sql_of_tables_is_printed() {
    let (code, table, _) = end_of(quorlock().args(["init", "--print", "postgres://u@h/db"]));
    assert_eq!(code, 0);
    assert!(
        table.contains("bytea") && !table.contains("BLOB"),
        "{table}"
    );
    let nodes = "postgres://u@h/db,sqlite:/a,mysql://u@h/db,postgres://u@i/db,redis://h";
    let (code, both, _) = end_of(at(nodes).args(["init", "--print"]));
    assert_eq!(code, 0);
    assert!(
        both.contains(table.trim_end()) && both.contains("BLOB") && both.contains("InnoDB"),
        "{both}"
    );
    assert_eq!(
        both.matches("bytea").count(),
        table.matches("bytea").count()
    );
}
