//! Dependencies run one way: quorlock-core <- quorlock-redis <- quorlock <- the command, the simulator <- the tests.
//! Inside a crate, they also run one way, from floor to floor.

pub(crate) mod arrows;
mod faults;
mod floors;
mod public_api;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use quorlock_testbed::files::below;
use serde_json::Value;

/// One line of a `[dependencies]` table.
struct Dependency {
    name: String,
    /// `normal`, `dev` or `build`.
    kind: String,
    is_optional: bool,
}

/// A member of the workspace.
struct Package {
    folder: String,
    dependencies: Vec<Dependency>,
    default_features: Vec<String>,
    features: BTreeMap<String, Vec<String>>,
    /// Whether it has benchmarks.
    measures: bool,
}

impl Package {
    fn needs(&self, kinds: &[&str]) -> BTreeSet<&str> {
        let wanted = |d: &&Dependency| kinds.contains(&d.kind.as_str());
        let dependencies = self.dependencies.iter().filter(wanted);
        dependencies.map(|d| d.name.as_str()).collect()
    }
}

fn workspace() -> BTreeMap<String, Package> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|p| (text(&p["name"]), package(p)))
        .collect()
}

fn package(package: &Value) -> Package {
    let mut targets = package["targets"].as_array().expect("targets").iter();
    let measures = targets.any(|target| texts(&target["kind"]).contains(&"bench".to_string()));
    let manifest = text(&package["manifest_path"]).replace('\\', "/");
    let folder = manifest.rsplit('/').nth(1).expect("a folder").to_string();
    let is_in_crates = manifest.rsplit('/').nth(2) == Some("crates");
    let dependencies = package["dependencies"].as_array().expect("dependencies");
    let features = package["features"].as_object().expect("features");
    let features: BTreeMap<String, Vec<String>> = features
        .iter()
        .map(|(name, enables)| (name.clone(), texts(enables)))
        .collect();
    Package {
        folder: if is_in_crates {
            format!("crates/{folder}")
        } else {
            folder
        },
        dependencies: dependencies
            .iter()
            .map(|dependency| Dependency {
                name: text(&dependency["name"]),
                kind: dependency["kind"].as_str().unwrap_or("normal").to_string(),
                is_optional: dependency["optional"] == Value::Bool(true),
            })
            .collect(),
        default_features: features.get("default").cloned().unwrap_or_default(),
        features,
        measures,
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_string()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().expect("a list").iter().map(text).collect()
}

/// Returns the dependencies of a package that are members of the workspace.
fn ours<'a>(
    workspace: &'a BTreeMap<String, Package>,
    package: &'a str,
    kinds: &[&str],
) -> BTreeSet<&'a str> {
    let needs = workspace[package].needs(kinds);
    needs
        .into_iter()
        .filter(|name| workspace.contains_key(*name))
        .collect()
}

const ANY_KIND: [&str; 3] = ["normal", "dev", "build"];

#[test]
fn the_core_depends_on_nothing_at_all() {
    assert_eq!(
        workspace()["quorlock-core"].needs(&ANY_KIND),
        BTreeSet::new()
    );
}

#[test]
fn the_adapter_knows_only_the_core() {
    assert_eq!(
        ours(&workspace(), "quorlock-redis", &ANY_KIND),
        // The schedules of its threads, only for tests.
        BTreeSet::from(["quorlock-core", "quorlock-explore"])
    );
}

#[test]
fn stores_know_only_the_core() {
    let workspace = workspace();
    assert_eq!(
        ours(&workspace, "quorlock-store", &["normal", "build"]),
        BTreeSet::from(["quorlock-core"])
    );
    assert!(workspace["quorlock-store"].default_features.is_empty());
}

#[test]
fn the_product_knows_the_core_and_by_its_default_feature_the_adapter() {
    let workspace = workspace();
    assert_eq!(
        ours(&workspace, "quorlock", &ANY_KIND),
        // Its tests switch on its probes.
        BTreeSet::from([
            "quorlock",
            "quorlock-core",
            "quorlock-explore",
            "quorlock-redis",
            "quorlock-store"
        ])
    );
    let product = &workspace["quorlock"];
    for dependency in &product.dependencies {
        if ["quorlock-redis", "quorlock-store"].contains(&dependency.name.as_str()) {
            assert!(dependency.is_optional, "{}", dependency.kind);
        }
    }
    assert!(product.default_features.contains(&"redis".to_string()));
    assert!(product.features["redis"].contains(&"dep:quorlock-redis".to_string()));
}

#[test]
fn the_command_is_made_of_what_every_user_has() {
    assert_eq!(
        ours(&workspace(), "quorlock-cli", &["normal", "build"]),
        BTreeSet::from(["quorlock"])
    );
}

#[test]
fn the_simulated_redis_knows_nothing_of_locks() {
    assert_eq!(ours(&workspace(), "redis-sim", &ANY_KIND), BTreeSet::new());
}

/// Who tests a service in turmoil compiles no laboratory, and who needs no simulation compiles no turmoil.
#[test]
fn locks_in_a_turmoil_simulation_know_the_product_alone() {
    let workspace = workspace();
    assert_eq!(
        ours(&workspace, "quorlock-turmoil", &["normal", "build"]),
        BTreeSet::from(["quorlock"])
    );
    let server = &workspace["redis-sim"];
    let turmoil = server.dependencies.iter().find(|d| d.name == "turmoil");
    assert!(turmoil.is_some_and(|turmoil| turmoil.is_optional));
    assert!(server.default_features.is_empty());
}

