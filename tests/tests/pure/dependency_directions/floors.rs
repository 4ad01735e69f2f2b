//! The floors of each crate: which files may use which. No `use` runs upwards, and no files import each other in cycles.

use std::path::Path;

use crate::dependency_directions::arrows::Tree;
use crate::dependency_directions::faults::{Floors, faults};

const CORE: Floors = &[
    &["lib.rs"],
    // Machines of many steps: rounds until the lock is won, clean-up until it is done.
    &["acquisition.rs", "orphan.rs"],
    &["acquisition/", "intercept.rs"],
    // Machines of one step, the specification of a node, and the way to it.
    &[
        "round.rs",
        "round/",
        "renewal.rs",
        "release.rs",
        "node.rs",
        "node/",
        "transport.rs",
    ],
    &["trust.rs", "claim_version.rs", "message.rs"],
    &["longest_lease.rs", "longest_lease/"],
    &[
        "mode.rs",
        "marker.rs",
        "marker/",
        "lease.rs",
        "fencing.rs",
        "slot.rs",
    ],
    // Words and numbers.
    &[
        "name.rs",
        "quorum.rs",
        "backoff.rs",
        "failure.rs",
        "owner.rs",
        "time.rs",
    ],
];

const ADAPTER: Floors = &[
    &["lib.rs"],
    // Called by fuzz targets and tests.
    &["fuzzed.rs"],
    &["fuzzed/"],
    &["scan.rs", "examine.rs"],
    &["examine/"],
    &["check.rs", "check/"],
    // A call from its request to its reply.
    &["transport.rs", "shared_connection.rs"],
    &["transport/"],
    // A cluster: its servers, and which of them has a slot.
    &["cluster/lookout.rs"],
    &["cluster.rs"],
    &["cluster/node.rs"],
    &["cluster/listeners.rs", "cluster/map.rs"],
    &["cluster/answer.rs", "cluster/hints.rs"],
    // Which server a request goes to.
    &["route/"],
    &["route.rs"],
    &["server.rs"],
    // Requests that need no script.
    &["native.rs"],
    &["native/"],
    // A Sentinel group, which is queried and listened to on connections.
    &["group.rs"],
    &["group/"],
    // Connections: which one is current, and the wake-ups of a connection.
    &[
        "connection.rs",
        "connection/",
        "subscription.rs",
        "subscription/session.rs",
    ],
    &["link.rs", "link/"],
    &["multiplexer.rs", "multiplexer/"],
    &[
        "subscription/registry.rs",
        "subscription/registry/",
        "target.rs",
    ],
    &["subscription/claims.rs"],
    // The user's settings, and the data on the wire.
    &["tag.rs"],
    &["rights.rs"],
    &["rights/"],
    &["config.rs", "script.rs", "script/"],
    &["source/"],
    &["source.rs"],
    &["security.rs"],
    &["tls.rs", "tls/"],
    &[
        "address.rs",
        "address/",
        "connect.rs",
        "connect/",
        "credentials.rs",
        "credentials/",
        "wait.rs",
    ],
    &["doubtful_settings.rs", "error.rs", "error/", "key.rs"],
    &[
        "clients.rs",
        "failure.rs",
        "info.rs",
        "keyslot.rs",
        "resp.rs",
        "timer.rs",
    ],
    &["reserved.rs", "unfit_names.rs"],
    // Steps of a schedule.
    &["sync.rs"],
];

const SIMULATED_REDIS: Floors = &[
    &["lib.rs"],
    // Its host in a simulation.
    &["turmoil.rs"],
    &["server.rs", "server/"],
    // Commands, and a table of them.
    &["table.rs"],
    &["command.rs", "command/"],
    &["definition.rs"],
    &["node.rs", "script.rs", "script/"],
    &["call.rs", "info.rs"],
    // Stored data.
    &["data.rs", "channels.rs", "session.rs"],
    &["keyspace.rs", "refusal.rs", "request.rs"],
    // Values and texts.
    &[
        "reply.rs",
        "value.rs",
        "number.rs",
        "glob.rs",
        "condition.rs",
        "command_keys.rs",
    ],
    &["slots.rs"],
    &["watch.rs"],
];

