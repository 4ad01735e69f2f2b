//! The box office in a turmoil simulation: two tills, the ledger, a slow bank, and a Redis, under partitions, late messages and restarts.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use quorlock_seats::http::{Dial, PORT, post as send};
use quorlock_seats::ledger::{Ledger, SELL, SELL_UNFENCED};
use quorlock_seats::till::{Order, Till};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use redis_sim::turmoil::Redis;
use turmoil::net::{TcpListener, TcpStream};
use turmoil::{Builder, Sim};

const SEEDS: u64 = 200;
const SEATS: u32 = 4;
const TILLS: [&str; 2] = ["till-1", "till-2"];
const LEASE: Duration = Duration::from_secs(1);

/// Connects through turmoil.
#[derive(Clone, Copy, Debug)]
struct Simulated;

impl Dial for Simulated {
    type Stream = TcpStream;

    async fn dial(&self, service: &str) -> io::Result<TcpStream> {
        TcpStream::connect((service, PORT)).await
    }
}

/// Lets axum listen on a host of turmoil.
struct Listener(TcpListener);

impl axum::serve::Listener for Listener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            if let Ok(accepted) = self.0.accept().await {
                return accepted;
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

async fn serve(service: Router) -> turmoil::Result {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    Ok(axum::serve(Listener(listener), service).await?)
}

/// Random numbers from the seed of a run.
#[derive(Clone)]
struct Draw(Rc<RefCell<Xoshiro256PlusPlus>>);

impl Draw {
    fn new(seed: u64) -> Self {
        Draw(Rc::new(RefCell::new(Xoshiro256PlusPlus::seed_from_u64(
            seed,
        ))))
    }

    /// Returns a number below this one.
    fn below(&self, end: u64) -> u64 {
        self.0.borrow_mut().next_u64() % end
    }