/// Only the laboratory needs Lua, TCP and files. Who tests a service compiles none of that.
#[test]
fn the_test_kit_knows_the_world_and_no_laboratory() {
    let workspace = workspace();
    let arrows = [
        ("quorlock-sim-plan", vec!["quorlock"]),
        (
            "quorlock-sim-world",
            vec![
                "quorlock",
                "quorlock-core",
                "quorlock-sim-plan",
                "quorlock-store",
            ],
        ),
        (
            "quorlock-sim-check",
            vec![
                "quorlock",
                "quorlock-core",
                "quorlock-sim-plan",
                "quorlock-sim-world",
            ],
        ),
        (
            "quorlock-sim",
            vec![
                "quorlock",
                "quorlock-sim-check",
                "quorlock-sim-macros",
                "quorlock-sim-plan",
                "quorlock-sim-world",
            ],
        ),
    ];
    let mut others = BTreeSet::new();
    for (name, known) in arrows {
        let known: BTreeSet<&str> = known.into_iter().collect();
        assert_eq!(
            ours(&workspace, name, &["normal", "build"]),
            known,
            "{name}"
        );
        assert!(workspace[name].features.is_empty(), "{name}");
        let needs = workspace[name].needs(&["normal", "build"]);
        others.extend(
            needs
                .into_iter()
                .filter(|need| !workspace.contains_key(*need)),
        );
    }
    assert_eq!(
        others,
        BTreeSet::from(["rand_xoshiro", "serde", "thiserror"])
    );
}

#[test]
fn nothing_that_runs_in_production_knows_the_simulator_or_its_tools() {
    for (name, package) in &workspace() {
        if !package.folder.starts_with("crates/") {
            continue;
        }
        // A tool of tests itself, with turmoil behind a feature.
        if name == "redis-sim" {
            continue;
        }
        let needs = package.needs(&["normal", "build"]);
        for tool in [
            "turmoil",
            "proptest",
            "quorlock-explore",
            "redis-sim",
            "quorlock-sim",
            "quorlock-sim-plan",
            "quorlock-sim-world",
            "quorlock-sim-check",
            "quorlock-sim-lab",
            "quorlock-turmoil",
            "quorlock-bench",
            "quorlock-testbed",
            "quorlock-tests",
        ] {
            assert!(!needs.contains(tool), "{name} depends on {tool}");
        }
    }
}

#[test]
fn only_the_adapter_chaos_and_the_tests_speak_to_redis() {
    let workspace = workspace();
    let speakers = workspace
        .iter()
        .filter(|(_, package)| package.needs(&ANY_KIND).contains("redis"))
        .map(|(name, _)| name.as_str());
    assert_eq!(
        speakers.collect::<Vec<_>>(),
        // Chaos breaks the data of servers, and the locks of other libraries.
        [
            "quorlock-bench",
            "quorlock-redis",
            "quorlock-sim-lab",
            "quorlock-testbed",
            "quorlock-tests"
        ]
    );
}

#[test]
fn the_test_bed_knows_no_lock_and_no_simulator() {
    assert_eq!(
        ours(&workspace(), "quorlock-testbed", &ANY_KIND),
        BTreeSet::new()
    );
}

/// Returns the top folders with a file that has all of these words as strings.
fn folders_with(words: &[&str]) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["benches", "crates", "fuzz", "sim", "testbed", "tests"];
    let mut having = BTreeSet::new();
    for folder in folders
        .into_iter()
        .filter(|folder| root.join(folder).is_dir())
    {
        let has_all = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).expect("a file of text");
            words
                .iter()
                .all(|word| text.contains(&format!("\"{word}\"")))
        };
        if below(root.join(folder), "rs").iter().any(has_all) {
            having.insert(folder.to_owned());
        }
    }
    having
}

/// A second test bed begins with a server that is started on a port elsewhere, or with a cluster that is formed elsewhere.
#[test]
fn only_the_test_bed_starts_servers_and_forms_clusters() {
    let testbed = BTreeSet::from(["testbed".to_owned()]);
    // The words are in parts, so that this file does not have them.
    let server = [concat!("redis-", "server"), concat!("--", "port")];
    assert_eq!(folders_with(&server), testbed);
    let node = [concat!("--cluster-", "enabled")];
    assert_eq!(folders_with(&node), testbed);
    let database = [concat!("init", "db")];
    assert_eq!(folders_with(&database), testbed);
    let all_slots = [concat!("ADDSLOTS", "RANGE")];
    assert_eq!(folders_with(&all_slots), BTreeSet::new());
}

/// A second harness begins with a benchmark of another package.
#[test]
fn one_package_measures() {
    let workspace = workspace();
    let measuring = workspace.iter().filter(|(_, package)| package.measures);
    let names: Vec<&str> = measuring.map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["quorlock-bench"]);
}

#[test]
fn every_crate_of_the_product_is_looked_at() {
    let workspace = workspace();
    for name in [
        "quorlock",
        "quorlock-cli",
        "quorlock-core",
        "quorlock-redis",
        "quorlock-store",
        "redis-sim",
    ] {
        assert_eq!(workspace[name].folder, format!("crates/{name}"));
    }
}
