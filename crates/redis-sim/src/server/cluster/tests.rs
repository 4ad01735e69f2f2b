//! Compares the replies of a node of a cluster with those of redis-server 7.0.15, byte for byte.

use std::collections::BTreeMap;

use crate::data::WallMicros;
use crate::server::Server;
use crate::session::SessionId;
use crate::slots::{ClusterState, SlotShare, SlotTable, slot_of_key};
use crate::watch::Place;

fn place(host: &str) -> Place {
    (host.to_owned(), 6379)
}

/// A table of two nodes: a has the first half of the slots, b the second.
fn table(own: &str) -> SlotTable {
    let share = |first, last, owner: &str| SlotShare {
        first,
        last,
        owner: place(owner),
        replicas: Vec::new(),
    };
    SlotTable {
        own: place(own),
        shares: vec![share(0, 8_191, "a"), share(8_192, 16_383, "b")],
        leaving: BTreeMap::new(),
        arriving: BTreeMap::new(),
        state: ClusterState::Ok,
    }
}

struct Talk {
    server: Server,
    session: SessionId,
}

impl Talk {
    fn with(own: &str) -> Self {
        let mut server = Server::new(1);
        server.know_slots(table(own));
        let session = server.open_session();
        Talk { server, session }
    }

    /// Returns the reply to a command line, whose words may be in double quotes.
    fn say(&mut self, line: &str) -> String {
        let now = WallMicros::from_secs(1_700_000_000);
        let bytes = format!("{line}\r\n").into_bytes();
        self.server.receive(self.session, now, &bytes);
        let answer = self.server.take_output(self.session);
        String::from_utf8_lossy(&answer).trim_end().to_owned()
    }

    fn told(&mut self, table: impl FnOnce(&mut SlotTable), own: &str) {
        let mut known = self::table(own);
        table(&mut known);
        self.server.know_slots(known);
    }
}

const BAR: u16 = 5_061;

#[test]
fn keys_of_other_nodes_are_where_the_answer_says() {
    let mut a = Talk::with("a");
    assert_eq!(slot_of_key(b"bar"), BAR);
    assert_eq!(a.say("get foo"), "-MOVED 12182 b:6379");
    assert_eq!(a.say("set bar 1"), "+OK");
    let crossing = "-CROSSSLOT Keys in request don't hash to the same slot";
    assert_eq!(a.say("mget foo bar"), crossing);
    assert_eq!(a.say("spublish foo x"), "-MOVED 12182 b:6379");
    assert_eq!(a.say("ssubscribe foo"), "-MOVED 12182 b:6379");
    let far = a.say("eval \"return redis.call('get','foo')\" 1 bar");
    let far_words = "-ERR Script attempted to access a non local key in a cluster node script: ";
    assert!(far.starts_with(far_words), "{far}");
    let near = a.say("eval \"return redis.pcall('spublish','foo','x')\" 1 bar");
    assert!(
        near.starts_with("-ERR Script attempted to access a non local key"),
        "{near}"
    );
    assert_eq!(a.say("publish foo x"), ":0");
    assert_eq!(a.say("cluster keyslot bar"), ":5061");
    assert!(
        a.say("cluster slots")
            .starts_with("*2\r\n*3\r\n:0\r\n:8191\r\n*4\r\n$1\r\na\r\n:6379")
    );
}

#[test]
fn keys_of_a_slot_that_leaves_are_asked_for_where_they_are() {
    let mut a = Talk::with("a");
    assert_eq!(a.say("set {bar}1 x"), "+OK");
    let leaves = |table: &mut SlotTable| drop(table.leaving.insert(BAR, place("b")));
    a.told(leaves, "a");
    let again = "-TRYAGAIN Multiple keys request during rehashing of slot";
    assert_eq!(a.say("get {bar}1"), "$1\r\nx");
    assert_eq!(a.say("get {bar}2"), "-ASK 5061 b:6379");
    assert_eq!(a.say("mget {bar}1 {bar}2"), again);
    assert_eq!(a.say("mget {bar}3 {bar}2"), "-ASK 5061 b:6379");
    let mut b = Talk::with("b");
    let arrives = |table: &mut SlotTable| drop(table.arriving.insert(BAR, place("a")));
    b.told(arrives, "b");
    assert_eq!(b.say("get {bar}1"), "-MOVED 5061 a:6379");
    assert_eq!(b.say("asking"), "+OK");
    assert_eq!(b.say("get {bar}1"), "$-1");
    assert_eq!(b.say("get {bar}1"), "-MOVED 5061 a:6379");
    assert_eq!(b.say("asking"), "+OK");
    assert_eq!(b.say("mget {bar}1 {bar}2"), again);
    let now = WallMicros::from_secs(1_700_000_000);
    let moved = a.server.hand_over(now, BAR).expect("a key");
    assert_eq!(a.server.hand_over(now, BAR), None);
    b.server.take_in(now, moved);
    assert_eq!(b.say("asking"), "+OK");
    assert_eq!(b.say("get {bar}1"), "$1\r\nx");
}

#[test]
fn a_node_without_a_majority_answers_nothing_about_keys_and_a_process_begins_so() {
    let mut a = Talk::with("a");
    a.told(|table| table.state = ClusterState::Fail, "a");
    assert_eq!(a.say("get bar"), "-CLUSTERDOWN The cluster is down");
    assert_eq!(a.say("ping"), "+PONG");
    a.told(|table| table.shares.truncate(1), "a");
    assert_eq!(a.say("get foo"), "-CLUSTERDOWN Hash slot not served");
    a.server.restart(crate::Dataset::empty());
    a.session = a.server.open_session();
    assert_eq!(a.say("get bar"), "-CLUSTERDOWN The cluster is down");
}

#[test]
fn who_listens_on_a_shard_is_told_when_its_slot_leaves() {
    let mut a = Talk::with("a");
    assert_eq!(
        a.say("ssubscribe bar"),
        "*3\r\n$10\r\nssubscribe\r\n$3\r\nbar\r\n:1"
    );
    let teller = a.server.open_session();
    let now = WallMicros::from_secs(1_700_000_000);
    a.server.receive(teller, now, b"spublish bar x\r\n");
    assert_eq!(a.server.take_output(teller), b":1\r\n");
    let heard = a.say("ping");
    assert!(
        heard.starts_with("*3\r\n$8\r\nsmessage\r\n$3\r\nbar\r\n$1\r\nx"),
        "{heard}"
    );
    a.told(|table| table.shares[0].owner = place("b"), "a");
    assert_eq!(
        a.say("ping").split("*2").next().map(str::trim_end),
        Some("*3\r\n$12\r\nsunsubscribe\r\n$3\r\nbar\r\n:0\r\n+PONG")
    );
}

#[test]
fn a_server_by_itself_knows_of_no_cluster() {
    let mut server = Talk {
        server: Server::new(1),
        session: SessionId(1),
    };
    server.session = server.server.open_session();
    let disabled = "-ERR This instance has cluster support disabled";
    assert_eq!(server.say("cluster slots"), disabled);
    assert_eq!(server.say("asking"), disabled);
}