const PRODUCT: Floors = &[
    &["lib.rs"],
    // The user's interface without `async`.
    &["blocking.rs"],
    &["blocking/locks.rs"],
    &[
        "blocking/lock.rs",
        "blocking/semaphore.rs",
        "blocking/candidacy.rs",
    ],
    &["blocking/guard.rs"],
    &["blocking/driver.rs"],
    // The user's interface: how locks are made, acquired and held.
    &["connect.rs"],
    &["connect/redis.rs", "connect/store.rs", "connect/examine.rs"],
    &["connect/member.rs"],
    &["builder.rs", "builder/"],
    &["locks.rs"],
    &["leader.rs"],
    &["leader/candidate.rs"],
    &["leader/candidacy.rs", "leader/observer.rs"],
    &["leader/leadership.rs"],
    &["operate.rs", "operate/", "owner.rs"],
    &["locks/source.rs"],
    &["semaphore.rs"],
    &["semaphore/refusals.rs"],
    &["semaphore/look.rs", "semaphore/names.rs"],
    &["lock.rs", "lock/"],
    &["owner/"],
    &["guard.rs", "guard/"],
    &["operation.rs", "shared.rs"],
    // Operations, one future each.
    &["operation/acquire.rs"],
    &[
        "operation/queue.rs",
        "operation/queue/",
        "operation/holders.rs",
    ],
    &[
        "operation/attempt.rs",
        "operation/attempt/",
        "operation/confirm.rs",
        "operation/hand_over.rs",
        "operation/pass.rs",
        "operation/release.rs",
    ],
    &["operation/inquiry.rs"],
    // What the locks of one client share.
    &["shared/client.rs"],
    &["shared/keeper.rs", "shared/keeper/"],
    &["shared/waiters.rs"],
    // Reports to operators, above the stored state, which reports nothing.
    &["telemetry.rs"],
    &["telemetry/span.rs"],
    &["shared/hold.rs", "shared/hold/", "shared/contended.rs"],
    &["shared/wake_ups.rs"],
    &["shared/layout.rs"],
    &["shared/trust.rs", "shared/trust/"],
    &[
        "shared/alarm.rs",
        "shared/calls.rs",
        "shared/party.rs",
        "shared/under.rs",
    ],
    &["shared/seen_tokens.rs"],
    // The ground. The embedded node uses nothing else.
    &["config.rs", "embedded.rs", "embedded/", "ticket.rs"],
    &[
        "error.rs",
        "error/",
        "metrics.rs",
        "metrics/",
        "mutex.rs",
        "runtime.rs",
        "runtime/",
    ],
    // Steps of a schedule.
    &["sync.rs"],
];

const COMMAND: Floors = &[
    &["main.rs"],
    &["lib.rs"],
    // Called by fuzz targets and tests.
    &["fuzzed.rs"],
    &["cli.rs"],
    // The commands.
    &["leader.rs"],
    &[
        "not_unix.rs",
        "manual.rs",
        "run.rs",
        "doctor.rs",
        "advise.rs",
    ],
    &["doctor/", "advise/"],
    &["operate.rs", "operate/"],
    // All processes of a run, on simulated time.
    &["run/simulated.rs"],
    &["run/simulated/world.rs"],
    &["run/simulated/plan.rs"],
    &["run/guarded.rs", "run/held.rs"],
    // The other processes of a run.
    &["run/guardian.rs", "run/launch.rs"],
    &["run/sentry.rs"],
    // What they decide.
    &["run/holding.rs"],
    &["run/guarding.rs"],
    &[
        "run/alarm.rs",
        "run/link.rs",
        "run/notify.rs",
        "run/signals.rs",
        "run/holder.rs",
        "run/stranger.rs",
        "run/tenure.rs",
        "run/terminal.rs",
        "run/timing.rs",
        "run/wanted.rs",
    ],
    &["run/clock.rs"],
    // Which servers a command uses, and its exit.
    &["connect.rs"],
    &["messages.rs", "settings.rs", "settings/"],
    &["failure.rs", "span.rs"],
];

