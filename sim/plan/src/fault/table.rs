//! The table of all faults. Everything that a plan, a file and a story know about a kind stands in its row. What is drawn for its
//! fields, and what it does in the world, in a storm and at served nodes are decided where that happens.
//!
//! A row has, in this order:
//! - what the fault does, as documentation;
//! - its variant, with the fields. A field that files may leave out has a default;
//! - its [`Kind`] with the number and the name. **A new kind takes the next number**: each kind draws its faults from a
//!   stream of random numbers that its number selects, so a number never changes;
//! - what else holds for the kind ([`Row`]): how its length is written, what it needs, for which plans it is drawn, when the
//!   stated assumptions of a lock allow it, and which lanes, real servers and served nodes cannot have it, and why not;
//! - the sentence that describes it. It may name the fields, and the words in parentheses at the head of its group.

mod field;
mod row;
mod rows;
mod text;
mod words;

use std::fmt;

use super::FaultKind;
use super::detail::{Handover, InFlight, ServerError, Suspended};
use crate::time::{ClockStep, SimTime};

use field::FieldType;
pub use field::{Meaning, Value, ValueMut};
pub use row::Needs;
pub(crate) use row::{Allowed, Drawn, Forgets};
pub(super) use row::{Length, Row};
use row::{lasting, once, until_rejoined, until_restarted};
use rows::faults;
pub(super) use text::FaultText;
pub use text::Field;
use text::InText;
use words::{
    NumberList, RatePercent, Span, apart_with, awaits, clock_words, left_behind_words, percent,
    reply, requests, undecided,
};

const ONCE_AND_IN_ORDER: &str = "its TCP delivers every byte once and in order";
const SENT_AGAIN: &str = "TCP sends again what is lost, and delivers everything once and in order";
const AT_A_SERVER: &str =
    "its messages pass through no simulated link: use delay, reset or pause-node";
const YOUR_CLIENTS: &str = "its clients are your own processes";
const ONE_SERVER: &str = "its nodes are single servers";
const DIRECTLY: &str = "the members of a Sentinel group or a cluster reach each other directly";

