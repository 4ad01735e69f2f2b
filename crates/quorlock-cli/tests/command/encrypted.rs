//! Servers that are reached under TLS.

use std::path::Path;

use quorlock_testbed::certificates::{Authority, Files, Validity};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;

use super::support::{Folder, end_of, quorlock};

server_tests![
    certificates_come_from_the_command_line_the_environment_or_the_file,
    what_is_wrong_with_certificates_is_told,
    a_server_may_have_a_certificate_for_another_name_than_that_of_its_address,
];

struct Bench {
    folder: Folder,
    server: Server,
    files: Files,
}

impl Bench {
    /// Starts a server that admits clients with a certificate of its authority and a password.
    fn start() -> Bench {
        let folder = Folder::new();
        let authority = Authority::new();
        let ca = text(&authority.write(folder.path()));
        let server = authority.sign(&["localhost"], Validity::Now);
        let server = server.write(folder.path(), "server");
        let files = authority.sign(&["client"], Validity::Now);
        let files = files.write(folder.path(), "client");
        let server = Server::start_encrypted(&[
            "--tls-ca-cert-file",
            &ca,
            "--tls-cert-file",
            &text(&server.certificate),
            "--tls-key-file",
            &text(&server.key),
        ]);
        server.command::<()>(&["CONFIG", "SET", "requirepass", "s3cret"]);
        std::fs::write(folder.file("password"), "s3cret\n").unwrap();
        Bench {
            folder,
            server,
            files,
        }
    }

    fn node(&self) -> String {
        format!("rediss://localhost:{}", self.server.tls_port())
    }

    /// Returns the paths of the authority, the certificate and the key.
    fn paths(&self) -> [String; 3] {
        let ca = text(&self.folder.file("ca.pem"));
        [ca, text(&self.files.certificate), text(&self.files.key)]
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

async fn certificates_come_from_the_command_line_the_environment_or_the_file() {
    let bench = Bench::start();
    let (node, password) = (bench.node(), text(&bench.folder.file("password")));
    let [ca, certificate, key] = bench.paths();
    let flags = [
        ["--nodes", &node],
        ["--password-file", &password],
        ["--tls-ca", &ca],
        ["--tls-cert", &certificate],
        ["--tls-key", &key],
    ];
    let config = bench.folder.file("quorlock.toml");
    let settings = format!(
        "nodes = [{node:?}]\npassword_file = {password:?}\ntls_ca = {ca:?}\ntls_cert = {certificate:?}\ntls_key = {key:?}\n"
    );
    std::fs::write(&config, settings).unwrap();
    let script = ["a", "--", "sh", "-c", "echo held $QUORLOCK_NAME"];
    let mut by_flags = quorlock();
    by_flags.arg("run").args(flags.as_flattened()).args(script);
    let mut by_environment = quorlock();
    by_environment
        .envs([
            ("QUORLOCK_NODES", &node),
            ("QUORLOCK_PASSWORD_FILE", &password),
            ("QUORLOCK_TLS_CA", &ca),
            ("QUORLOCK_TLS_CERT", &certificate),
            ("QUORLOCK_TLS_KEY", &key),
        ])
        .arg("run")
        .args(script);
    let mut by_file = quorlock();
    by_file.arg("run").arg("--config").arg(&config).args(script);
    for mut command in [by_flags, by_environment, by_file] {
        let (code, printed, said) = end_of(&mut command);
        assert_eq!((code, printed.as_str()), (0, "held a\n"), "{said}");
    }
    // `list` has its own connections.
    let list = format!("quorlock list --config {}", text(&config));
    let path = Path::new(env!("CARGO_BIN_EXE_quorlock")).parent().unwrap();
    let path = format!("{}:{}", text(path), std::env::var("PATH").unwrap());
    let mut listing = quorlock();
    listing.args(["run", "--config"]).arg(&config);
    listing
        .args(["held", "--", "sh", "-c", &list])
        .env("PATH", path);
    let (code, printed, said) = end_of(&mut listing);
    assert_eq!(code, 0, "{said}");
    assert!(printed.contains("held"), "{printed} {said}");
}

async fn what_is_wrong_with_certificates_is_told() {
    let bench = Bench::start();
    let (node, password) = (bench.node(), text(&bench.folder.file("password")));
    let [ca, certificate, key] = bench.paths();
    let plain = node.replace("rediss://", "redis://");
    for (words, says) in [
        (vec!["--nodes", &node], "--tls-ca"),
        (
            vec!["--nodes", &node, "--tls-ca", &ca],
            "--tls-cert, --tls-key",
        ),
        (
            vec!["--nodes", &node, "--tls-ca", "/not/there"],
            "/not/there cannot be read",
        ),
        (
            vec!["--nodes", &node, "--tls-cert", &certificate],
            "needs its key",
        ),
        (
            vec!["--nodes", &node, "--tls-key", &key],
            "needs its certificate",
        ),
        (
            vec!["--nodes", &node, "--sentinel-tls-key", &key],
            "give --sentinel-tls-cert",
        ),
        (vec!["--nodes", &plain, "--tls-ca", &ca], "write rediss://"),
        (
            vec!["--nodes", &plain, "--tls-server-name", "a"],
            "write rediss://",
        ),
        (vec!["--nodes", &plain], "rediss://"),
    ] {
        let mut command = quorlock();
        command.args(["run", "-n", "--password-file", &password, "a"]);
        let (code, _, said) = end_of(command.args(&words).args(["--", "true"]));
        assert!(said.contains(says), "{words:?}: {said}");
        assert!(matches!(code, 69 | 78), "{words:?}: {code} {said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}

async fn a_server_may_have_a_certificate_for_another_name_than_that_of_its_address() {
    let bench = Bench::start();
    let password = text(&bench.folder.file("password"));
    let [ca, certificate, key] = bench.paths();
    let node = bench.node().replace("localhost", "127.0.0.1");
    let run = |name: &[&str]| {
        let mut command = quorlock();
        command.args(["run", "--nodes", &node, "--password-file", &password]);
        command.args(["--tls-ca", &ca, "--tls-cert", &certificate]);
        command.args(["--tls-key", &key]).args(name);
        end_of(command.args(["-n", "a", "--", "true"]))
    };
    let (code, _, said) = run(&[]);
    assert!(code != 0 && said.contains("certificate"), "{said}");
    let (code, _, said) = run(&["--tls-server-name", "localhost"]);
    assert_eq!(code, 0, "{said}");
}
