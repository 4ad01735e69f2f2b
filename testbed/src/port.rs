//! Ports of the loopback interface.

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

/// Returns a port that was free a moment ago and that this process has not returned before.
///
/// The port is below the range that the system uses for outgoing connections, so it is still free after a restart.
pub(crate) fn free_port() -> io::Result<u16> {
    const FIRST: u16 = 12_000;
    const MANY: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let of_this_process = u16::try_from(std::process::id() % u32::from(MANY)).unwrap_or(0);
    let mut last = None;
    for _ in 0..MANY {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (of_this_process.wrapping_mul(61).wrapping_add(next)) % MANY;
        match std::net::TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("no free port")))
}