faults! {
    /// A fault of links.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    LinkFault on link(lasts) {
        /// Messages sent during the fault are lost. If only one direction is affected, this is a one-way cut. If only some
        /// pairs of clients and nodes are affected, it is a partition that is not transitive.
        Cut = Cut 0 "cut", lasting().not_served(AT_A_SERVER),
            "no message gets through for {lasts}";

        /// Some messages are lost.
        Loss {
            /// The share of messages that are affected, in parts per million.
            of_million: u32,
        } = Loss 1 "loss", lasting().not_on_real_servers(SENT_AGAIN).not_served(AT_A_SERVER),
            "{} % of messages are lost for {lasts}", percent(*of_million);

        /// Messages take longer, by a time drawn between two bounds.
        Delay {
            /// The smallest delay.
            min: SimTime,
            /// The largest delay.
            max: SimTime,
        } = Delay 2 "delay", lasting(),
            "messages take {} longer for {lasts}", Span(*min, *max);

        /// Messages sent during the fault arrive when the fault ends.
        HoldBack = HoldBack 3 "hold-back", lasting().not_served(AT_A_SERVER),
            "messages are held back for {lasts}";

        /// Some requests arrive a second time, slightly later. Replies are not duplicated.
        Duplicate {
            /// The largest delay of the second copy.
            max: SimTime,
            /// The share of messages that are affected, in parts per million.
            of_million: u32,
        } = Duplicate 4 "duplicate",
            lasting().of_requests().not_over_sockets(ONCE_AND_IN_ORDER).not_on_real_servers(SENT_AGAIN)
                .not_served(AT_A_SERVER),
            "{} % of requests arrive twice, up to {max} later, for {lasts}", percent(*of_million);

        /// Messages may overtake each other.
        Reorder {
            /// The largest additional latency of a message.
            max: SimTime,
        } = Reorder 5 "reorder",
            lasting().not_over_sockets(ONCE_AND_IN_ORDER).not_on_real_servers(SENT_AGAIN).not_served(AT_A_SERVER),
            "messages overtake each other, by up to {max}, for {lasts}";

        /// The connections are closed once. Requests in flight are executed or lost, according to `in_flight`. Replies in
        /// flight are lost.
        Reset {
            /// What happens to the requests in flight.
            in_flight: InFlight = InFlight::Lost,
        } = Reset 6 "reset", once().both_ways(),
            "connections are reset, requests in flight {},", requests(*in_flight);

        /// Existing connections lose everything that is sent from now on, in both directions, as if a load balancer had
        /// dropped its state. Neither end is notified. A client replaces its connection when a request on it gets no
        /// answer within the call time-out.
        Swallow = Swallow 32 "swallow",
            once().both_ways().not_over_sockets("its connections lose what follows a message that was lost")
                .not_served(AT_A_SERVER),
            "connections swallow everything from now on";
    }

    /// A fault of a client.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    ClientFault on client(client, lasts) {
        /// The process is paused. Its clocks continue.
        Pause = PauseClient 7 "pause-client", lasting().not_served(YOUR_CLIENTS),
            "{client} pauses for {lasts}";

        /// The process is paused in the middle of its work, at the n-th use of its clocks, timers, randomness or network
        /// after the fault begins. What it sends after that use leaves when the pause ends.
        PauseInside {
            /// The number of the use, from 1.
            nth: u32,
        } = PauseInside 8 "pause-inside", lasting().not_served(YOUR_CLIENTS),
            "{client} pauses for {lasts} in the middle of its work (step {nth})";

        /// The process is stopped in the middle of a step, after the n-th use of its clocks, timers, randomness or network
        /// since the fault began, while everything else continues. When it resumes, its readings are out of date, and it
        /// receives in the same step what was sent to it. A stop that would outlast the stop of another process waits
        /// until that other stop ends.
        StopInside {
            /// The number of the use, from 1.
            nth: u32,
        } = StopInside 30 "stop-inside",
            lasting().not_over_sockets("its network only continues after every client has ended its step")
                .not_served(YOUR_CLIENTS).at_most(16),
            "{client} is stopped for {lasts} in the middle of a step (behind use {nth} of its clocks, timers, randomness \
             or network)";

        /// The process crashes. It is restarted as a new client when the fault ends.
        Crash = CrashClient 9 "crash-client", until_restarted().not_served(YOUR_CLIENTS),
            "{client} crashes and is started again after {lasts}";

        /// The machine of the process is suspended: the process and its timers are paused.
        Suspend {
            /// Whether the monotonic clock counts the time of the suspension.
            clock: Suspended,
        } = SuspendClient 10 "suspend-client", lasting().not_served(YOUR_CLIENTS).sets_clock(),
            "the machine of {client} is suspended for {lasts}; {}", clock_words(*clock);

        /// The future that the client awaits is dropped at the n-th poll after the fault begins.
        Cancel {
            /// The number of the poll, from 1.
            nth: u32,
        } = Cancel 11 "cancel", once().not_served(YOUR_CLIENTS),
            "{client} drops the future that it awaits (at poll {nth} from now)";

        /// Both clocks of the client run at another rate from now on.
        Rate {
            /// How much faster than true time they run, in parts per million.
            rate_ppm: i32,
        } = ClientRate 12 "client-rate", once().not_served(YOUR_CLIENTS).sets_clock(),
            "the clocks of {client} run {}", RatePercent(*rate_ppm);

        /// The wall clock of the client is set.
        Step {
            /// The size of the step.
            by: ClockStep,
        } = ClientStep 13 "client-step", once().not_served(YOUR_CLIENTS).sets_clock(),
            "the wall clock of {client} is set by {by}";
    }

    /// A fault of a node.
    #[derive(Clone, PartialEq, Eq, Debug)]
    NodeFault on node(node, lasts) {
        /// The node is paused. Requests queue up and are executed when it resumes; its clock continues.
        Pause = PauseNode 14 "pause-node", lasting().or_of_a_replica().leads_to_election(),
            "{node} pauses for {lasts}";

        /// The node crashes. When the fault ends, it is restarted with the data that its persistence kept.
        Crash = CrashNode 15 "crash-node",
            until_restarted().or_of_a_replica().looks_new().leads_to_election().forgets(Forgets::Unsaved),
            "{node} crashes and is started again after {lasts}";

        /// The node loses power and its last writes, whatever its persistence is. It is restarted without these writes when
        /// the fault ends. With `appendfsync everysec` on a slow disk, up to two seconds are lost; a truncated end of the
        /// file is ignored (`aof-load-truncated`).
        PowerLoss {
            /// The length of the period before the power loss whose writes are lost.
            loses: SimTime,
        } = PowerLoss 31 "power-loss",
            until_restarted().looks_new().not_served("its disk has everything that was written: use crash-node")
                .forgets(Forgets::Saved).allowed(Allowed::OfMinority),
            "{node} loses power and what it wrote in the last {loses}, and is started again after {lasts}";

        /// The node loses all its keys (`FLUSHALL`).
        Flush = Flush 16 "flush", once().looks_new().forgets(Forgets::Saved).allowed(Allowed::Never),
            "{node} loses all its keys (FLUSHALL)";

        /// The node evicts the keys of one name.
        Evict {
            /// The name, from 0.
            name: u16,
        } = Evict 17 "evict",
            once().not_served("the names of its clients are not known: use flush").allowed(Allowed::Never),
            "{node} evicts lock {name}";

        /// The clients' user loses the right to the keys of one name (`ACL SETUSER`), and gets it back when the fault ends. The
        /// node refuses every request that has one of these keys, whatever other keys it has.
        RevokeKeys {
            /// The name, from 0.
            name: u16,
        } = RevokeKeys 38 "revoke-keys",
            lasting().not_over_sockets("its servers have no users").not_served("its servers have no users")
                .drawn(Drawn::ByName),
            "{node} permits no use of the keys of lock {name} for {lasts}";

        /// The node answers every request with an error, without executing it.
        Error {
            /// The error.
            error: ServerError,
        } = ServerError 18 "server-error", lasting(),
            "{node} answers {} for {lasts}", reply(*error);

        /// The node loses its cached scripts (`SCRIPT FLUSH`): the next call of each client takes one more round trip.
        ForgetScripts = ForgetScripts 19 "forget-scripts", once(),
            "{node} forgets its scripts";

        /// The wall clock of a node runs at another rate from now on.
        Rate {
            /// How much faster than true time it runs, in parts per million.
            rate_ppm: i32,
        } = NodeRate 20 "node-rate", once().or_of_a_replica().sets_clock().allowed(Allowed::WithoutElections),
            "the clock of {node} runs {}", RatePercent(*rate_ppm);

        /// The wall clock of a node is set.
        Step {
            /// The size of the step, forwards or backwards.
            by: ClockStep,
        } = NodeStep 21 "node-step", once().or_of_a_replica().sets_clock().allowed(Allowed::WithinMargin),
            "the clock of {node} is set by {by}";

        /// Writes take longer to reach the node's replicas.
        SlowReplication {
            /// The additional time until a write reaches a replica.
            by: SimTime,
            /// The replica that is affected, from 0; `None` for all.
            replica: Option<u16> = None,
        } = SlowReplication 22 "slow-replication",
            lasting().needs(Needs::Replicas).not_served(ONE_SERVER).allowed(Allowed::WithElections),
            "replication from {node} takes {by} longer for {lasts}";

        /// A replica replaces the primary of the node. Clients that are left behind keep using the old primary. When the
        /// fault ends, the old primary rejoins as a replica and loses its writes.
        Failover {
            /// The replica that is promoted, from 0. If it is already the primary, the node's first primary is promoted
            /// instead.
            replica: u16,
            /// The clients that do not notice the failover, and keep using the old primary.
            left_behind: Vec<u16> = Vec::new(),
        } = Failover 23 "failover",
            until_rejoined().looks_new().needs(Needs::PlainServers {
                not_in_groups: "sentinels decide who is promoted: use sentinel-failover, isolate-primary, crash-node or pause-node",
                not_in_clusters: "a cluster decides who is promoted: use cluster-failover, isolate-primary, crash-node or pause-node",
            }).not_served(ONE_SERVER).drawn(Drawn::WithReplicas).allowed(Allowed::Never),
            "replica {replica} of {node} is promoted{}", left_behind_words(left_behind, lasts);

        /// The primary of a group is cut off from its replicas, its sentinels and all clients, except those that are
        /// listed here.
        IsolatePrimary {
            /// The clients that can still reach the primary.
            clients: Vec<u16>,
            /// The sentinels that can still reach the primary.
            sentinels: Vec<u16>,
        } = IsolatePrimary 25 "isolate-primary",
            lasting().needs(Needs::Elections).not_on_real_servers(DIRECTLY).not_served(ONE_SERVER)
                .leads_to_election(),
            "the primary of {node} is cut off{} for {lasts}", apart_with(clients, sentinels);

        /// A sentinel receives the command to promote a replica although nothing is wrong (`SENTINEL FAILOVER`).
        SentinelFailover = SentinelFailover 26 "sentinel-failover",
            once().needs(Needs::Sentinels).not_served(ONE_SERVER).leads_to_election(),
            "a sentinel of {node} receives the command to promote a replica";

        /// A sentinel of a group crashes. It is restarted when the fault ends.
        CrashSentinel {
            /// The index of the sentinel, from 0.
            sentinel: u16,
        } = CrashSentinel 27 "crash-sentinel", until_restarted().needs(Needs::Sentinels).not_served(ONE_SERVER),
            "sentinel {sentinel} of {node} crashes and is started again after {lasts}";

        /// A sentinel of a group is paused. Its connections stay open, and it answers nothing.
        PauseSentinel {
            /// The index of the sentinel, from 0.
            sentinel: u16,
        } = PauseSentinel 28 "pause-sentinel", lasting().needs(Needs::Sentinels).not_served(ONE_SERVER),
            "sentinel {sentinel} of {node} pauses for {lasts}";

        /// A sentinel of a group receives nothing from servers and other sentinels, and keeps naming the primary that it
        /// knows. Clients can reach it.
        StaleSentinel {
            /// The index of the sentinel, from 0.
            sentinel: u16,
        } = StaleSentinel 29 "stale-sentinel",
            lasting().needs(Needs::Sentinels).not_on_real_servers(DIRECTLY).not_served(ONE_SERVER),
            "sentinel {sentinel} of {node} receives nothing from servers and other sentinels for {lasts}";

        /// The node is paused after it has executed the n-th request from now on (`DEBUG SLEEP`, a fork, or a slow command
        /// of another client). The answer leaves when the pause ends.
        Stall {
            /// The number of the request, from 1.
            nth: u32,
        } = StallNode 33 "stall-node",
            lasting().not_over_sockets("its servers read several requests at once")
                .not_served("its servers read several requests at once: use pause-node"),
            "{node} stalls for {lasts} after it has executed a request (number {nth} from now)";

        /// The replication backlog of the node is freed, as Redis does an hour after the last replica has left: the node
        /// draws a new `master_replid`, as after a restart, but loses nothing. A node with a replica keeps its backlog.
        FreeBacklog = FreeBacklog 34 "free-backlog",
            once().looks_new().not_served("a restart does the same: use crash-node").drawn(Drawn::WithoutReplicas),
            "{node} frees its replication backlog and draws a new master_replid";

        /// The address of the node leads some clients to another server for a while. With two such faults, two nodes
        /// exchange their addresses.
        Misroute {
            /// The clients that are misrouted.
            clients: Vec<u16>,
            /// The node whose server answers these clients.
            to: u16,
        } = Misroute 35 "misroute",
            lasting().looks_new().not_over_sockets("its hosts have one address each").needs(Needs::PlainServers {
                not_in_groups: "sentinels announce where a group is: use isolate-primary or stale-sentinel",
                not_in_clusters: "a cluster itself announces where slots are: use migrate-slot",
            }).not_served("each node has a port of its own").drawn(Drawn::AmongNodes).allowed(Allowed::Never),
            "the address of {node} leads {} to node {to} for {lasts}", NumberList("client", clients);

        /// The slot of a name is moved to another shard of the cluster, key by key, while clients work.
        MigrateSlot {
            /// The name, from 0.
            name: u16,
            /// The shard that receives the slot.
            to: u16,
            /// How long the two owners redirect clients to each other at the end of the move, when all keys have been
            /// moved. The old owner already names the new one, and the new one still names the old one.
            gap: SimTime = SimTime::ZERO,
        } = MigrateSlot 36 "migrate-slot", lasting().looks_new().needs(Needs::Cluster).not_served(ONE_SERVER),
            "the slot of lock {name} is moved from {node} to node {to} in {lasts}{}", undecided(*gap);

        /// A replica of a shard receives the command to replace its primary (`CLUSTER FAILOVER`).
        ClusterFailover {
            /// How the replica is promoted.
            how: Handover = Handover::Manual,
        } = ClusterFailover 37 "cluster-failover",
            once().looks_new().needs(Needs::Cluster).not_served(ONE_SERVER).leads_to_election(),
            "a replica of {node} receives the command to replace its primary {}", awaits(*how);
    }

    /// A fault of several nodes at once.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    NodesFault on nodes(nodes, lasts) {
        /// The nodes are backed up by replication (`redis-cli --rdb`): a replica connects to each node and leaves when it
        /// has all data. A node without other replicas then draws a new `master_replid`, as after a restart, but loses
        /// nothing. A node with replicas keeps its replication backlog.
        Backup = Backup 24 "backup", once().looks_new().drawn(Drawn::WithoutReplicas),
            "backup of {nodes}";
    }
}
