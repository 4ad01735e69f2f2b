//! Simulated servers of `quorlock-sim`, on real ports.

use std::thread::JoinHandle;

use quorlock_sim::plan::Persistence;
use quorlock_sim_lab::serve::{FaultWords, Host, Offer};
use tokio::sync::oneshot;

/// A simulated server that only this test uses, on a free port of the loopback interface. Dropping this value ends it.
#[derive(Debug)]
pub struct Simulated {
    ports: Vec<u16>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Simulated {
    /// Starts a server without faults.
    #[must_use]
    pub fn start() -> Self {
        Simulated::start_with(1, None, &[])
    }

    /// Starts nodes with faults, in the syntax of `quorlock-sim serve --fault`.
    ///
    /// # Panics
    /// Panics if a fault does not parse, or a server does not come up.
    #[must_use]
    pub fn start_with(nodes: u16, password: Option<&str>, faults: &[&str]) -> Self {
        let words = faults.iter().map(|words| words.parse().expect("a fault"));
        let faults = words.flat_map(|words: FaultWords| words.of(nodes).expect("such a node"));
        let offer = Offer {
            ports: vec![0; usize::from(nodes)],
            password: password.map(str::to_owned),
            persistence: Persistence::Memory,
            faults: faults.collect(),
        };
        let (stop, stopped) = oneshot::channel();
        let (up, ports) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || serve(offer, &up, stopped));
        Simulated {
            ports: ports.recv().expect("the servers come up"),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Returns the ports of the nodes.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Returns the address of the first node.
    ///
    /// # Panics
    /// Never panics: there is a first node.
    #[must_use]
    pub fn address(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.ports[0])
    }
}

/// Runs a simulated server. The server cannot leave its thread.
fn serve(offer: Offer, up: &std::sync::mpsc::Sender<Vec<u16>>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let host = Host::bind(offer).await.expect("free ports");
        up.send(host.ports().to_vec())
            .expect("the test waits for it");
        let end = async {
            let _ = stopped.await;
        };
        host.run(|_| {}, end).await.expect("the ports stay its own");
    });
}

impl Drop for Simulated {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the simulated server panicked");
        }
    }
}