    fn millis(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

/// A receipt: when, which seat, and whose it is now.
type Receipt = (Duration, u32, &'static str);

/// Runs the box office with one SQL for sales. Returns all receipts, in order.
fn run(seed: u64, sell: &'static str) -> Vec<Receipt> {
    let draw = Draw::new(seed);
    let mut sim = Builder::new()
        .rng_seed(seed)
        .epoch(SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600))
        .tick_duration(Duration::from_millis(4))
        .max_message_latency(Duration::from_millis(8))
        .simulation_duration(Duration::from_secs(60))
        .build();
    sim.host("redis", Redis::new(seed).software());
    let ledger = Ledger::open(SEATS, sell).expect("a database in memory");
    sim.host("ledger", move || serve(ledger.clone().service()));
    bank(&mut sim, &draw);
    let locks = quorlock_turmoil::builder(seed).watchdog_lease(LEASE);
    for till in TILLS {
        let locks = locks.clone();
        sim.host(till, move || {
            let locks = locks.clone();
            async move {
                let locks = locks.connect_lazy("redis://redis/")?;
                let dial = Simulated;
                serve(Till { locks, dial }.service()).await
            }
        });
    }
    let receipts = Rc::new(RefCell::new(Vec::new()));
    for (buyer, till) in [("ann", TILLS[0]), ("bob", TILLS[1])] {
        sim.client(buyer, buy_all(buyer, till, Rc::clone(&receipts)));
    }
    let faults = draw_faults(&draw);
    while !sim.step().expect("the buyers come to their end") {
        let now = sim.elapsed();
        let due = faults.iter().filter(|(at, _)| *at == now);
        due.for_each(|(_, fault)| fault.happen(&mut sim));
    }
    receipts.take()
}

/// A bank that answers between at once and after one and a half leases.
fn bank(sim: &mut Sim<'_>, draw: &Draw) {
    let takes: Vec<Duration> = (0..64).map(|_| draw.millis(0, 1_500)).collect();
    let served = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    sim.host("bank", move || {
        let (takes, served) = (takes.clone(), served.clone());
        let charge = async move |Json(_buyer): Json<String>| {
            let number = served.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tokio::time::sleep(takes[number % takes.len()]).await;
        };
        serve(Router::new().route("/charges", post(charge)))
    });
}

/// Orders every seat until it is known whose it is.
async fn buy_all(
    buyer: &'static str,
    till: &'static str,
    receipts: Rc<RefCell<Vec<Receipt>>>,
) -> turmoil::Result {
    for seat in 1..=SEATS {
        for _ in 0..4 {
            let order = Order {
                seat,
                buyer: buyer.to_owned(),
            };
            match send(&Simulated, till, "/orders", &order).await {
                Ok((StatusCode::OK, _)) => {
                    let at = turmoil::sim_elapsed().expect("a host");
                    receipts.borrow_mut().push((at, seat, buyer));
                    break;
                }
                Ok((StatusCode::CONFLICT, _)) => break,
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
    Ok(())
}

/// What happens to the hosts.
enum Fault {
    Cut(&'static str, &'static str),
    Mend(&'static str, &'static str),
    Hold(&'static str, &'static str),
    Release(&'static str, &'static str),
    Restart(&'static str),
}

impl Fault {
    fn happen(&self, sim: &mut Sim<'_>) {
        match *self {
            Fault::Cut(a, b) => sim.partition(a, b),
            Fault::Mend(a, b) => sim.repair(a, b),
            Fault::Hold(a, b) => sim.hold(a, b),
            Fault::Release(a, b) => sim.release(a, b),
            Fault::Restart(host) => {
                sim.crash(host);
                sim.bounce(host);
            }
        }
    }
}

/// Draws up to six faults in the first six seconds. One host or link has at most one at a time.
fn draw_faults(draw: &Draw) -> Vec<(Duration, Fault)> {
    let mut faults = Vec::new();
    for number in 0..draw.below(6) {
        let begins = Duration::from_millis(1_000 * number + 20 * draw.below(10));
        let ends = begins + Duration::from_millis(20 * draw.below(45));
        let till = TILLS[usize::from(draw.below(2) == 1)];
        match draw.below(4) {
            0 | 1 => {
                faults.push((begins, Fault::Cut(till, "redis")));
                faults.push((ends + LEASE, Fault::Mend(till, "redis")));
            }
            2 => {
                faults.push((begins, Fault::Hold(till, "ledger")));
                faults.push((ends, Fault::Release(till, "ledger")));
            }
            _ => {
                let hosts = ["redis", "ledger", "bank", till];
                let host = hosts[usize::try_from(draw.below(4)).unwrap_or(0)];
                faults.push((begins, Fault::Restart(host)));
            }
        }
    }
    faults
}

/// Returns the first two receipts of a seat that has two.
fn sold_twice(receipts: &[Receipt]) -> Option<(Receipt, Receipt)> {
    let mut numbered = receipts.iter().enumerate();
    numbered.find_map(|(place, receipt)| {
        let mut earlier = receipts[..place].iter();
        Some((*earlier.find(|earlier| earlier.1 == receipt.1)?, *receipt))
    })
}

const PAGE: &str = include_str!("../../../docs/src/how-to/turmoil.md");

#[test]
fn a_sale_that_does_not_compare_tokens_is_found_within_200_seeds() {
    let found = (0..SEEDS).find_map(|seed| Some((seed, sold_twice(&run(seed, SELL_UNFENCED))?)));
    let (seed, (first, second)) = found.expect("no seat was sold twice");
    println!(
        "seed {seed}: seat {} is sold to {} after {:?}, and to {} after {:?}",
        first.1, first.2, first.0, second.2, second.0
    );
    for shown in [SELL_UNFENCED, SELL] {
        assert!(PAGE.contains(shown), "the page does not show: {shown}");
    }
}

#[test]
fn no_seat_is_sold_twice() {
    let mut sold = 0;
    for seed in 0..SEEDS {
        let receipts = run(seed, SELL);
        assert_eq!(sold_twice(&receipts), None, "seed {seed}: {receipts:?}");
        sold += receipts.len();
    }
    // A service that sells nothing sells nothing twice.
    assert!(SEEDS < sold as u64, "{sold} receipts");
}

#[test]
fn a_run_depends_on_its_seed_alone() {
    let runs = || (0..10).map(|seed| run(seed, SELL));
    // One after the other: nothing is kept from the run of another seed.
    let first: Vec<_> = runs().collect();
    for (seed, again) in runs().enumerate() {
        assert_eq!(first[seed], again, "seed {seed}");
    }
}
