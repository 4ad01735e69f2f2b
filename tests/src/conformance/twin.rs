//! A real server and a simulated one behind one port: both get the same bytes, and must answer with the same bytes.
//!
//! The effect of a command may depend on the millisecond in which it is executed. The real server reports the time
//! before and after the command, in one transaction with it. The simulated server executes the command at that time.
//! If a millisecond ended in between, the command may have been executed in either. Then both times are tried, and the
//! keys are compared as well.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use redis_sim::{Dataset, Server as Simulated, SessionId, WallMicros};

use super::raw::{Replies, request_len};
use quorlock_testbed::server::Server;

/// Returns all keys with their content and when they expire.
const STATE: &str = concat!(
    sorted!(),
    "
local all, keys = {}, redis.call('KEYS', '*')
table.sort(keys)
for _, key in ipairs(keys) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'string' then value = redis.call('GET', key)
  elseif kind == 'hash' then value = sorted(redis.call('HGETALL', key))
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  else value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
  table.insert(all, {key, kind, redis.call('PEXPIRETIME', key), value})
end
return all"
);

/// Returns all keys as requests that create them.
const REQUESTS: &str = "
local out = {}
local function request(...)
  local words = {...}
  table.insert(out, '*' .. #words .. '\\r\\n')
  for _, word in ipairs(words) do table.insert(out, '$' .. #word .. '\\r\\n' .. word .. '\\r\\n') end
end
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'string' then request('SET', key, redis.call('GET', key))
  elseif kind == 'hash' then request('HSET', key, unpack(redis.call('HGETALL', key)))
  elseif kind == 'list' then request('RPUSH', key, unpack(redis.call('LRANGE', key, 0, -1)))
  else
    local members = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 1, #members, 2 do request('ZADD', key, members[i + 1], members[i]) end
  end
  local expires = redis.call('PEXPIRETIME', key)
  if expires ~= -1 then request('PEXPIREAT', key, string.format('%.0f', expires)) end
end
return table.concat(out)";

/// A pair of servers: a real one, which answers, and a simulated one, which is compared with it.
#[derive(Debug)]
pub struct Twin {
    port: u16,
    findings: Arc<Mutex<Findings>>,
    is_over: Arc<AtomicBool>,
    events: Sender<Event>,
    threads: Vec<JoinHandle<()>>,
}

/// The results of the comparison.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The first difference.
    pub difference: Option<String>,
    /// The number of replies that were the same, byte for byte.
    pub same: u64,
    /// The number of replies that were given while a millisecond ended and that match neither of the two simulated
    /// replies, although the keys were the same.
    pub between: u64,
    /// How often keys were changed while a millisecond ended, some before its end and some after it. The simulated
    /// server then got the keys of the real one.
    pub brought_back: u64,
}

enum Event {
    Opened(u64, TcpStream),
    Bytes(u64, Vec<u8>),
    Closed(u64),
    Over,
}

impl Twin {
    /// Creates a twin of this server, which must have no other client.
    ///
    /// # Panics
    /// Panics if it cannot be reached.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (findings, is_over) = (Arc::default(), Arc::default());
        let (events, happened) = channel();
        let accepting = {
            let (events, is_over) = (events.clone(), Arc::clone(&is_over));
            std::thread::spawn(move || accept(&listener, &events, &is_over))
        };
        let comparing = {
            let (findings, real) = (Arc::clone(&findings), server.port());
            let info: String = server.command(&["INFO"]);
            let field = |name: &str| {
                let mut lines = info.lines().filter_map(|line| line.split_once(':'));
                let line = lines.find(|(key, _)| *key == name);
                line.expect("every server reports it").1.to_owned()
            };
            let ids = (field("run_id"), field("master_replid"));
            std::thread::spawn(move || Comparison::new(real, &ids, findings).run(&happened))
        };
        Twin {
            port,
            findings,
            is_over,
            events,
            threads: vec![accepting, comparing],
        }
    }

    /// Creates a twin of this server, which must have no other client, unless it is Valkey. The errors of the simulated server
    /// have the words of Redis.
    ///
    /// # Panics
    /// Panics if the server cannot be reached.
    #[must_use]
    pub fn of_redis(server: &Server) -> Option<Self> {
        let info: String = server.command(&["INFO", "server"]);
        (!info.contains("server_name:valkey")).then(|| Twin::of(server))
    }

    /// Returns the port for clients.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the results so far.
    ///
    /// # Panics
    /// Panics if the comparison itself has failed.
    #[must_use]
    pub fn findings(&self) -> Findings {
        self.findings
            .lock()
            .expect("the comparison has not panicked")
            .clone()
    }

    /// Checks for a difference since the last check.
    ///
    /// # Errors
    /// Returns the first difference.
    pub fn check(&self) -> Result<(), String> {
        // A shrunk sequence must report the difference that it causes itself.
        let mut findings = self
            .findings
            .lock()
            .expect("the comparison has not panicked");
        findings.difference.take().map_or(Ok(()), Err)
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.events.send(Event::Over);
        // This wakes the thread that accepts connections.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, events: &Sender<Event>, is_over: &AtomicBool) {
    for id in 0.. {
        let Ok((stream, _)) = listener.accept() else {
            return;
        };
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(reading) = stream.try_clone() else {
            return;
        };
        let _ = stream.set_nodelay(true);
        let _ = events.send(Event::Opened(id, stream));
        let events = events.clone();
        std::thread::spawn(move || read(id, reading, &events));
    }
}

fn read(id: u64, mut stream: TcpStream, events: &Sender<Event>) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut bytes) {
            Ok(len @ 1..) => {
                let _ = events.send(Event::Bytes(id, bytes[..len].to_vec()));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => {
                let _ = events.send(Event::Closed(id));
                return;
            }
        }
    }
}

