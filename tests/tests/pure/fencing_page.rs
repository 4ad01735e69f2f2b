//! Runs the SQL of the page about fencing, as written there, on SQLite.

use quorlock_tests::page::block;
use rusqlite::{Connection, named_params};

const PAGE: &str = include_str!("../../../docs/src/fencing.md");

fn database(table: &str) -> Connection {
    let database = Connection::open_in_memory().unwrap();
    database.execute(block(PAGE, table), []).unwrap();
    database
}

fn write(database: &Connection, body: &str, token: i64) -> usize {
    let written = database.execute(
        block(PAGE, "sql write"),
        named_params! {"$1": "r", "$2": body, "$3": token},
    );
    written.unwrap()
}

fn body(database: &Connection) -> String {
    let sql = "SELECT body FROM report WHERE id = 'r'";
    database.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_smaller_token_writes_nothing_and_an_equal_or_larger_one_does() {
    let database = database("sql table");
    assert_eq!(write(&database, "first", 7), 1);
    assert_eq!(write(&database, "again by the same hold", 7), 1);
    assert_eq!(write(&database, "too late", 6), 0);
    assert_eq!(body(&database), "again by the same hold");
    // These tokens are near 2^53, where a store that counts in doubles would begin to confuse them.
    let largest = (1 << 53) - 1;
    assert_eq!(write(&database, "largest", largest), 1);
    assert_eq!(write(&database, "one less", largest - 1), 0);
    assert_eq!(body(&database), "largest");
}

#[test]
fn an_update_says_the_same_of_a_row_that_is_there() {
    let database = database("sql table");
    let update = |body: &str, token: i64| {
        let changed = database.execute(
            block(PAGE, "sql update"),
            named_params! {"$1": "r", "$2": body, "$3": token},
        );
        changed.unwrap()
    };
    assert_eq!(update("no row yet", 7), 0);
    write(&database, "first", 7);
    assert_eq!(update("second", 7), 1);
    assert_eq!(update("too late", 6), 0);
    assert_eq!(body(&database), "second");
}

fn plain_read(database: &Connection, _: i64) -> Option<String> {
    Some(body(database))
}

fn fenced_read(database: &Connection, token: i64) -> Option<String> {
    let mut read = database.prepare(block(PAGE, "sql read")).unwrap();
    let mut rows = read.query(named_params! {"$1": "r", "$2": token}).unwrap();
    let row = rows.next().unwrap();
    row.map(|row| row.get(0).unwrap())
}

/// Runs two writers in the order of the page's table. Returns the outcome of the old holder's update, and the final
/// value.
fn two_writers(read: fn(&Connection, i64) -> Option<String>) -> (usize, String) {
    let database = database("sql table");
    assert_eq!(write(&database, "a", 7), 1);
    let old = read(&database, 7).unwrap() + ", b";
    let new = read(&database, 9).unwrap() + ", c";
    let taken = write(&database, &old, 7);
    assert_eq!(write(&database, &new, 9), 1);
    (taken, body(&database))
}

#[test]
fn a_fenced_read_loses_no_update_and_a_plain_one_does() {
    assert_eq!(
        two_writers(plain_read),
        (1, "a, c".into()),
        "acknowledged, and lost"
    );
    assert_eq!(two_writers(fenced_read), (0, "a, c".into()));
    let database = database("sql table");
    assert_eq!(fenced_read(&database, 7).as_deref(), Some(""), "no row yet");
    assert_eq!(fenced_read(&database, 9).as_deref(), Some(""));
    assert_eq!(fenced_read(&database, 8), None, "too late");
}

#[test]
fn an_update_in_one_statement_needs_no_read() {
    let database = database("sql table");
    write(&database, "a", 7);
    let append = |text: &str, token: i64| {
        let changed = database.execute(
            block(PAGE, "sql append"),
            named_params! {"$1": "r", "$2": text, "$3": token},
        );
        changed.unwrap()
    };
    // If the late update comes first, it is kept. Otherwise it is too late, which the store reports.
    assert_eq!(append(", b", 7), 1);
    assert_eq!(append(", c", 9), 1);
    assert_eq!(append(", late", 7), 0);
    assert_eq!(body(&database), "a, b, c");
}

/// Opens two connections to one file, as two services would.
#[test]
fn a_transaction_of_an_older_hold_is_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let database = Connection::open(folder.path().join("database")).unwrap();
        database
            .busy_timeout(std::time::Duration::from_secs(10))
            .unwrap();
        database
    };
    let (mut old, mut new) = (open(), open());
    old.execute(block(PAGE, "sql fence-table"), []).unwrap();
    old.execute("CREATE TABLE entry (text TEXT)", []).unwrap();
    let enter = |database: &mut Connection, token: i64, text: &str| {
        let immediate = rusqlite::TransactionBehavior::Immediate;
        let transaction = database.transaction_with_behavior(immediate).unwrap();
        let fence = block(PAGE, "sql fence");
        let is_in_time = transaction
            .execute(fence, named_params! {"$1": "lock", "$2": token})
            .unwrap()
            == 1;
        transaction
            .execute("INSERT INTO entry VALUES (?1)", [text])
            .unwrap();
        if is_in_time {
            transaction.commit().unwrap();
        }
    };
    enter(&mut old, 7, "by the old holder, in time");
    enter(&mut new, 9, "by the new one");
    enter(&mut old, 7, "by the old holder, too late");
    let sql = "SELECT count(*), max(text) FROM entry WHERE text LIKE '%too late'";
    let late: u32 = new.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(late, 0);
    let all: u32 = new
        .query_row("SELECT count(*) FROM entry", [], |row| row.get(0))
        .unwrap();
    assert_eq!(all, 2);
}
