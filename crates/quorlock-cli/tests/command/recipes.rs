//! Runs the recipes as they are written on their pages. The programs that they call are replaced by stand-ins.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use rustix::process::Signal;
use saphyr::{LoadableYamlNode as _, YamlOwned};

use super::support::{Folder, end_of, pid_of, quorlock, quorlock_on, send};

server_tests![
    a_script_starts_itself_again_under_the_lock,
    of_many_hosts_one_makes_the_report,
    invoices_are_sent_once_a_day,
    a_backup_that_comes_late_moves_no_pointer,
    a_unit_of_systemd_runs_the_report,
    of_two_pods_one_makes_the_report,
    of_two_pods_one_leads_and_the_other_takes_over,
    the_settings_of_the_page_are_settings,
    a_loop_ends_at_the_loss,
    the_table_names_every_occasion_that_the_script_tries,
];

/// Returns the only block of the pages that has this first line.
fn block<'a>(page: &'a str, says: &str) -> &'a str {
    let begin = format!("```{says}\n");
    let mut found = page.split(begin.as_str()).skip(1);
    let (Some(rest), None) = (found.next(), found.next()) else {
        panic!("not one block {says:?}");
    };
    let (block, _) = rest.split_once("```").expect("a block ends");
    block
}

const PAGE: &str = concat!(
    include_str!("../../../../docs/src/how-to/cron.md"),
    include_str!("../../../../docs/src/how-to/shell.md"),
    include_str!("../../../../docs/src/how-to/kubernetes.md"),
);
const COMMAND: &str = include_str!("../../../../docs/src/command.md");
/// The page includes it.
const SIDECAR: &str = include_str!("../../../../packaging/kubernetes/sidecar.yaml");

/// A folder with programs that are found before others.
struct Host {
    folder: Folder,
}

impl Host {
    fn new() -> Self {
        let host = Host {
            folder: Folder::new(),
        };
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_quorlock"), host.folder.file("quorlock"))
            .unwrap();
        host
    }

