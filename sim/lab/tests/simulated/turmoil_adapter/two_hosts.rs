//! Two hosts: one with a simulated server that the test controls, and one with the server's client.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock::redis::{RedisConfig, RedisTransport};
use quorlock::runtime::WallMillis;
use quorlock::transport::{
    Acquire, AcquireReply, Inspect, Listener, Release, ReleaseReply, Reply, Request, Transport,
    TransportError, Wake,
};
use quorlock::{Name, OwnerId};
use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;
use quorlock_core::message::{Access, InspectReply, Mode, Retention};
use quorlock_core::owner::ClientId;
use quorlock_turmoil::TurmoilNetwork;
use redis_sim::{Dataset, Server, SessionId, WallMicros};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::{TcpListener, TcpStream};

pub(crate) const CLIENT: &str = "client";
pub(crate) const SERVER: &str = "server";
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(200);
pub(crate) const PING: Duration = Duration::from_millis(100);
const PORT: u16 = 6379;

/// The initial reading of the server's clock, in seconds since 1970.
pub(crate) const EPOCH: u64 = 1_767_225_600;

/// The host of the server and the host of the client.
pub(crate) struct Office {
    sim: turmoil::Sim<'static>,
    desk: Desk,
}

/// The test's handle to the server.
#[derive(Clone)]
pub(crate) struct Desk(Rc<RefCell<State>>);

struct State {
    server: Server,
    lines: BTreeMap<SessionId, Line>,
    is_up: Cell<bool>,
    acceptor: Option<Waker>,
    accepted: usize,
    commands: usize,
    holds_replies: bool,
    answers_halves: bool,
}

#[derive(Default)]
struct Line {
    waker: Option<Waker>,
    is_closed: bool,
    listens: bool,
}

impl Office {
    pub(crate) fn open() -> Self {
        let mut sim = turmoil::Builder::new()
            .rng_seed(1)
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(Duration::from_millis(5))
            .build();
        let desk = Desk(Rc::new(RefCell::new(State {
            server: Server::new(1),
            lines: BTreeMap::new(),
            is_up: Cell::new(true),
            acceptor: None,
            accepted: 0,
            commands: 0,
            holds_replies: false,
            answers_halves: false,
        })));
        let of_host = desk.clone();
        sim.host(SERVER, move || listen(of_host.clone()));
        Office { sim, desk }
    }

    pub(crate) fn server(&self) -> Desk {
        self.desk.clone()
    }

    /// Returns a new transport.
    pub(crate) fn transport(&self) -> RedisTransport {
        self.transport_with(CALL_TIMEOUT)
    }