/// A client's connection to both servers, the real one and the simulated one.
struct PairedConnection {
    client: TcpStream,
    inbox: Vec<u8>,
    real: Replies,
    session: SessionId,
}

struct Comparison {
    real_port: u16,
    /// The connection for reading the keys of the real server.
    looking: Replies,
    simulated: Simulated,
    lines: BTreeMap<u64, PairedConnection>,
    findings: Arc<Mutex<Findings>>,
}

/// What the simulated server sends to the client that sent the request, and to listeners.
#[derive(PartialEq, Eq)]
struct Said {
    reply: Vec<u8>,
    messages: Vec<(SessionId, Vec<u8>)>,
}

impl Comparison {
    /// `run_id` and `replication_id` are those of the real server. The simulated server reports the same.
    fn new(
        real_port: u16,
        (run_id, replication_id): &(String, String),
        findings: Arc<Mutex<Findings>>,
    ) -> Self {
        Comparison {
            real_port,
            looking: Replies::connect(real_port),
            simulated: Simulated::new(1).with_identity(run_id, replication_id),
            lines: BTreeMap::new(),
            findings,
        }
    }

    fn run(mut self, events: &Receiver<Event>) {
        while let Ok(event) = events.recv() {
            match event {
                Event::Opened(id, client) => {
                    let line = PairedConnection {
                        client,
                        inbox: Vec::new(),
                        real: Replies::connect(self.real_port),
                        session: self.simulated.open_session(),
                    };
                    self.lines.insert(id, line);
                }
                Event::Bytes(id, bytes) => self.take(id, &bytes),
                Event::Closed(id) => {
                    if let Some(line) = self.lines.remove(&id) {
                        self.simulated.close_session(line.session);
                    }
                }
                Event::Over => break,
            }
        }
        for line in self.lines.values() {
            let _ = line.client.shutdown(Shutdown::Both);
        }
    }

    fn take(&mut self, id: u64, bytes: &[u8]) {
        let Some(line) = self.lines.get_mut(&id) else {
            return;
        };
        line.inbox.extend_from_slice(bytes);
        while let Some(line) = self.lines.get_mut(&id)
            && let Some(len) = request_len(&line.inbox)
        {
            let request: Vec<u8> = line.inbox.drain(..len).collect();
            self.compare(id, &request);
        }
    }

