//! A Redis server without sockets and clocks: bytes and times go in, bytes come out.
//!
//! [`Server`] is one node. Whoever runs it (the lane over simulated TCP, `quorlock-sim serve`, a test) opens a session
//! for each connection, hands over what arrives with the time of the node's own wall clock, and takes the output:
//!
//! ```
//! use quorlock_sim::redis::{Server, WallMicros};
//!
//! let mut server = Server::new(1);
//! let session = server.open_session();
//! server.receive(session, WallMicros::from_secs(1_700_000_000), b"SET a 1\r\nGET a\r\n");
//! assert_eq!(server.take_output(session), b"+OK\r\n$1\r\n1\r\n");
//! ```
//!
//! It speaks RESP2 and RESP3, answers as Redis 7.0 does, word for word, and runs the same Lua scripts. Nothing in it
//! depends on anything but its seed and what it is given.
//!
//! | to read | see |
//! |---|---|
//! | one node and its connections | `server`, `session` |
//! | what arrives, what is answered | `request`, `reply` |
//! | what is kept, until when | `data`, `keyspace`, `value` |
//! | what each command does | `command` |
//! | Lua | `script` |
//! | what a replica is told | [`Effect`], [`Dataset`] |

mod channels;
mod command;
mod data;
mod glob;
mod info;
mod keyspace;
mod number;
mod reply;
mod request;
mod script;
mod server;
mod session;
mod value;

pub use data::{Dataset, Effect, WallMicros};
pub use server::Server;
pub use session::SessionId;
