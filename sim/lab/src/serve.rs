//! Simulated servers on real ports, with faults. Any client can be tested against them.
//!
//! Everything runs in one thread. The clocks of the servers follow real time, unless a fault changes them.

mod connection;
mod listen;
mod node;
mod time;
mod words;

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::rc::Rc;

use tokio::net::TcpListener;
use tokio::task::LocalSet;

pub use words::FaultWords;

use node::ServedNode;
use quorlock_sim_plan::Persistence;
use quorlock_sim_plan::fault::{Fault, Kind};
use quorlock_sim_plan::time::SimTime;

/// The configuration of the servers.
#[derive(Debug)]
pub struct Offer {
    /// The ports on the loopback interface, one for each node. For port 0, the operating system chooses a free port.
    pub ports: Vec<u16>,
    /// The password that every connection must send, if there is one.
    pub password: Option<String>,
    /// What a node keeps when it crashes and restarts.
    pub persistence: Persistence,
    /// The faults, with times that count from the start.
    pub faults: Vec<Fault>,
}

/// Nodes that are bound to their ports.
#[derive(Debug)]
pub struct Host {
    nodes: Vec<Rc<RefCell<ServedNode>>>,
    listeners: Vec<TcpListener>,
    ports: Vec<u16>,
    faults: Vec<Fault>,
}

impl Host {
    /// Binds the ports.
    ///
    /// # Errors
    /// Returns the error of the operating system if a port cannot be bound.
    pub async fn bind(offer: Offer) -> io::Result<Host> {
        let (mut nodes, mut listeners, mut ports) = (Vec::new(), Vec::new(), Vec::new());
        for (seed, port) in (0..).zip(&offer.ports) {
            let listener = TcpListener::bind(("127.0.0.1", *port)).await?;
            ports.push(listener.local_addr()?.port());
            listeners.push(listener);
            let node = ServedNode::new(seed, offer.password.as_deref(), offer.persistence);
            nodes.push(Rc::new(RefCell::new(node)));
        }
        let mut faults = offer.faults;
        faults.sort_by_key(Fault::begins);
        Ok(Host {
            nodes,
            listeners,
            ports,
            faults,
        })
    }

    /// Returns the ports on which the nodes listen.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Serves until `end` is ready. Calls `told` with every fault that begins.
    ///
    /// # Errors
    /// Returns the error of the operating system if a node that crashed cannot bind its port again.
    pub async fn run(self, told: impl Fn(&Fault), end: impl Future<Output = ()>) -> io::Result<()> {
        let tasks = LocalSet::new();
        let start = time::now();
        for (node, listener) in self.nodes.iter().zip(self.listeners) {
            listen::listen(node, listener, &tasks);
        }
        let (nodes, ports) = (&self.nodes, &self.ports);
        let faults = async {
            let mut due = Schedule::of(self.faults);
            while let Some((at, what)) = due.next() {
                time::sleep_until(start + at.as_duration()).await;
                if let FaultPhase::Begins(fault) = &what {
                    told(fault);
                }
                act(&what, nodes, ports, &tasks).await?;
            }
            Ok(())
        };
        tasks.run_until(either(faults, end)).await
    }
}

/// Runs both futures until the second one is ready or the first one fails.
async fn either(
    first: impl Future<Output = io::Result<()>>,
    second: impl Future<Output = ()>,
) -> io::Result<()> {
    use std::task::Poll;
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let mut is_over = false;
    std::future::poll_fn(move |cx| {
        if second.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if !is_over && let Poll::Ready(ended) = first.as_mut().poll(cx) {
            is_over = true;
            if ended.is_err() {
                return Poll::Ready(ended);
            }
        }
        Poll::Pending
    })
    .await
}

/// The beginnings and ends of faults, the latest one first.
struct Schedule(Vec<(SimTime, FaultPhase)>);

enum FaultPhase {
    Begins(Fault),
    Ends(Fault),
}

impl Schedule {
    fn of(faults: Vec<Fault>) -> Self {
        let mut due = Vec::new();
        for fault in faults {
            for at in fault.when.times() {
                due.push((at, FaultPhase::Begins(fault.clone())));
                due.push((at.plus(fault.lasts), FaultPhase::Ends(fault.clone())));
            }
        }
        // The sort is stable, so a fault that begins and ends at the same time begins first.
        due.sort_by_key(|(at, _)| *at);
        // The next entry is popped from the end.
        due.reverse();
        Schedule(due)
    }