    /// Returns a new transport with another call time-out.
    pub(crate) fn transport_with(&self, call_timeout: Duration) -> RedisTransport {
        let config = RedisConfig::default()
            .network(TurmoilNetwork)
            .call_timeout(call_timeout)
            .connect_timeout(CALL_TIMEOUT)
            .ping_interval(PING);
        RedisTransport::open("redis://server/", config).expect("an address")
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

impl Desk {
    /// Returns the number of connections that the server has accepted.
    pub(crate) fn accepted(&self) -> usize {
        self.0.borrow().accepted
    }

    /// Returns the number of scripts that the server was asked to run.
    pub(crate) fn commands(&self) -> usize {
        self.0.borrow().commands
    }

    pub(crate) fn forget_scripts(&self) {
        self.0.borrow_mut().server.forget_scripts();
    }

    /// Makes the server hold back its replies, or send them.
    pub(crate) fn holds_replies(&self, holds: bool) {
        self.0.borrow_mut().holds_replies = holds;
        self.ring();
    }

    /// Makes the server send only the first half of each reply, and nothing more on the same connection.
    pub(crate) fn answers_halves(&self, does: bool) {
        self.0.borrow_mut().answers_halves = does;
    }

    /// Closes every connection.
    pub(crate) fn hangs_up(&self) {
        let mut state = self.0.borrow_mut();
        state
            .lines
            .values_mut()
            .for_each(|line| line.is_closed = true);
        drop(state);
        self.ring();
    }

    /// Closes the connections that carry wake-ups.
    pub(crate) fn hangs_up_on_listeners(&self) {
        let mut state = self.0.borrow_mut();
        let listeners = state.lines.values_mut().filter(|line| line.listens);
        listeners.for_each(|line| line.is_closed = true);
        drop(state);
        self.ring();
    }

    /// Ends the process of the server, which had its data only in memory.
    pub(crate) fn crash(&self) {
        self.0.borrow().is_up.set(false);
        self.0.borrow_mut().server.restart(Dataset::empty());
        self.hangs_up();
    }

    pub(crate) fn restart(&self) {
        self.0.borrow().is_up.set(true);
        self.ring();
    }

    fn ring(&self) {
        let mut state = self.0.borrow_mut();
        let mut wakers: Vec<Waker> = state.acceptor.take().into_iter().collect();
        wakers.extend(
            state
                .lines
                .values_mut()
                .filter_map(|line| line.waker.take()),
        );
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn is_up(&self, cx: &Context<'_>) -> bool {
        let mut state = self.0.borrow_mut();
        state.acceptor = Some(cx.waker().clone());
        state.is_up.get()
    }

    fn receive(&self, session: SessionId, bytes: &[u8]) {
        let mut state = self.0.borrow_mut();
        let scripts = bytes.split(|byte| *byte == b'\n');
        state.commands += scripts.filter(|line| *line == b"EVALSHA\r").count();
        let elapsed = turmoil::sim_elapsed().expect("it runs on a host");
        let micros = u64::try_from(elapsed.as_micros()).expect("a short run");
        let now = WallMicros(EPOCH * 1_000_000 + micros);
        if let Some(line) = state.lines.get_mut(&session) {
            line.listens |= bytes.windows(9).any(|word| word == b"SUBSCRIBE");
        }
        state.server.receive(session, now, bytes);
        let others: Vec<_> = state.server.sessions_with_output().collect();
        let wakers: Vec<Waker> = others
            .into_iter()
            .filter_map(|other| state.lines.get_mut(&other)?.waker.take())
            .collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the bytes to send now, or `None` if the connection must be closed.
    fn output(&self, session: SessionId, cx: &Context<'_>) -> Option<Vec<u8>> {
        let mut state = self.0.borrow_mut();
        let holds = state.holds_replies;
        let line = state.lines.get_mut(&session)?;
        line.waker = Some(cx.waker().clone());
        if line.is_closed {
            return None;
        }
        match holds {
            true => Some(Vec::new()),
            false => Some(state.server.take_output(session)),
        }
    }

    fn close(&self, session: SessionId) {
        let mut state = self.0.borrow_mut();
        state.server.close_session(session);
        state.lines.remove(&session);
    }
}

async fn listen(desk: Desk) -> turmoil::Result {
    loop {
        poll_fn(|cx| match desk.is_up(cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
        while let Some(stream) = next(&desk, &listener).await? {
            let mut state = desk.0.borrow_mut();
            state.accepted += 1;
            let session = state.server.open_session();
            state.lines.insert(session, Line::default());
            drop(state);
            tokio::task::spawn_local(serve(desk.clone(), session, stream));
        }
    }
}

async fn next(desk: &Desk, listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    let mut accepting = std::pin::pin!(listener.accept());
    poll_fn(|cx| match desk.is_up(cx) {
        true => accepting
            .as_mut()
            .poll(cx)
            .map_ok(|(stream, _)| Some(stream)),
        false => Poll::Ready(Ok(None)),
    })
    .await
}

async fn serve(desk: Desk, session: SessionId, mut stream: TcpStream) {
    let mut is_stuck = false;
    poll_fn(|cx| {
        loop {
            let Some(mut output) = desk.output(session, cx) else {
                return Poll::Ready(());
            };
            if !output.is_empty() && !is_stuck {
                if desk.0.borrow().answers_halves {
                    is_stuck = true;
                    output.truncate(output.len() / 2);
                }
                let written = Pin::new(&mut stream).poll_write(cx, &output);
                assert!(matches!(written, Poll::Ready(Ok(n)) if n == output.len()));
            }
            let mut room = [0; 4096];
            let mut room = ReadBuf::new(&mut room);
            match Pin::new(&mut stream).poll_read(cx, &mut room) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if !room.filled().is_empty() => {
                    desk.receive(session, room.filled());
                }
                Poll::Ready(_) => return Poll::Ready(()),
            }
        }
    })
    .await;
    desk.close(session);
}

/// Waits until a condition holds. Panics with `what` if it never does.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..5_000 {
        if is_so() {
            return;
        }
        pass(Duration::from_millis(1)).await;
    }
    panic!("{what}");
}

/// Lets virtual time pass.
#[expect(clippy::disallowed_methods, reason = "the time of a simulated host")]
pub(crate) async fn pass(span: Duration) {
    tokio::time::sleep(span).await;
}

/// A listener that counts notifications.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    lives: AtomicUsize,
    wakes: AtomicUsize,
}

impl Heard {
    pub(crate) fn nothing() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn lives(&self) -> usize {
        self.lives.load(Ordering::Relaxed)
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.load(Ordering::Relaxed)
    }
}

impl Listener for Heard {
    fn live(&self) {
        self.lives.fetch_add(1, Ordering::Relaxed);
    }

    fn wake(&self, _: Wake) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn owner(number: u64) -> OwnerId {
    OwnerId {
        client: ClientId::from_random(7),
        number,
    }
}

pub(crate) fn acquire_of(name: &Name, number: u64) -> Acquire {
    Acquire {
        access: Access::Plain,
        name: name.clone(),
        owner: owner(number),
        count: 1,
        lease: Lease::new(Duration::from_secs(30)).expect("a lease"),
        fence: Fence::Mint {
            floor: WallMillis(EPOCH * 1_000),
            slack_millis: 15_000,
        },
        retention: Retention::of(Duration::from_secs(86_400)),
        keep: None,
        after: None,
        replaces: None,
        continues: None,
        check: None,
    }
}

/// Returns a request of the first owner with this lease.
pub(crate) fn acquire_for(name: &Name, lease: Duration) -> Acquire {
    Acquire {
        lease: Lease::new(lease).expect("a lease"),
        ..acquire_of(name, 1)
    }
}

pub(crate) fn release_of(name: &Name, number: u64) -> Release {
    Release {
        mode: Mode::Plain,
        name: name.clone(),
        owner: owner(number),
        count: 0,
    }
}

pub(crate) async fn acquire(
    transport: &RedisTransport,
    name: &Name,
    number: u64,
) -> Result<AcquireReply, TransportError> {
    let request = Request::Acquire(acquire_of(name, number));
    match transport.call(request).await? {
        Reply::Acquire(reply) => Ok(reply),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn release(
    transport: &RedisTransport,
    name: &Name,
    number: u64,
) -> Result<ReleaseReply, TransportError> {
    let request = Request::Release(release_of(name, number));
    match transport.call(request).await? {
        Reply::Release(reply) => Ok(reply),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn inspect(
    transport: &RedisTransport,
    name: &Name,
) -> Result<InspectReply, TransportError> {
    let request = Request::Inspect(Inspect::of(name.clone()));
    match transport.call(request).await? {
        Reply::Inspect(reply) => Ok(reply),
        other => panic!("{other:?}"),
    }
}
