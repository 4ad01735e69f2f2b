//! Ports of the loopback interface.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::wait::wait_for;

/// Returns a port that was free a moment ago and that this process has not returned before.
///
/// The port is below the range that the system uses for outgoing connections, so it is still free after a restart.
pub(super) fn free_port() -> u16 {
    const FIRST: u16 = 12_000;
    const MANY: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let of_this_process = u16::try_from(std::process::id() % u32::from(MANY)).unwrap_or(0);
    wait_for("a free port", || {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (of_this_process.wrapping_mul(61).wrapping_add(next)) % MANY;
        match std::net::TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => Some(port),
            Err(error) if error.kind() == ErrorKind::AddrInUse => None,
            Err(error) => panic!("no port of 127.0.0.1 can be had: {error}"),
        }
    })
}
