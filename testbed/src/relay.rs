//! A relay to a server that delays every message, as between two machines.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Starts a relay to the server on this port, which delays each message by `way` in each direction. Returns its port.
///
/// The relay runs until the process ends.
///
/// # Panics
/// Panics if no port is free.
#[must_use]
pub fn relay(server: u16, way: Duration) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("a port").port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                return;
            };
            carry(&client, &server, way);
            carry(&server, &client, way);
        }
    });
    port
}

/// Carries one direction: one thread reads, and another one writes when a message is due.
fn carry(from: &TcpStream, to: &TcpStream, way: Duration) {
    to.set_nodelay(true).expect("a stream");
    let from = from.try_clone().expect("a stream");
    let to = to.try_clone().expect("a stream");
    let (taken, due) = channel();
    thread::spawn(move || take(from, &taken, way));
    thread::spawn(move || hand_on(&due, to));
}

fn take(mut from: TcpStream, taken: &Sender<(Instant, Vec<u8>)>, way: Duration) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let message = (Instant::now() + way, buffer[..length].to_vec());
        if taken.send(message).is_err() {
            return;
        }
    }
}

fn hand_on(due: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream) {
    for (at, bytes) in due {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // The other end may already be closed.
    let _ = to.shutdown(Shutdown::Both);
}