    fn with(self, name: &str, script: &str) -> Self {
        let path = self.folder.file(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap();
        format!("{}:{path}", self.folder.path().display())
    }

    /// Returns a shell with this script, as cron runs its lines.
    fn sh(&self, server: &Server, script: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .env("PATH", self.path())
            .env("QUORLOCK_NODES", server.address())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }
}

/// Returns the command in a line of a crontab, which begins with five times.
fn of_crontab(says: &str) -> String {
    let line = block(PAGE, says).trim();
    let words: Vec<&str> = line.splitn(6, ' ').collect();
    for time in &words[..5] {
        assert!(*time == "*" || time.parse::<u8>().is_ok(), "{line}");
    }
    words[5].to_owned()
}

async fn a_script_starts_itself_again_under_the_lock() {
    let server = Server::start();
    let host = Host::new().with(
        "make-deployment",
        "echo \"$1, token $QUORLOCK_FENCING_TOKEN\" >>deployed; while ! [ -e tried ]; do sleep 0.01; done",
    );
    let (_, script) = block(PAGE, "sh whole").split_once('\n').unwrap();
    let host = host.with("deploy", script);
    let mut first = host.sh(&server, "deploy 'to production'").spawn().unwrap();
    assert!(
        host.folder
            .line("deployed")
            .starts_with("to production, token 1")
    );
    let (code, _, said) = end_of(&mut host.sh(&server, "deploy again"));
    assert_eq!(code, 75, "{said}");
    std::fs::write(host.folder.file("tried"), "").unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert_eq!(end_of(&mut host.sh(&server, "deploy 'once more'")).0, 0);
    assert_eq!(host.folder.read("deployed").lines().count(), 2);
    assert_eq!(server.command::<i64>(&["EXISTS", "deploy"]), 0);
}

async fn of_many_hosts_one_makes_the_report() {
    let server = Server::start();
    // The report is not finished before all hosts have tried.
    let host = Host::new().with(
        "make-report",
        "echo report >>reports; while ! [ -e tried ]; do sleep 0.01; done",
    );
    let line = of_crontab("crontab report");
    let mut first = host.sh(&server, &line).spawn().unwrap();
    host.folder.line("reports");
    for _ in 0..3 {
        assert_eq!(
            end_of(&mut host.sh(&server, &line)),
            (0, String::new(), String::new())
        );
    }
    std::fs::write(host.folder.file("tried"), "").unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert_eq!(host.folder.read("reports"), "report\n");
}

async fn invoices_are_sent_once_a_day() {
    let server = Server::start();
    let line = of_crontab("crontab invoices");
    let broken = Host::new().with("send-invoices", "exit 1");
    assert_eq!(end_of(&mut broken.sh(&server, &line)).0, 1);
    let host = Host::new().with("send-invoices", "echo sent >>sent");
    for _ in 0..3 {
        let (code, _, said) = end_of(&mut host.sh(&server, &line));
        assert_eq!(code, 0, "{said}");
    }
    assert_eq!(host.folder.read("sent"), "sent\n");
    let left: u64 = server.command(&["PTTL", "daily/invoices"]);
    assert!(590_000 < left && left <= 600_000, "{left}");
}

async fn a_backup_that_comes_late_moves_no_pointer() {
    let server = Server::start();
    let host = Host::new();
    let script = block(PAGE, "sh backup");
    let (data, store) = (host.folder.file("data"), host.folder.file("store"));
    std::fs::create_dir(&data).unwrap();
    std::fs::create_dir(&store).unwrap();
    std::fs::write(data.join("orders"), "1 2 3").unwrap();
    let backup = |token: Option<&str>| {
        let mut command = match token {
            Some(token) => {
                let mut command = host.sh(&server, script);
                command.env("QUORLOCK_FENCING_TOKEN", token);
                command
            }
            None => {
                let mut command = quorlock_on(&server);
                command.args(["run", "-n", "backup", "--", "sh", "-c", script]);
                command
            }
        };
        command
            .env("STORE", &store)
            .env("DATA", &data)
            .env("POINTER", server.address());
        end_of(&mut command)
    };
    let latest = || -> String { server.command(&["HGET", "backup:latest", "file"]) };
    let (code, _, said) = backup(None);
    assert_eq!(code, 0, "{said}");
    let first = latest();
    assert!(store.join(&first).exists());
    let (code, _, said) = backup(None);
    assert_eq!(code, 0, "{said}");
    let second = latest();
    assert!(first < second);
    // A backup that was delayed for a day.
    let (code, _, said) = backup(Some("17"));
    assert_eq!(
        (code, said.as_str()),
        (1, "a later backup is there already\n")
    );
    assert_eq!(latest(), second);
    assert_eq!(std::fs::read_dir(&store).unwrap().count(), 2);
}

/// Returns the values of a key in a unit.
fn of_unit<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let lines = unit.lines();
    let values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    values.collect()
}

async fn a_unit_of_systemd_runs_the_report() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", "s3cret"]);
    let unit = block(PAGE, "ini service");
    let host = Host::new().with("make-report", "echo report >report");
    std::fs::write(host.folder.file("quorlock-password"), "s3cret\n").unwrap();
    let [start] = of_unit(unit, "ExecStart")[..] else {
        panic!("{unit}")
    };
    let mut command = host.sh(&server, start);
    for variable in of_unit(unit, "Environment") {
        let (name, value) = variable.split_once('=').unwrap();
        // %d is the folder of the credentials.
        let value = match name {
            "QUORLOCK_NODES" => server.address(),
            _ => value.replace(
                "%d/quorlock",
                &host.folder.file("quorlock-password").display().to_string(),
            ),
        };
        command.env(name, value);
    }
    let (code, _, said) = end_of(&mut command);
    assert_eq!(code, 0, "{said}");
    assert_eq!(host.folder.read("report"), "report\n");
    assert_eq!(of_unit(unit, "SuccessExitStatus"), ["75"]);
    assert_eq!(of_unit(block(PAGE, "ini timer"), "OnCalendar").len(), 1);
}