    fn next(&mut self) -> Option<(SimTime, FaultPhase)> {
        self.0.pop()
    }
}

async fn act(
    what: &FaultPhase,
    nodes: &[Rc<RefCell<ServedNode>>],
    ports: &[u16],
    tasks: &LocalSet,
) -> io::Result<()> {
    let (FaultPhase::Begins(fault) | FaultPhase::Ends(fault)) = what;
    for at in fault.nodes().iter().copied() {
        let Some((node, port)) = nodes.get(usize::from(at)).zip(ports.get(usize::from(at))) else {
            continue;
        };
        match what {
            FaultPhase::Begins(fault) => node.borrow_mut().begin(fault),
            FaultPhase::Ends(fault) if fault.kind() == Kind::CrashNode => {
                node.borrow_mut().end(fault);
                if node.borrow().is_down() {
                    continue;
                }
                let listener = TcpListener::bind(("127.0.0.1", *port)).await?;
                listen::listen(node, listener, tasks);
            }
            FaultPhase::Ends(fault) => node.borrow_mut().end(fault),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use quorlock_sim_plan::fault::{NodeFault, ServerError};

    #[test]
    fn a_paused_node_answers_when_it_goes_on() {
        let pause = Fault::of_node(SimTime::ZERO, 0, NodeFault::Pause).lasting(SimTime::secs(1));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let tasks = LocalSet::new();
        runtime.block_on(tasks.run_until(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let node = Rc::new(RefCell::new(ServedNode::new(1, None, Persistence::Memory)));
            listen::listen(&node, listener, &tasks);
            let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            node.borrow_mut().begin(&pause);
            client.write_all(b"SET a 1\r\n").await.unwrap();
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(
                node.borrow().redis.process.dataset(),
                redis_sim::Dataset::empty()
            );
            node.borrow_mut().end(&pause);
            let mut said = [0; 5];
            client.read_exact(&mut said).await.unwrap();
            assert_eq!(&said, b"+OK\r\n");
            assert_ne!(
                node.borrow().redis.process.dataset(),
                redis_sim::Dataset::empty()
            );
        }));
    }

    fn error(error: ServerError) -> Fault {
        Fault::of_node(SimTime::ZERO, 0, NodeFault::Error { error }).lasting(SimTime::secs(1))
    }

    fn asked(node: &mut ServedNode) -> String {
        let session = node.redis.process.open_session();
        node.receive(session, b"SET a 1\r\n");
        let said = node.redis.process.take_output(session);
        String::from_utf8_lossy(&said).into_owned()
    }

    #[test]
    fn of_faults_that_overlap_the_last_to_end_ends_the_trouble() {
        let crash = Fault::of_node(SimTime::ZERO, 0, NodeFault::Crash).lasting(SimTime::secs(1));
        let (busy, loading) = (error(ServerError::Busy), error(ServerError::Loading));
        let node = &mut ServedNode::new(1, None, Persistence::Memory);
        node.begin(&crash);
        node.begin(&crash);
        node.end(&crash);
        assert!(node.is_down());
        node.end(&crash);
        assert!(!node.is_down());
        node.begin(&busy);
        node.begin(&loading);
        assert!(asked(node).starts_with("-LOADING"));
        node.begin(&crash);
        node.end(&crash);
        assert!(asked(node).starts_with("-LOADING"));
        node.end(&loading);
        assert!(asked(node).starts_with("-BUSY"));
        node.end(&busy);
        assert_eq!(asked(node), "+OK\r\n");
    }

    #[test]
    fn a_fault_begins_before_it_ends() {
        let crash = Fault::of_node(SimTime::secs(2), 0, NodeFault::Crash).lasting(SimTime::ZERO);
        let flush = Fault::of_node(SimTime::secs(1), 0, NodeFault::Flush);
        let mut due = Schedule::of(vec![crash, flush]);
        let mut told = Vec::new();
        while let Some((at, what)) = due.next() {
            told.push((at, matches!(what, FaultPhase::Begins(_))));
        }
        let (one, two) = (SimTime::secs(1), SimTime::secs(2));
        assert_eq!(told, [(one, true), (one, false), (two, true), (two, false)]);
    }
}
