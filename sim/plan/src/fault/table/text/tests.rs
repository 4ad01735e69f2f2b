//! Tests that faults are read from files and written to them.

use super::*;

fn read(text: &str) -> Result<Fault, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
}

/// One fault of each of the first kinds, with every field of its kind, as it was first written.
const COMPLETE: [&str; 39] = [
    "kind = 'cut'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'both'",
    "kind = 'loss'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'to-node'\nof_million = 3",
    "kind = 'delay'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'to-client'\nmin = '3ms'\nmax = '4ms'",
    "kind = 'hold-back'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'both'",
    "kind = 'duplicate'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\nof_million = 3\nmax = '4ms'",
    "kind = 'reorder'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'both'\nmax = '4ms'",
    "kind = 'reset'\nat = '1s'\nclients = [0]\nnodes = [1]\nin_flight = 'executed'",
    "kind = 'pause-client'\nat = '1s'\nlasts = '2s'\nclient = 0",
    "kind = 'pause-inside'\nat = '1s'\nlasts = '2s'\nclient = 0\nnth = 7",
    "kind = 'crash-client'\nat = '1s'\nclient = 0\nrestart_after = '2s'",
    "kind = 'suspend-client'\nat = '1s'\nlasts = '2s'\nclient = 0\nclock = 'stops'",
    "kind = 'cancel'\nat = '1s'\nclient = 0\nnth = 7",
    "kind = 'client-rate'\nat = '1s'\nclient = 0\nrate_ppm = -5",
    "kind = 'client-step'\nat = '1s'\nclient = 0\nby = '-3s'",
    "kind = 'pause-node'\nat = '1s'\nlasts = '2s'\nnode = 1\nreplica = 0",
    "kind = 'crash-node'\nat = '1s'\nnode = 1\nreplica = 0\nrestart_after = '2s'",
    "kind = 'flush'\nat = '1s'\nnode = 1",
    "kind = 'evict'\nat = '1s'\nnode = 1\nname = 2",
    "kind = 'server-error'\nat = '1s'\nlasts = '2s'\nnode = 1\nerror = 'busy'",
    "kind = 'forget-scripts'\nat = '1s'\nnode = 1",
    "kind = 'node-rate'\nat = '1s'\nnode = 1\nrate_ppm = 5\nreplica = 0",
    "kind = 'node-step'\nat = '1s'\nnode = 1\nby = '3s'\nreplica = 0",
    "kind = 'slow-replication'\nat = '1s'\nlasts = '2s'\nnode = 1\nby = '3s'\nreplica = 0",
    "kind = 'failover'\nat = '1s'\nnode = 1\nreplica = 0\nleft_behind = [2]\nrejoin_after = '2s'",
    "kind = 'backup'\nat = '1s'\nnodes = [1, 2]",
    "kind = 'isolate-primary'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnode = 1\nsentinels = [2]",
    "kind = 'sentinel-failover'\nat = '1s'\nnode = 1",
    "kind = 'crash-sentinel'\nat = '1s'\nnode = 1\nsentinel = 2\nrestart_after = '2s'",
    "kind = 'pause-sentinel'\nat = '1s'\nlasts = '2s'\nnode = 1\nsentinel = 2",
    "kind = 'stale-sentinel'\nat = '1s'\nlasts = '2s'\nnode = 1\nsentinel = 2",
    "kind = 'stop-inside'\nat = '1s'\nlasts = '2s'\nclient = 0\nnth = 7",
    "kind = 'power-loss'\nat = '1s'\nnode = 1\nrestart_after = '2s'\nloses = '3s'",
    "kind = 'swallow'\nat = '1s'\nclients = [0]\nnodes = [1]",
    "kind = 'stall-node'\nat = '1s'\nlasts = '2s'\nnode = 1\nnth = 7",
    "kind = 'free-backlog'\nat = '1s'\nnode = 1",
    "kind = 'misroute'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnode = 1\nto = 2",
    "kind = 'migrate-slot'\nat = '1s'\nlasts = '2s'\nnode = 1\nto = 2\nname = 3\ngap = '4ms'",
    "kind = 'cluster-failover'\nat = '1s'\nnode = 1\nhow = 'takeover'",
    "kind = 'revoke-keys'\nat = '1s'\nlasts = '2s'\nnode = 1\nname = 3",
];

fn name_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

#[test]
fn a_fault_of_every_kind_is_written_as_it_was_read() {
    for (text, kind) in COMPLETE.into_iter().zip(Kind::ALL) {
        let fault = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(fault.kind(), kind);
        let written = toml::to_string(&fault).unwrap();
        assert_eq!(written.trim_end().replace('"', "'"), text);
    }
}

#[test]
fn every_kind_is_read_as_it_was_written_and_has_words_of_its_own() {
    let mut told = std::collections::BTreeSet::new();
    for (kind, number) in Kind::ALL.into_iter().zip(0..) {
        assert_eq!(
            (kind as u32, Kind::named(kind.name())),
            (number, Some(kind))
        );
        let mut fault = Fault {
            when: SimTime::ZERO.into(),
            lasts: SimTime::ZERO,
            what: kind.blank(),
        };
        fault.strike_all(1, 1);
        assert_eq!(fault.kind(), kind);
        let written = toml::to_string(&fault).unwrap();
        assert_eq!(read(&written), Ok(fault.clone()), "{written}");
        assert!(told.insert(fault.to_string()), "{fault}");
    }
}