    /// Executes a request on both servers, and answers as the real one does.
    fn compare(&mut self, id: u64, request: &[u8]) {
        let line = self.lines.get_mut(&id).expect("it asks");
        let session = line.session;
        let timed = line.real.ask_timed(request);
        line.client
            .write_all(&timed.reply)
            .expect("the client reads");
        let said = self.decide(session, request, &timed.reply, timed.before, timed.after);
        for (listener, expected) in said.messages {
            self.pass_on(listener, &expected);
        }
    }

    /// Executes a request on the simulated server at the time of the real one.
    fn decide(
        &mut self,
        session: SessionId,
        request: &[u8],
        reply: &[u8],
        before: u64,
        after: u64,
    ) -> Said {
        if before / 1_000 == after / 1_000 {
            let said = self.execute(session, request, before);
            self.judge(request, reply, &said.reply);
            return said;
        }
        let keys = self.simulated.dataset();
        let state = self.looking.eval(STATE);
        let said = self.execute(session, request, before);
        if said.reply == reply && self.state(after) == state {
            self.found(|findings| findings.same += 1);
            return said;
        }
        let same_keys_first = self.state(after) == state;
        self.simulated.replace(keys);
        let said = self.execute(session, request, after);
        let same_keys = self.state(after) == state;
        if said.reply == reply && same_keys {
            self.found(|findings| findings.same += 1);
        } else if same_keys_first && same_keys {
            self.found(|findings| findings.between += 1);
        } else {
            self.bring_back(after);
            self.found(|findings| findings.brought_back += 1);
        }
        said
    }

    /// Copies the keys of the real server to the simulated one.
    fn bring_back(&mut self, micros: u64) {
        let requests = self.looking.text(REQUESTS);
        self.simulated.replace(Dataset::empty());
        let session = self.simulated.open_session();
        self.execute(session, &requests, micros);
        self.simulated.close_session(session);
        assert_eq!(self.state(micros), self.looking.eval(STATE));
    }

    fn execute(&mut self, session: SessionId, request: &[u8], micros: u64) -> Said {
        self.simulated.receive(session, WallMicros(micros), request);
        let reply = self.simulated.take_output(session);
        let listeners: Vec<_> = self.simulated.sessions_with_output().collect();
        let messages = listeners.into_iter();
        let messages = messages
            .map(|id| (id, self.simulated.take_output(id)))
            .collect();
        Said { reply, messages }
    }

    /// Returns all keys of the simulated server, in the form of [`STATE`].
    fn state(&mut self, micros: u64) -> Vec<u8> {
        let session = self.simulated.open_session();
        let request = super::raw::request(&["EVAL", STATE, "0"]);
        let said = self.execute(session, &request, micros);
        self.simulated.close_session(session);
        said.reply
    }

    fn judge(&self, request: &[u8], real: &[u8], simulated: &[u8]) {
        if real == simulated {
            return self.found(|findings| findings.same += 1);
        }
        self.differ(&words(request), real, simulated);
    }

    /// Forwards what the real server sends to a listener that waits for it.
    fn pass_on(&mut self, listener: SessionId, expected: &[u8]) {
        let Some(line) = self
            .lines
            .values_mut()
            .find(|line| line.session == listener)
        else {
            return;
        };
        let sent = line.real.read_exactly(expected.len());
        line.client.write_all(&sent).expect("the client reads");
        if sent != expected {
            self.differ("to a listener", &sent, expected);
        }
    }

    fn differ(&self, what: &str, real: &[u8], simulated: &[u8]) {
        let (real, simulated) = (
            String::from_utf8_lossy(real),
            String::from_utf8_lossy(simulated),
        );
        let text =
            format!("{what}\n  the real server: {real:?}\n  the simulated one: {simulated:?}");
        self.found(|findings| {
            findings.difference.get_or_insert(text);
        });
    }

    fn found(&self, note: impl FnOnce(&mut Findings)) {
        note(&mut self.findings.lock().expect("no panic while it is locked"));
    }
}

fn words(request: &[u8]) -> String {
    String::from_utf8_lossy(request).replace("\r\n", " ")
}
