//! The Job of Kubernetes that runs a campaign in shards.

use std::path::{Path, PathBuf};
use std::process::Command;

use quorlock_sim_lab::study::results::Stored;
use saphyr::{LoadableYamlNode as _, YamlOwned};
use serde_json::{Map, Value};

use super::folder;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(path).expect("a file")
}

/// Returns a document of YAML as JSON, as Kubernetes reads it.
fn json(yaml: &YamlOwned) -> Value {
    if let Some(entries) = yaml.as_mapping() {
        let entry = |(key, value): (&YamlOwned, &YamlOwned)| {
            (key.as_str().expect("a name").to_owned(), json(value))
        };
        return Value::Object(entries.iter().map(entry).collect::<Map<_, _>>());
    }
    if let Some(items) = yaml.as_sequence() {
        return items.iter().map(json).collect();
    }
    match (yaml.as_integer(), yaml.as_bool()) {
        (Some(number), _) => Value::from(number),
        (None, Some(is_set)) => Value::from(is_set),
        (None, None) => Value::from(yaml.as_str().expect("text")),
    }
}

fn job() -> Value {
    let documents = YamlOwned::load_from_str(&file("machines/job.yaml")).expect("it is YAML");
    json(documents.first().expect("a document"))
}

#[test]
fn the_job_of_kubernetes_fits_the_published_schema() {
    let schema = file("schemas/kubernetes-job.schema.json");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let schema = jsonschema::draft202012::new(&schema).expect("a schema");
    let wrong: Vec<String> = schema.iter_errors(&job()).map(|e| e.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // A schema that takes anything shows nothing.
    for (place, value) in [
        ("/spec/completions", Value::from("80")),
        (
            "/spec/podFailurePolicy/rules/1/onExitCodes/values/0",
            Value::from("1"),
        ),
        (
            "/spec/template/spec/containers/0/resources/limits",
            serde_json::json!({ "cpu": [] }),
        ),
        (
            "/spec/template/spec/containers/0",
            serde_json::json!({ "nam": "shard" }),
        ),
    ] {
        let mut bad = job();
        *bad.pointer_mut(place).expect("a place") = value;
        assert!(!schema.is_valid(&bad), "{place}");
    }
}

/// What the schema cannot say: the rules of Kubernetes for a policy of failures, and the meaning of the exit codes.
#[test]
fn the_job_of_kubernetes_tells_findings_from_failures() {
    let spec = &job()["spec"];
    // Kubernetes refuses a policy of failures with any other policy of restarts.
    assert_eq!(spec["template"]["spec"]["restartPolicy"], "Never");
    let container = &spec["template"]["spec"]["containers"][0];
    let mut actions: Vec<(i64, &str)> = Vec::new();
    for rule in spec["podFailurePolicy"]["rules"].as_array().expect("rules") {
        let Some(codes) = rule.get("onExitCodes") else {
            assert_eq!(rule["action"], "Ignore");
            assert_eq!(rule["onPodConditions"][0]["type"], "DisruptionTarget");
            continue;
        };
        assert_eq!(codes["containerName"], container["name"]);
        assert_eq!(codes["operator"], "In");
        let action = rule["action"].as_str().expect("an action");
        let codes = codes["values"].as_array().expect("codes").iter();
        actions.extend(codes.map(|code| (code.as_i64().expect("a code"), action)));
    }
    let finding = "FailIndex";
    assert_eq!(
        actions,
        [(1, "FailJob"), (2, finding), (3, finding), (4, finding)]
    );
    let (all, at_once) = (spec["completions"].as_i64(), spec["parallelism"].as_i64());
    assert_eq!(
        all,
        at_once.map(|pods| 10 * pods),
        "ten times more shards than workers"
    );
    assert_eq!(spec["maxFailedIndexes"].as_i64(), all);
    let script = container["args"][0].as_str().expect("a script");
    let shard = format!("--shard $(JOB_COMPLETION_INDEX)/{} ", all.expect("shards"));
    assert!(script.contains(&shard), "{script}");
}

/// Runs the script of a pod as Kubernetes would, with fewer seeds.
#[cfg(unix)]
#[test]
fn a_pod_runs_its_shard_and_continues_it_when_it_is_replaced() {
    let folder = folder("pod");
    let job = job();
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let script = container["args"][0].as_str().expect("a script");
    let script = script
        .replace("$(JOB_COMPLETION_INDEX)", "3")
        .replace("/results", folder.to_str().expect("a path"))
        .replace("0..10000000", "0..800");
    let programs = Path::new(env!("CARGO_BIN_EXE_quorlock-sim")).parent();
    let mut path = vec![programs.expect("a folder").to_owned()];
    path.extend(
        std::env::var_os("PATH")
            .iter()
            .flat_map(std::env::split_paths)
            .collect::<Vec<PathBuf>>(),
    );
    let words = container["command"].as_array().expect("a command").iter();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    for _ in ["started", "replaced"] {
        let output = Command::new(words[0])
            .args(&words[1..])
            .arg(&script)
            .env("PATH", std::env::join_paths(&path).expect("a path"))
            .output()
            .expect("it starts");
        // Ten runs may be too few to show anything (4), which is no failure of the pod.
        assert!(
            [Some(0), Some(4)].contains(&output.status.code()),
            "{output:?}"
        );
        let stored = Stored::read(&folder.join("shard-3")).expect("results");
        assert_eq!(
            (stored.manifest.rows, stored.manifest.is_complete),
            (10, true)
        );
    }
}