#[test]
fn a_field_that_is_missing_is_named() {
    let optional = ["direction", "in_flight", "left_behind", "gap", "how"];
    for (text, kind) in COMPLETE.into_iter().zip(Kind::ALL) {
        let lines: Vec<&str> = text.lines().collect();
        for missing in lines.iter().skip(1) {
            let rest: Vec<&str> = lines.iter().copied().filter(|l| l != missing).collect();
            let (field, kind_name) = (name_of(missing), kind.name());
            let is_of_all = ![Kind::IsolatePrimary, Kind::Misroute].contains(&kind);
            let is_optional = optional.contains(&field)
                || (kind != Kind::Failover && field == "replica")
                || (is_of_all && ["clients", "nodes"].contains(&field));
            let told = read(&rest.join("\n"));
            if is_optional {
                assert!(told.is_ok(), "{kind_name} without {field}: {told:?}");
            } else {
                let expected = format!("a fault of kind `{kind_name}` needs the field `{field}`");
                assert_eq!(told, Err(expected));
            }
        }
    }
}

#[test]
fn a_field_that_the_kind_does_not_have_is_refused_by_name() {
    let mut refused = 0;
    for (text, kind) in COMPLETE.into_iter().zip(Kind::ALL) {
        let own: Vec<&str> = text.lines().map(name_of).collect();
        for foreign in COMPLETE.iter().flat_map(|text| text.lines()) {
            let field = name_of(foreign);
            if own.contains(&field) {
                continue;
            }
            let kind_name = kind.name();
            let expected = format!("a fault of kind `{kind_name}` has no field `{field}`");
            assert_eq!(read(&format!("{text}\n{foreign}")), Err(expected));
            refused += 1;
        }
    }
    assert!(1_000 < refused, "{refused}");
}

/// Faults of any kind may repeat, or follow a message. Faults of a client may strike a client in a role.
const TRIGGERED: [&str; 5] = [
    "kind = 'flush'\nat = '1s'\nevery = '190ms'\ntimes = 3\nnode = 1",
    "kind = 'flush'\nat = '1s'\nevery = '190ms'\nuntil = '2s'\nnode = 1",
    "kind = 'pause-client'\nat = '1s'\nlasts = '2s'\nclient = 'holder'",
    "kind = 'cut'\nat = '1s'\nlasts = '2s'\nclients = [0]\nnodes = [1]\ndirection = 'both'\n\n\
     [after]\nmessage = 'release'\nfrom = 'client 0'\nto = 'node 2'\nnth = 2\ndelay = '1ms'",
    "kind = 'crash-client'\nat = '0s'\nclient = 'holder of 1'\nrestart_after = '2s'\n\n\
     [after]\nmessage = 'acquire'\nfrom = 'node'\nto = 'holder of 1'\nnth = 1\ndelay = '0s'",
];

#[test]
fn a_fault_of_every_trigger_and_target_is_written_as_it_was_read() {
    for text in TRIGGERED {
        let fault = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let written = toml::to_string(&fault).unwrap();
        assert_eq!(written.trim_end().replace('"', "'"), text);
        let json = serde_json::to_string(&fault).unwrap();
        assert_eq!(serde_json::from_str::<Fault>(&json).unwrap(), fault);
    }
}

#[test]
fn what_is_wrong_with_a_trigger_or_a_target_is_told_with_what_to_do() {
    let flush = "kind = 'flush'\nnode = 1\n";
    let pause = "kind = 'pause-client'\nat = '1s'\nlasts = '1s'\n";
    for (text, told) in [
        (
            format!("{flush}at = '1s'\nevery = '1s'"),
            "a fault that repeats needs the field `times` or `until`",
        ),
        (
            format!("{flush}at = '1s'\ntimes = 3"),
            "`times` and `until` need `every`: set the time from one beginning to the next",
        ),
        (
            format!("{flush}at = '1s'\nevery = '1s'\ntimes = 3\nuntil = '2s'"),
            "set either `times` (how often) or `until` (how long), not both",
        ),
        (
            format!("{flush}every = '1s'\nafter = {{ message = 'renew' }}"),
            "a fault after a message happens once: leave out `every`, or `after`",
        ),
        (
            format!("{flush}after = {{ message = 'renew', from = 'client 0', to = 'client 1' }}"),
            "after: no message goes from client 0 to client 1: one end is a client, the other one a node",
        ),
        (
            format!("{flush}after = {{ message = 'renew', to = 'server 1' }}"),
            "after.to: \"server 1\" is not the end of a message: write client, client 0, holder, holder of 1, node or node 2",
        ),
        (
            format!("{pause}client = 'leader'"),
            "\"leader\" is not a client: write its number, \"holder\", or \"holder of 1\" for the holder of name 1",
        ),
        (format!("{pause}client = -1"), "clients are counted from 0"),
    ] {
        assert_eq!(read(&text).unwrap_err(), told, "{text}");
    }
}

#[test]
fn a_field_of_no_kind_and_a_kind_that_there_is_not_are_refused() {
    let told = |text: &str| read(text).unwrap_err();
    let field = told("kind = 'flush'\nat = '1s'\nnode = 1\ncolour = 3");
    assert!(field.starts_with("unknown field `colour`"), "{field}");
    let kind = told("kind = 'flood'\nat = '1s'\nnode = 1");
    assert!(kind.starts_with("unknown variant `flood`"), "{kind}");
    let by = told("kind = 'node-step'\nat = '1s'\nnode = 1\nby = 'much'");
    assert_eq!(
        by,
        "by: \"much\" is not a duration: write for example 40us, 250ms, 1.5s or 2h"
    );
}