const STORES: Floors = &[
    &["lib.rs"],
    // The test of a store, and stores.
    &["conformance.rs", "open.rs"],
    &[
        "etcd.rs",
        "memory.rs",
        "mongodb.rs",
        "mysql.rs",
        "postgres.rs",
        "s3.rs",
        "sqlite.rs",
        "zookeeper.rs",
    ],
    &[
        "etcd/listen.rs",
        "mysql/check_in.rs",
        "postgres/check_in.rs",
        "postgres/listen.rs",
        "sqlite/",
        "zookeeper/listen.rs",
    ],
    &[
        "etcd/session.rs",
        "mongodb/session.rs",
        "mysql/session.rs",
        "postgres/quiet.rs",
        "postgres/session.rs",
        "s3/session.rs",
        "zookeeper/session.rs",
    ],
    &["mongodb/server.rs", "s3/object.rs", "zookeeper/znode.rs"],
    &[
        "cluster.rs",
        "etcd/error.rs",
        "mongodb/error.rs",
        "mongodb/place.rs",
        "mysql/error.rs",
        "postgres/error.rs",
        "s3/error.rs",
        "s3/place.rs",
        "s3/wire.rs",
        "zookeeper/error.rs",
    ],
    &["etcd/meaning.rs"],
    // What databases have in common.
    &[
        "columns.rs",
        "database.rs",
        "host.rs",
        "links.rs",
        "numbered.rs",
    ],
    // A call from its request to its reply.
    &["transport.rs"],
    &["execute.rs", "watch.rs"],
    // One record: read, apply, write.
    &["service.rs"],
    &["desk.rs", "hub.rs", "view.rs"],
    &["remembered.rs"],
    // What a store is, and what transactions and the transport need beside it.
    &["check_in.rs"],
    &["address.rs", "runtime.rs", "store.rs"],
    &["sync.rs"],
];

const PLAN: Floors = &[
    &["lib.rs"],
    // Plans drawn from a seed.
    &["generator.rs", "generator/"],
    // What a plan must be, and what follows from it.
    &["bounds.rs", "check.rs", "check/", "lane_limits.rs"],
    // The parts of a plan.
    &[
        "cluster.rs",
        "fault.rs",
        "fault/",
        "outage.rs",
        "property.rs",
        "servers.rs",
        "variant.rs",
        "variant/",
        "workload.rs",
    ],
    &["draw.rs", "time.rs"],
];

const WORLD: Floors = &[
    &["lib.rs"],
    &["seam.rs", "seam/"],
    // The loop: the beginning of a run, its events, and its end.
    &["engine.rs", "engine/"],
    // Connections between two parts of the world.
    &["engine/faults.rs", "engine/faults/"],
    &["engine/nodes.rs", "engine/record.rs"],
    &["engine/nodes/"],
    &["engine/network.rs", "engine/network/"],
    &["engine/clients.rs", "engine/clients/", "engine/record/"],
    // The state of one run, its parts, and their identifiers.
    &["world.rs"],
    &["world/"],
    &["world/by_id.rs", "world/clock.rs", "world/slab.rs"],
    &["world/id.rs"],
    // What happened.
    &["history.rs", "history/"],
];

const TEST_KIT: Floors = &[
    &["lib.rs"],
    &["property_test.rs", "property_test/"],
    &["shrink.rs", "shrink/", "report.rs", "report/"],
    // One run, and the resource that a lock protects.
    &["simulation.rs", "resource.rs", "resource/"],
    &["context.rs", "assertion.rs"],
];

