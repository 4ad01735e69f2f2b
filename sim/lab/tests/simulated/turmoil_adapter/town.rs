//! Two servers and three sentinels on separate hosts, for one client. The test decides elections.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use quorlock::redis::{RedisConfig, RedisTransport};
use quorlock_turmoil::TurmoilNetwork;
use redis_sim::{Place, Server, SessionId, WallMicros, Watch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use turmoil::net::{TcpListener, TcpStream};

use crate::turmoil_adapter::two_hosts::{CLIENT, EPOCH};

const PORT: u16 = 6379;

/// The servers. The first one is the primary at the beginning.
const SERVERS: [&str; 2] = ["a", "b"];

pub(crate) const SENTINELS: [&str; 3] = ["s1", "s2", "s3"];

pub(crate) const ADDRESS: &str = "redis+sentinel://s1:6379,s2:6379,s3:6379/m";

/// The hosts of the servers, the sentinels and the client.
pub(crate) struct Town {
    sim: turmoil::Sim<'static>,
    hall: Hall,
}

/// The test's handle to the hosts.
#[derive(Clone)]
pub(crate) struct Hall(Rc<Shared>);

struct Shared {
    hosts: RefCell<BTreeMap<&'static str, Host>>,
    changed: Notify,
}

struct Host {
    server: Server,
    accepted: usize,
    /// Whether the host neither reads nor writes while its connections stay open.
    is_stopped: bool,
    /// The host stops when it is sent this word, before it has read it.
    stops_at: Option<&'static str>,
    /// The host closes each connection on which it is sent this word.
    hangs_up_at: Option<&'static str>,
    /// Connections that must be closed.
    closing: Vec<SessionId>,
    /// Connections to which an answer to `WAIT` is due. The replica has everything at once.
    confirmed: Vec<SessionId>,
    sessions: Vec<SessionId>,
}

fn place(host: &str) -> Place {
    (host.to_owned(), PORT)
}

impl Town {
    pub(crate) fn open() -> Self {
        let mut sim = turmoil::Builder::new()
            .rng_seed(1)
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(Duration::from_millis(5))
            .build();
        let mut hosts = BTreeMap::new();
        let (mut a, mut b) = (Server::new(1), Server::new(2));
        a.replicate();
        a.set_replicas(1);
        b.follow(&a);
        hosts.insert("a", Host::new(a));
        hosts.insert("b", Host::new(b));
        for (number, sentinel) in (10..).zip(SENTINELS) {
            let others = SENTINELS.iter().filter(|other| **other != sentinel);
            let watch = Watch {
                name: "m".into(),
                primary: place("a"),
                epoch: 1,
                sentinels: others.map(|other| place(other)).collect(),
            };
            hosts.insert(sentinel, Host::new(Server::new(number).watching(watch)));
        }
        let hall = Hall(Rc::new(Shared {
            hosts: RefCell::new(hosts),
            changed: Notify::new(),
        }));
        for host in SERVERS.into_iter().chain(SENTINELS) {
            let hall = hall.clone();
            sim.host(host, move || listen(hall.clone(), host));
        }
        Town { sim, hall }
    }

    pub(crate) fn hall(&self) -> Hall {
        self.hall.clone()
    }

    /// Runs a client to its end.
    pub(crate) fn run(mut self, client: impl Future<Output = ()> + 'static) {
        self.sim.client(CLIENT, async move {
            client.await;
            Ok(())
        });
        self.sim.run().expect("the client comes to its end");
    }
}

pub(crate) fn config() -> RedisConfig {
    RedisConfig::default()
        .network(TurmoilNetwork)
        .call_timeout(Duration::from_secs(1))
        .connect_timeout(Duration::from_millis(600))
        .sentinel_timeout(Duration::from_millis(100))
        .ping_interval(Duration::from_millis(100))
}

/// Opens a transport to the primary of the group.
pub(crate) fn transport() -> RedisTransport {
    RedisTransport::open(ADDRESS, config()).expect("an address")
}

/// Makes the second server the primary. All sentinels announce it.
pub(crate) fn fail_over(hall: &Hall) {
    hall.promote("b");
    for sentinel in SENTINELS {
        hall.tell(sentinel, "b", 2);
    }
}

impl Host {
    fn new(server: Server) -> Self {
        Host {
            server,
            accepted: 0,
            is_stopped: false,
            stops_at: None,
            hangs_up_at: None,
            closing: Vec::new(),
            confirmed: Vec::new(),
            sessions: Vec::new(),
        }
    }
}

impl Hall {
    fn with<T>(&self, host: &str, act: impl FnOnce(&mut Host) -> T) -> T {
        let mut hosts = self.0.hosts.borrow_mut();
        let done = act(hosts.get_mut(host).expect("such a host"));
        drop(hosts);
        self.0.changed.notify_waiters();
        done
    }

    /// Returns the number of connections that a host has accepted.
    pub(crate) fn accepted(&self, host: &str) -> usize {
        self.with(host, |host| host.accepted)
    }

    /// Returns whether a server has a key.
    pub(crate) fn has(&self, host: &str, key: &str) -> bool {
        self.with(host, |host| {
            let session = host.server.open_session();
            let line = format!("EXISTS {key}\r\n");
            host.server.receive(session, now(), line.as_bytes());
            let output = host.server.take_output(session);
            host.server.close_session(session);
            output == b":1\r\n"
        })
    }

    /// Stops a host: its connections stay open, but it answers nothing.
    pub(crate) fn stop(&self, host: &str) {
        self.with(host, |host| host.is_stopped = true);
    }

    /// Stops a host when it is sent this word.
    pub(crate) fn stop_at(&self, host: &str, word: &'static str) {
        self.with(host, |host| host.stops_at = Some(word));
    }

    /// Closes each connection on which a host is sent this word.
    pub(crate) fn hangs_up_at(&self, host: &str, word: &'static str) {
        self.with(host, |host| host.hangs_up_at = Some(word));
    }

    pub(crate) fn resume(&self, host: &str) {
        self.with(host, |host| host.is_stopped = false);
    }

    /// Closes every connection to a host.
    pub(crate) fn hang_up(&self, host: &str) {
        self.with(host, |host| host.closing = host.sessions.clone());
    }

    /// Turns the replica into a primary. The old primary does not learn of this.
    pub(crate) fn promote(&self, host: &str) {
        self.with(host, |host| host.server.promote());
    }

    /// Turns the old primary into a replica. Its connections stay open.
    pub(crate) fn demote(&self, host: &'static str, of: &'static str) {
        let mut hosts = self.0.hosts.borrow_mut();
        let mut old = hosts.remove(host).expect("such a host");
        old.server
            .follow(&hosts.get(of).expect("such a host").server);
        hosts.insert(host, old);
    }

    /// Makes a sentinel switch to a new primary, and publish it.
    pub(crate) fn tell(&self, sentinel: &str, primary: &str, epoch: u64) {
        self.with(sentinel, |host| host.server.switch(place(primary), epoch));
    }

    /// Handles bytes that a host receives on a connection.
    fn receive(&self, name: &'static str, session: SessionId, bytes: &[u8]) {
        let mut hosts = self.0.hosts.borrow_mut();
        let host = hosts.get_mut(name).expect("such a host");
        if name == "a" && bytes.windows(4).any(|word| word == b"WAIT") {
            host.confirmed.push(session);
            return;
        }
        host.server.receive(session, now(), bytes);
        let effects = host.server.take_effects();
        if name == "a"
            && let Some(replica) = hosts.get_mut("b")
        {
            effects
                .iter()
                .for_each(|effect| replica.server.apply(effect));
        }
        drop(hosts);
        self.0.changed.notify_waiters();
    }
}

fn now() -> WallMicros {
    let elapsed = turmoil::sim_elapsed().expect("it runs on a host");
    let micros = u64::try_from(elapsed.as_micros()).expect("a short run");
    WallMicros(EPOCH * 1_000_000 + micros)
}

async fn listen(hall: Hall, name: &'static str) -> turmoil::Result {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let session = hall.with(name, |host| {
            host.accepted += 1;
            let session = host.server.open_session();
            host.sessions.push(session);
            session
        });
        tokio::task::spawn_local(serve(hall.clone(), name, session, stream));
    }
}

