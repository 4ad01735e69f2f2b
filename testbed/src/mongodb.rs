//! Real servers that speak the protocol of MongoDB: mongo-java-server, which keeps its data in memory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::lone::{Lone, is_lone};
use crate::run;

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
    process: Lone,
    /// The files of its certificate and of the key, if it takes connections under TLS alone.
    tls: Option<[PathBuf; 2]>,
}

is_lone!(Mongodb);

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
        let mut server = Mongodb {
            process: Lone::new(),
            tls,
        };
        server.launch();
        server
    }

    /// Returns the address of its database `locks`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("mongodb://127.0.0.1:{}/locks", self.process.port)
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
        command.push(self.process.port.to_string());
        for file in self.tls.iter().flatten() {
            command.push(file.to_str().expect("UTF-8").to_owned());
        }
        self.process.start_listening(&command);
    }
}