/// Returns the value in a YAML mapping, at the end of this path.
fn at<'a>(yaml: &'a YamlOwned, path: &[&str]) -> &'a YamlOwned {
    path.iter().fold(yaml, |yaml, key| {
        let next = yaml.as_mapping_get(key);
        next.unwrap_or_else(|| panic!("no {key}"))
    })
}

/// Returns the first container of a Kubernetes manifest, at the end of this path.
fn container(manifest: &str, path: &[&str]) -> YamlOwned {
    let documents = YamlOwned::load_from_str(manifest).expect("it is YAML");
    let [document] = &documents[..] else {
        panic!("not one document");
    };
    let containers = at(document, path).as_sequence().expect("containers");
    containers[0].clone()
}

/// Returns the command of a container, with its environment, for this host; `file` replaces the mounted password.
fn of_pod(host: &Host, server: &Server, container: &YamlOwned, file: &str) -> Command {
    in_pod(host, server, container, &["command"], file)
}

/// Returns the command at the end of a path in a container.
fn in_pod(
    host: &Host,
    server: &Server,
    container: &YamlOwned,
    path: &[&str],
    file: &str,
) -> Command {
    let words = at(container, path).as_sequence().expect("a command");
    let words: Vec<_> = words
        .iter()
        .map(|word| word.as_str().expect("a text, no number"))
        .collect();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env("PATH", host.path())
        .current_dir(host.folder.path())
        .stdin(Stdio::null());
    let variables = container
        .as_mapping_get("env")
        .and_then(|variables| variables.as_sequence());
    for variable in variables.expect("variables") {
        let of = |key| variable.as_mapping_get(key).and_then(|text| text.as_str());
        let (name, value) = (of("name").unwrap(), of("value").unwrap());
        match name {
            "QUORLOCK_NODES" => command.env(name, server.address()),
            "QUORLOCK_PASSWORD_FILE" => command.env(name, file),
            _ => command.env(name, value),
        };
    }
    command
}

const OF_CRON_JOB: [&str; 6] = [
    "spec",
    "jobTemplate",
    "spec",
    "template",
    "spec",
    "containers",
];

async fn of_two_pods_one_makes_the_report() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", "s3cret"]);
    let host = Host::new().with(
        "make-report",
        "echo report >>reports; while ! [ -e tried ]; do sleep 0.01; done",
    );
    let password = host.folder.file("password");
    std::fs::write(&password, "s3cret\n").unwrap();
    let container = container(block(PAGE, "yaml cronjob"), &OF_CRON_JOB);
    let pod = || of_pod(&host, &server, &container, &password.display().to_string());
    let mut first = pod().spawn().unwrap();
    host.folder.line("reports");
    let (code, _, said) = end_of(&mut pod());
    assert_eq!(code, 0, "{said}");
    std::fs::write(host.folder.file("tried"), "").unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert_eq!(host.folder.read("reports"), "report\n");
}

const OF_SIDECARS: [&str; 4] = ["spec", "template", "spec", "initContainers"];

