//! A network of its own for each run on real servers.

#[cfg(target_os = "linux")]
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The network of the processes of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Network {
    /// A network namespace with nothing but a loopback interface, which only the run uses.
    Own,
    /// The loopback interface of the machine, and the reason why the run has no namespace.
    Shared(String),
}

impl Network {
    /// Moves the calling thread, and all that it starts from now on, into a network namespace, if that is possible.
    ///
    /// # Errors
    /// Returns the reason why the thread has no network any more.
    pub(super) fn enter() -> Result<Network, String> {
        // A thread cannot leave a namespace whose loopback interface it could not start. So another thread, which then
        // ends, tries first.
        let tried = std::thread::spawn(isolate).join();
        if let Err(why) = tried.unwrap_or_else(|_| Err("BUG: the thread panicked".to_owned())) {
            return Ok(Network::Shared(why));
        }
        isolate().map(|()| Network::Own)
    }
}

/// Moves the calling thread into a new network namespace, and starts its loopback interface.
#[cfg(target_os = "linux")]
fn isolate() -> Result<(), String> {
    use nix::sched::{CloneFlags, unshare};
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("unshare: {error}"))?;
    let started = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .output();
    let started = started.map_err(|error| format!("ip: {error}"))?;
    if started.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&started.stderr);
        Err(format!("ip link set lo up: {}", said.trim()))
    }
}

#[cfg(not(target_os = "linux"))]
fn isolate() -> Result<(), String> {
    Err("only Linux has network namespaces".to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Two runs may use the same port, and neither reaches the other's server.
    #[test]
    fn a_port_of_one_network_is_free_in_another() {
        let outside = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = outside.local_addr().unwrap();
        let inside = move || {
            let network = Network::enter().unwrap();
            if let Network::Shared(why) = &network {
                assert!(!why.is_empty());
                return network;
            }
            assert!(TcpStream::connect(address).is_err(), "another network");
            let own = TcpListener::bind(address).unwrap();
            // A thread that is started now is in the same network.
            let reached = std::thread::spawn(move || TcpStream::connect(address).is_ok());
            assert!(reached.join().unwrap());
            drop(own);
            network
        };
        std::thread::spawn(inside).join().unwrap();
        assert!(TcpStream::connect(address).is_ok());
    }
}
