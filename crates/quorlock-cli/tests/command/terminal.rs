//! The command has the terminal while it runs. Tested on a pseudo-terminal, with a shell that has job control.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::support::{Folder, is_alive};

server_tests![
    the_command_reads_from_the_terminal,
    control_c_goes_to_the_command,
    control_z_stops_the_job_and_fg_lets_it_go_on,
    a_job_that_stays_stopped_is_ended_with_its_lease,
    the_terminal_is_given_back_after_a_kill,
    in_a_pipeline_the_rest_keeps_the_terminal,
];

/// A shell with job control, on its own terminal.
struct Terminal {
    keyboard: File,
    screen: Arc<Mutex<String>>,
    shell: Child,
    folder: Folder,
}

impl Terminal {
    fn new(server: &Server) -> Self {
        let control =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&control).unwrap();
        unlockpt(&control).unwrap();
        let name = ptsname(&control, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let tty = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        let end = || Stdio::from(OwnedFd::try_clone(&tty).unwrap());
        let folder = Folder::new();
        // The shell gets a new session, whose terminal this is.
        let mut command = Command::new("setsid");
        let path = std::path::Path::new(env!("CARGO_BIN_EXE_quorlock"));
        let path = format!(
            "{}:{}",
            path.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let shell = command
            .args(["--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"])
            .env("QUORLOCK_NODES", server.address())
            .env("PATH", path)
            .env("PS1", "ready> ")
            .env("TERM", "dumb")
            .current_dir(folder.path())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("there are setsid and bash");
        let screen = Arc::new(Mutex::new(String::new()));
        let mut reader = File::from(control.try_clone().unwrap());
        let shown = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length) = reader.read(&mut bytes) {
                if length == 0 {
                    return;
                }
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                shown.lock().unwrap().push_str(&text);
            }
        });
        let terminal = Terminal {
            keyboard: File::from(control),
            screen,
            shell,
            folder,
        };
        terminal.shows("ready> ");
        terminal
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the screen shows the text, and removes everything up to the end of the text.
    fn shows(&self, text: &str) {
        let mut seen = String::new();
        wait_until(text, || {
            let mut screen = self.screen.lock().unwrap();
            seen.clone_from(&screen);
            match screen.split_once(text) {
                Some((_, rest)) => {
                    *screen = rest.to_owned();
                    true
                }
                None => false,
            }
        });
    }

    /// Returns the exit code of the last command.
    fn code(&mut self) -> String {
        self.types("echo $? >code\n");
        let code = self.folder.line("code");
        std::fs::remove_file(self.folder.file("code")).unwrap();
        code
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

async fn the_command_reads_from_the_terminal() {
    let server = Server::start();
    let mut terminal = Terminal::new(&server);
    terminal.types(
        "quorlock run a -- sh -c 'read -r line </dev/tty; echo $line >line; tty >tty; exit 3'\n",
    );
    terminal.types("typed\n");
    assert_eq!(terminal.folder.line("line"), "typed");
    assert!(terminal.folder.line("tty").starts_with("/dev/pts/"));
    assert_eq!(terminal.code(), "3");
}

async fn control_c_goes_to_the_command() {
    let server = Server::start();
    let mut terminal = Terminal::new(&server);
    terminal.types("quorlock run a -- sh -c 'trap \"exit 8\" INT; echo $$ >command; while :; do sleep 0.05; done'\n");
    terminal.folder.pid("command");
    terminal.types("\x03");
    assert_eq!(terminal.code(), "8");
    assert_eq!(server.command::<i64>(&["EXISTS", "a"]), 0);
}

async fn control_z_stops_the_job_and_fg_lets_it_go_on() {
    let server = Server::start();
    let mut terminal = Terminal::new(&server);
    terminal.types(
        "quorlock run a -- sh -c 'echo $$ >command; read -r line; echo $line >line; exit 4'\n",
    );
    terminal.folder.pid("command");
    terminal.types("\x1a");
    terminal.shows("Stopped");
    terminal.types("echo here >here\n");
    assert_eq!(terminal.folder.line("here"), "here");
    terminal.types("fg\n");
    terminal.shows("quorlock run");
    terminal.types("typed\n");
    assert_eq!(terminal.folder.line("line"), "typed");
    assert_eq!(terminal.code(), "4");
}

async fn a_job_that_stays_stopped_is_ended_with_its_lease() {
    let server = Server::start();
    let mut terminal = Terminal::new(&server);
    // A shell that starts other programs may be between `vfork` and `exec` when it is stopped. Then its child stops
    // before it is another program, and the shell, which waits for the child, does not stop. Shells do not detect this,
    // with or without a lock.
    terminal.types("quorlock run --lease 2s a -- sh -c 'echo $$ >command; exec sleep 1000'\n");
    let command = terminal.folder.pid("command");
    terminal.types("\x1a");
    terminal.shows("Stopped");
    wait_until("the claim is gone", || {
        let is_gone = server.command::<i64>(&["EXISTS", "a"]) == 0;
        assert!(!is_gone || !is_alive(command));
        is_gone
    });
    terminal.types("fg\n");
    assert_eq!(terminal.code(), "76");
}

async fn the_terminal_is_given_back_after_a_kill() {
    let server = Server::start();
    let mut terminal = Terminal::new(&server);
    // The command leaves the terminal without echo.
    terminal.types("quorlock run a -- sh -c 'stty -echo; kill -9 $$'\n");
    assert_eq!(terminal.code(), "137");
    terminal.types("stty -a | grep -o ' -*echo ' >echo\n");
    assert_eq!(terminal.folder.line("echo"), " echo ");
}

async fn in_a_pipeline_the_rest_keeps_the_terminal() {
    let server = Server::start();
    let mut terminal = Terminal::new(&server);
    terminal.types("quorlock run a -- sh -c 'read -r line; echo $line' | sh -c 'read -r piped; echo $piped >piped'\n");
    terminal.types("typed\n");
    assert_eq!(terminal.folder.line("piped"), "typed");
    assert_eq!(terminal.code(), "0");
}