async fn of_two_pods_one_leads_and_the_other_takes_over() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", "s3cret"]);
    let container = container(SIDECAR, &OF_SIDECARS);
    // A pod is a folder with its volume.
    let start = || {
        let host = Host::new();
        let password = host.folder.file("password");
        std::fs::write(&password, "s3cret\n").unwrap();
        std::fs::create_dir(host.folder.file("leader")).unwrap();
        std::fs::write(host.folder.file("leader/term"), "left behind\n").unwrap();
        let pod = of_pod(&host, &server, &container, &password.display().to_string());
        let volume = host.folder.file("leader").display().to_string();
        let words = pod.get_args().map(|word| word.to_str().unwrap());
        let words: Vec<_> = words.map(|word| word.replace("/leader", &volume)).collect();
        let mut command = Command::new(pod.get_program());
        for (name, value) in pod.get_envs() {
            command.env(name, value.unwrap());
        }
        let sidecar = command.args(words).stdin(Stdio::null()).spawn().unwrap();
        (host, sidecar)
    };
    let (one, mut first) = start();
    wait_until("the first leads", || {
        one.folder.read("leader/term").trim().parse::<u64>().is_ok()
    });
    let term: u64 = one.folder.line("leader/term").parse().unwrap();
    let probe = |password: &str| {
        let path = ["readinessProbe", "exec", "command"];
        let file = one.folder.file("probed");
        std::fs::write(&file, password).unwrap();
        let file = file.display().to_string();
        end_of(&mut in_pod(&one, &server, &container, &path, &file)).0
    };
    assert_eq!((probe("s3cret\n"), probe("wrong\n")), (0, 78));
    let (other, mut second) = start();
    wait_until("the second is a candidate", || {
        other.folder.read("leader/term").is_empty()
    });
    send(pid_of(&first), Signal::TERM);
    first.wait().unwrap();
    assert_eq!(one.folder.read("leader/term"), "");
    let later: u64 = other.folder.line("leader/term").parse().unwrap();
    assert!(term < later, "{term} {later}");
    send(pid_of(&second), Signal::TERM);
    second.wait().unwrap();
    assert_eq!(other.folder.read("leader/term"), "");
}

async fn the_settings_of_the_page_are_settings() {
    let server = Server::start();
    let folder = Folder::new();
    std::fs::write(folder.file("password"), "s3cret\n").unwrap();
    let settings = block(COMMAND, "toml settings");
    let settings = settings.replace(
        "/etc/quorlock/password",
        &folder.file("password").display().to_string(),
    );
    std::fs::write(folder.file("quorlock.toml"), settings).unwrap();
    let mut command = quorlock();
    command
        .args(["run", "--nodes", &server.address(), "--config"])
        .arg(folder.file("quorlock.toml"))
        .args([
            "a",
            "--",
            "redis-cli",
            "-p",
            &server.port().to_string(),
            "exists",
            "app:a",
        ]);
    // The server has no password and answers with that error, so the file is not what is wrong.
    let (code, _, said) = end_of(&mut command);
    assert_eq!(code, 78, "{said}");
    server.command::<()>(&["CONFIG", "SET", "requirepass", "s3cret"]);
    command.env("REDISCLI_AUTH", "s3cret");
    let (code, printed, said) = end_of(&mut command);
    assert_eq!((code, printed.as_str()), (0, "1\n"), "{said}");
}

async fn a_loop_ends_at_the_loss() {
    let server = Server::start();
    let script = block(PAGE, "sh loop");
    let host = Host::new()
        .with("work-for-a-moment", "echo work >>work; sleep 0.01")
        .with("save-what-is-done", "echo saved >saved");
    let mut command = quorlock_on(&server);
    let mut run = command
        .args([
            "run",
            "-q",
            "--lease",
            "1s",
            "--on-loss",
            "ignore",
            "queue",
            "--",
            "sh",
            "-c",
            script,
        ])
        .env("PATH", host.path())
        .current_dir(host.folder.path())
        .spawn()
        .unwrap();
    host.folder.line("work");
    assert_eq!(host.folder.read("saved"), "");
    server.command::<i64>(&["DEL", "queue"]);
    assert_eq!(run.wait().unwrap().code(), Some(76));
    assert_eq!(host.folder.read("saved"), "saved\n");
}

/// The table cannot be measured here, where there is no etcd. This checks its rows against the script.
async fn the_table_names_every_occasion_that_the_script_tries() {
    let script = include_str!("../../../../docs/compare/command.sh");
    for occasion in [
        "wrapper killed: command",
        "wrapper killed: grandchild",
        "server stopped: command",
        "the same, it ignores TERM",
        "exit 7 comes back as",
        "TERM to the wrapper: command",
        "stdin",
        "reads from its terminal",
        "lock taken by force: command",
        "token",
    ] {
        assert!(script.contains(&format!("'{occasion}'")), "{occasion}");
        assert!(COMMAND.contains(&format!("| {occasion} |")), "{occasion}");
    }
}
