//! Real servers that speak the protocol of MongoDB: mongo-java-server, which keeps its data in memory.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::guardian::Guardian;
use crate::port::free_port;
use crate::run;
use crate::wait::within;

/// The longest time that a server may take until it answers, on a loaded machine.
const UP: Duration = Duration::from_secs(60);

/// What Maven makes of the project in `testbed/mongodb`.
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/mongodb/target");

/// Returns why tests that need a server are ignored; `None` if one is built or required.
#[must_use]
pub fn missing() -> Option<&'static str> {
    let reason = "needs mongo-java-server: run tests/stores.sh";
    let is_built = Path::new(BUILT).join("classpath").exists();
    run::missing("QUORLOCK_REQUIRE_MONGODB", is_built, reason)
}

/// A server that only its owner uses, on a free port of the loopback interface. When this value is dropped, or when this process is
/// killed, the server ends. All that it has is lost whenever it ends.
#[derive(Debug)]
pub struct Mongodb {
    port: u16,
    /// The files of its certificate and of the key, if it takes connections under TLS alone.
    tls: Option<[PathBuf; 2]>,
    running: Option<Guardian>,
    folder: TempDir,
}

impl Mongodb {
    /// Starts a server.
    ///
    /// # Panics
    /// Panics if it is not built, or does not come up.
    #[must_use]
    pub fn start() -> Mongodb {
        Mongodb::start_with(None)
    }

    /// Starts a server that takes connections under TLS alone, with a certificate and a key in files of PEM.
    ///
    /// # Panics
    /// Panics if it is not built, or does not come up.
    #[must_use]
    pub fn encrypted(certificate: &Path, key: &Path) -> Mongodb {
        Mongodb::start_with(Some([certificate, key].map(Path::to_owned)))
    }

    fn start_with(tls: Option<[PathBuf; 2]>) -> Mongodb {
        let folder = tempfile::Builder::new().prefix("quorlock-").tempdir();
        let mut server = Mongodb {
            port: free_port().expect("a free port"),
            tls,
            running: None,
            folder: folder.expect("a temporary folder"),
        };
        server.launch();
        server
    }

    /// Returns the address of its database `locks`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("mongodb://127.0.0.1:{}/locks", self.port)
    }

    /// Returns the port of the server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server, and waits until it takes connections.
    ///
    /// # Panics
    /// Panics if it does not come up. The message has its output.
    pub fn launch(&mut self) {
        let built = Path::new(BUILT);
        let libraries = fs::read_to_string(built.join("classpath"));
        let libraries = libraries.expect("mongo-java-server is built (tests/stores.sh)");
        let classes = format!("{}/classes:{}", built.display(), libraries.trim());
        let machine = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
        let mut command = vec!["java".to_owned()];
        command.extend(machine.map(String::from));
        command.extend(["-cp".to_owned(), classes, "Server".to_owned()]);
        command.push(self.port.to_string());
        for file in self.tls.iter().flatten() {
            command.push(file.to_str().expect("UTF-8").to_owned());
        }
        self.running = Some(Guardian::start(self.folder.path(), &command, &[]).expect("it starts"));
        let is_up = within(UP, || TcpStream::connect(("127.0.0.1", self.port)).ok());
        let output = || fs::read_to_string(self.folder.path().join("output")).unwrap_or_default();
        assert!(is_up.is_some(), "the server does not start: {}", output());
    }

    /// Ends the server at once, as a crash does.
    pub fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }

    /// Stops the server, until [`Mongodb::go_on`].
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a stopped server go on.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        self.running.as_ref().expect("it runs").signal(signal);
    }
}
