//! Status messages for systemd, if it requests them by `NOTIFY_SOCKET`.

use std::os::unix::net::UnixDatagram;

/// The socket for the messages, if there is one.
#[derive(Debug)]
pub(crate) struct Notify {
    socket: Option<String>,
}

impl Notify {
    pub(crate) const VARIABLE: &'static str = "NOTIFY_SOCKET";

    pub(crate) fn of_environment() -> Self {
        Notify {
            socket: std::env::var(Self::VARIABLE).ok(),
        }
    }

    /// Sends a message such as `READY=1` or `STATUS=..`. Does nothing without a socket.
    pub(crate) fn tell(&self, state: &str) {
        let Some(path) = &self.socket else { return };
        let Ok(socket) = UnixDatagram::unbound() else {
            return;
        };
        let _ = socket.set_nonblocking(true);
        #[cfg(target_os = "linux")]
        if let Some(name) = path.strip_prefix('@') {
            use std::os::linux::net::SocketAddrExt as _;
            if let Ok(address) = std::os::unix::net::SocketAddr::from_abstract_name(name) {
                let _ = socket.send_to_addr(state.as_bytes(), &address);
            }
            return;
        }
        let _ = socket.send_to(state.as_bytes(), path);
    }
}
