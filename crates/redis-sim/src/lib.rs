//! A Redis 7 server without sockets and clocks: bytes and times go in, bytes come out.
//!
//! [`Server`] is one node. The caller opens a session for each connection, hands over what arrives together with the
//! time of the node's own wall clock, and takes the output:
//!
//! ```
//! use redis_sim::{Server, WallMicros};
//!
//! let mut server = Server::new(1);
//! let session = server.open_session();
//! server.receive(session, WallMicros::from_secs(1_700_000_000), b"SET a 1\r\nGET a\r\n");
//! assert_eq!(server.take_output(session), b"+OK\r\n$1\r\n1\r\n");
//! ```
//!
//! It speaks RESP2 and RESP3, answers as Redis 7.0 does, word for word, and runs the same Lua scripts. A run depends on
//! the seed and the input alone, so a test that fails can be repeated to the byte. It knows strings, hashes, lists,
//! sets, sorted sets, publish and subscribe, transactions, scripts, expiry and replicas; an unknown command gets the
//! error that Redis has for it. It is no server for production: its keys live in one thread, and nothing is written to
//! a disk.
//!
//! A replica is a second [`Server`] that [follows](Server::follow) the first and is told each [`Effect`]. A disk is
//! a [`Dataset`] that the caller keeps and hands to [`Server::restart`]. A sentinel is a [`Server`] that [watches](Server::watching):
//! it says what it was told, and holds no election of its own. So does a node of a cluster, which
//! is a [`Server`] that [knows](Server::know_slots) who owns which slots.
//!
//! Modules stand in floors; each uses only those above it in this table.
//!
//! | floor | modules |
//! |---|---|
//! | bytes, values, errors | `number`, `glob`, `reply`, `refusal`, `request`, `value`, `keyspace`, `condition`, `watch`, `slots`, `command_keys` |
//! | what a node has | `session`, `channels`, `data`, `info` |
//! | a command on its way to the data; Lua | `call`, `script` |
//! | a node as its commands see it | `node`, `definition` |
//! | the commands, by family and by name | `command`, `table` |
//! | the server | `server` |

mod call;
mod channels;
mod command;
mod command_keys;
mod condition;
mod data;
mod definition;
mod glob;
mod info;
mod keyspace;
mod node;
mod number;
mod refusal;
mod reply;
mod request;
mod script;
mod server;
mod session;
mod slots;
mod table;
mod value;
mod watch;

pub use condition::Condition;
pub use data::{Dataset, Effect, Moved, WallMicros};
pub use server::Server;
pub use session::{Awaited, SessionId};
pub use slots::{ClusterState, SlotShare, SlotTable, slot_of_key};
pub use watch::{Place, Watch};