const LAB: Floors = &[
    &["main.rs"],
    &["lib.rs"],
    // Called by fuzz targets and tests.
    &["fuzzed.rs", "fuzzed/"],
    // The command line, and many runs.
    &["cli.rs", "cli/"],
    &["study.rs", "study/"],
    // The same on real servers: one run, its faults, and the processes that they affect.
    &["chaos.rs"],
    &["chaos/run.rs"],
    &["chaos/start.rs"],
    &["chaos/conductor.rs", "chaos/conductor/"],
    &[
        "chaos/backup.rs",
        "chaos/eviction.rs",
        "chaos/rights.rs",
        "chaos/server_error.rs",
    ],
    &[
        "chaos/clients.rs",
        "chaos/monitor.rs",
        "chaos/node.rs",
        "chaos/node_servers.rs",
        "chaos/proxies.rs",
        "chaos/redis_cluster.rs",
        "chaos/replication.rs",
        "chaos/report_server.rs",
        "chaos/sentinel_group.rs",
        "chaos/slot_move.rs",
        "chaos/worker.rs",
        "chaos/worker/",
    ],
    &["chaos/bystanders.rs"],
    &[
        "chaos/lock_under_test.rs",
        "chaos/preload.rs",
        "chaos/records.rs",
        "chaos/verdict.rs",
    ],
    &["chaos/"],
    // One run: what clients do, and the locks with flaws.
    &["simulation.rs"],
    &["client.rs", "client/"],
    &["algorithm.rs", "algorithm/"],
    &["model.rs", "model/"],
    // What the product's guards and those of the model have in common.
    &["client/hold.rs"],
    // Servers on real ports, and the lane over simulated TCP.
    &["serve.rs", "serve/", "turmoil.rs", "turmoil/"],
    &["redis.rs"],
    &["plan_file.rs", "plan_file/"],
];

const CHECK: Floors = &[
    &["lib.rs"],
    &["determinism.rs"],
    &["story.rs"],
    &["run.rs"],
    // One property a file.
    &[
        "exclusion.rs",
        "expiry.rs",
        "fairness.rs",
        "fencing.rs",
        "hand_over.rs",
        "hold_count.rs",
        "leadership.rs",
        "orphans.rs",
        "ownership.rs",
        "progress.rs",
        "read_write.rs",
        "stated.rs",
        "statements.rs",
        "termination.rs",
        "terms.rs",
        "usage.rs",
        "validity.rs",
    ],
    &["samples.rs"],
];

const BENCHMARK: Floors = &[
    &["main.rs"],
    &["report.rs"],
    &["bar.rs"],
    &["results.rs"],
    // Turns of the contestants' processes.
    &["turn.rs"],
    &["process.rs"],
    // The cases, the contestants, and the servers.
    &["case.rs"],
    &["contestant.rs", "servers.rs"],
    &["driver.rs"],
    &["driver/"],
];

/// The folders of sources that have floors.
const SOURCES: [(&str, Floors); 12] = [
    ("crates/quorlock-cli/src", COMMAND),
    ("crates/quorlock/src", PRODUCT),
    ("crates/quorlock-core/src", CORE),
    ("crates/quorlock-redis/src", ADAPTER),
    ("crates/quorlock-store/src", STORES),
    ("crates/redis-sim/src", SIMULATED_REDIS),
    ("benches/locks", BENCHMARK),
    ("sim/check/src", CHECK),
    ("sim/lab/src", LAB),
    ("sim/plan/src", PLAN),
    ("sim/testkit/src", TEST_KIT),
    ("sim/world/src", WORLD),
];

#[test]
fn no_arrow_of_a_crate_runs_upwards_or_in_a_circle() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (folder, floors) in SOURCES {
        let tree = Tree::read(&workspace.join(folder));
        let faults = faults(&tree, floors);
        assert!(faults.is_empty(), "{folder}:\n{}", faults.join("\n"));
    }
}
