//! A Redis 7 server without sockets and clocks: bytes and times go in, bytes come out.
//!
//! [`Server`] is one node. The caller opens a session for each connection, passes in the bytes that arrive together
//! with the time of the node's own wall clock, and takes the output:
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
//! The server speaks RESP2 and RESP3, gives the same answers as Redis 7.0, byte for byte, and runs the same Lua
//! scripts. A run depends only on the seed and the input, so a failing test can be repeated exactly. The server
//! supports strings, hashes, lists, sets, sorted sets, publish and subscribe, transactions, scripts, expiry and
//! replicas. An unknown command gets the same error as from Redis. It is not a server for production: it runs in one
//! thread and writes nothing to disk.
//!
//! A replica is a second [`Server`] that [follows](Server::follow) the first and receives each [`Effect`]. A disk is a
//! [`Dataset`] that the caller keeps and passes to [`Server::restart`]. A sentinel is a [`Server`] that
//! [watches](Server::watching) a group: it reports what the caller has set, and holds no elections. A node of a cluster
//! is a [`Server`] that [knows](Server::know_slots) which node owns which slots; it holds no elections either.
//!
//! # A Redis for turmoil
//!
//! With the feature `turmoil`, `turmoil::Redis` is a server on a host of a [turmoil](https://docs.rs/turmoil) simulation: behind turmoil's
//! sockets, in the time of the simulation, and with memory that a crash of the host loses or keeps.
//!
//! # Limits
//!
//! There are no `WATCH`, streams, ACLs (but the user `default`), and no `cjson`, `bit`, `struct` or coroutines in Lua. `SCAN` returns
//! everything at once. A script is stopped after a hundred million instructions, and keeps what it wrote. Fields and members keep their
//! insertion order, which Redis does not promise.
//!
//! The modules are arranged in floors. Each uses only those above it in this table.
//!
//! | floor | modules |
//! |---|---|
//! | bytes, values, errors | `number`, `glob`, `reply`, `refusal`, `request`, `value`, `keyspace`, `condition`, `watch`, `slots`, `command_keys` |
//! | what a node has | `session`, `channels`, `data`, `info` |
//! | the call of a command; Lua | `call`, `script` |
//! | a node as its commands see it | `node`, `definition` |
//! | the commands, by family and by name | `command`, `table` |
//! | the server | `server` |
//! | its host in a simulation | `turmoil` |

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
#[cfg(feature = "turmoil")]
pub mod turmoil;
mod value;
mod watch;

pub use condition::Condition;
pub use data::{Dataset, Effect, Moved, WallMicros};
pub use server::Server;
pub use session::{Awaited, SessionId};
pub use slots::{ClusterState, SlotShare, SlotTable, slot_of_key};
pub use watch::{Place, Watch};