async fn serve(hall: Hall, name: &'static str, session: SessionId, mut stream: TcpStream) {
    let mut read = Vec::new();
    loop {
        let (is_stopped, is_closing, output) = hall.0.look(name, session, &read);
        if is_closing {
            break;
        }
        if is_stopped {
            hall.0.changed.notified().await;
            continue;
        }
        if !read.is_empty() {
            hall.receive(name, session, &read);
            read.clear();
            continue;
        }
        if !output.is_empty() {
            if stream.write_all(&output).await.is_err() {
                break;
            }
            continue;
        }
        let mut room = [0; 4096];
        tokio::select! {
            biased;
            () = hall.0.changed.notified() => {}
            came = stream.read(&mut room) => match came {
                Ok(count) if count != 0 => read.extend_from_slice(room.get(..count).expect("it was read")),
                _ => break,
            },
        }
    }
    hall.with(name, |host| {
        host.server.close_session(session);
        host.sessions.retain(|other| *other != session);
    });
}

impl Shared {
    /// Returns whether the host is stopped, whether the connection must be closed, and the bytes to send on it.
    fn look(&self, name: &str, session: SessionId, read: &[u8]) -> (bool, bool, Vec<u8>) {
        let mut hosts = self.hosts.borrow_mut();
        let host = hosts.get_mut(name).expect("such a host");
        let is_at = |word: &str| {
            let word = word.as_bytes();
            read.windows(word.len()).any(|part| part == word)
        };
        if host.stops_at.is_some_and(is_at) {
            host.stops_at = None;
            host.is_stopped = true;
        }
        if host.hangs_up_at.is_some_and(is_at) {
            host.closing.push(session);
        }
        let closing = host.closing.len();
        host.closing.retain(|other| *other != session);
        let is_closing = host.closing.len() < closing;
        if host.is_stopped {
            return (true, is_closing, Vec::new());
        }
        let mut output = host.server.take_output(session);
        host.confirmed.retain(|other| {
            let is_it = *other == session;
            if is_it {
                output.extend_from_slice(b":1\r\n");
            }
            !is_it
        });
        (false, is_closing, output)
    }
}
