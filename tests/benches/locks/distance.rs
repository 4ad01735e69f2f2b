//! One caller, a free lock and distant servers: how much time trust and margin add to an acquire when messages take as
//! long as between machines.
//!
//! On the loopback interface of one machine, five servers and the client share its cores, and the extra work of the
//! scripts is done one after another. Here each server is behind a relay that delays every message.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use quorlock::{Guard, Locks, NodeTrust};
use quorlock_testbed::relay::relay;
use quorlock_testbed::server::Server;
use rand::seq::SliceRandom;

use crate::options::Options;
use crate::progress::Progress;
use crate::report::{Figure, Spread, Target};

const NODES: usize = 5;

/// The delays of a message in one direction.
const WAYS: [Duration; 2] = [Duration::from_micros(250), Duration::from_micros(500)];

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    WAYS.into_iter().map(|way| measure(options, way)).collect()
}

fn measure(options: &Options, way: Duration) -> Figure {
    let servers: Vec<_> = (0..NODES).map(|_| Server::start()).collect();
    let ports: Vec<_> = servers
        .iter()
        .map(|server| relay(server.port(), way))
        .collect();
    let round_trip = Spread::of(&round_trips(ports[0]));
    let turns = options.pick(4000, 400);
    let [on, off] = options.block_on(async move {
        let addresses: Vec<_> = ports
            .iter()
            .map(|port| format!("redis://127.0.0.1:{port}/"))
            .collect();
        let on = Locks::builder().trust_fresh_nodes();
        let off = on.clone().node_trust(NodeTrust::Unwatched);
        let off = off.clock_margin(Duration::ZERO);
        let both = [
            on.quorum(&addresses).await.expect("servers are there"),
            off.quorum(&addresses).await.expect("servers are there"),
        ];
        let mut times = [Vec::new(), Vec::new()];
        let mut progress = Progress::new(format!("{way:?} each way"), turns);
        for turn in 0..turns {
            let mut order = [0, 1];
            order.shuffle(&mut rand::rng());
            for who in order {
                let lock = both[who].lock("orders");
                let began = Instant::now();
                let guard: Guard = lock.acquire().await.expect("the lock is free");
                times[who].push(began.elapsed().as_secs_f64() * 1e6);
                guard.release().await.expect("it was held");
                // The pause keeps requests in flight from slowing down the next acquisition.
                tokio::time::sleep(way * 4).await;
            }
            progress.at(turn + 1);
        }
        times.map(|times| Spread::of(&times))
    });
    Figure {
        case: "distance",
        what: "acquire, remedies on / off".into(),
        nodes: NODES,
        value: on.median / off.median,
        target: Some(Target::AtMost(1.10)),
        unit: "us",
        ours: Some(on),
        note: format!(
            "round trip of a PING {:.0} us; off: median {:.1} us, p99 {:.1} us",
            round_trip.median, off.median, off.p99
        ),
        ..Figure::default()
    }
}

/// Returns the round trip of a request that does nothing, in microseconds.
fn round_trips(port: u16) -> Vec<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the relay is there");
    stream.set_nodelay(true).expect("a stream");
    (0..200)
        .map(|_| {
            let began = Instant::now();
            stream.write_all(b"PING\r\n").expect("the server is there");
            let mut pong = [0; 7];
            stream.read_exact(&mut pong).expect("the server answers");
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect()
}
