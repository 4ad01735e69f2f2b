//! Real servers that speak the protocol of S3: versitygw, over a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::lone::{Lone, is_lone};
use crate::run::{self, installed, run};

const SERVER: &str = "versitygw";

/// Returns why tests that need a server are ignored; `None` if one is installed or required.
#[must_use]
pub fn missing() -> Option<&'static str> {
    let reason = "needs versitygw: run tests/stores.sh";
    run::missing("QUORLOCK_REQUIRE_S3", installed(SERVER).is_some(), reason)
}

/// A server of S3 that only its owner uses, on a free port of the loopback interface. When this value is dropped, or when this
/// process is killed, the server ends and its folder is removed.
#[derive(Debug)]
pub struct S3 {
    process: Lone,
    /// The files of its certificate and of the key, if it takes connections under TLS alone.
    tls: Option<[PathBuf; 2]>,
}

is_lone!(S3);

impl S3 {
    /// The keys of the only user, as the variables of the environment that tools of AWS read.
    pub const KEYS: [(&str, &str); 2] = [
        ("AWS_ACCESS_KEY_ID", "locks"),
        ("AWS_SECRET_ACCESS_KEY", "right-secret"),
    ];

    /// Starts a server with an empty bucket, `locks`.
    ///
    /// # Panics
    /// Panics if versitygw is not installed, or the server does not come up.
    #[must_use]
    pub fn start() -> S3 {
        S3::start_with(None)
    }

    /// Starts a server that takes connections under TLS alone, with a certificate and a key in files of PEM.
    ///
    /// # Panics
    /// Panics if versitygw is not installed, or the server does not come up.
    #[must_use]
    pub fn encrypted(certificate: &Path, key: &Path) -> S3 {
        S3::start_with(Some([certificate, key].map(Path::to_owned)))
    }

    fn start_with(tls: Option<[PathBuf; 2]>) -> S3 {
        let mut server = S3 {
            process: Lone::new(),
            tls,
        };
        // A folder of the server is a bucket.
        fs::create_dir_all(server.path("data").join("locks")).expect("a folder");
        server.launch();
        server
    }

    /// Returns the address of the bucket.
    #[must_use]
    pub fn address(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!(
            "s3://locks?endpoint={scheme}://127.0.0.1:{}",
            self.process.port
        )
    }

    /// Returns the file that has the data of an object of the bucket.
    #[must_use]
    pub fn object(&self, name: &str) -> PathBuf {
        self.path("data").join("locks").join(name)
    }

    /// Makes an object of this text. What the server knows of it beside that, it has from another one.
    ///
    /// # Panics
    /// Panics if there is no other one.
    pub fn forge(&self, name: &str, other: &str, text: &str) {
        // The version of an object is an attribute of its file.
        copy(&self.object(other), &self.object(name));
        fs::write(self.object(name), text).expect("a file");
    }

    /// Starts the server, and waits until it takes connections.
    ///
    /// # Panics
    /// Panics if it does not come up. The message has its output.
    pub fn launch(&mut self) {
        let program = installed(SERVER).expect("versitygw is installed (tests/stores.sh)");
        let [(_, access), (_, secret)] = Self::KEYS;
        let port = format!("127.0.0.1:{}", self.process.port);
        let data = self.path("data");
        let mut words = vec![program.to_str().expect("UTF-8")];
        words.extend(["--port", &port, "--access", access, "--secret", secret]);
        if let Some([certificate, key]) = &self.tls {
            let [certificate, key] = [certificate, key].map(|file| file.to_str().expect("UTF-8"));
            words.extend(["--cert", certificate, "--key", key]);
        }
        // Without it, each request would need a connection of its own.
        words.extend(["--keep-alive", "--quiet", "posix"]);
        words.push(data.to_str().expect("UTF-8"));
        let command: Vec<String> = words.into_iter().map(String::from).collect();
        self.process.start_listening(&command);
    }

    /// Copies the data of the server, which is ended and started again.
    ///
    /// # Panics
    /// Panics if they cannot be copied.
    pub fn keep_copy(&mut self) {
        self.kill();
        copy(&self.path("data"), &self.path("copy"));
        self.launch();
    }

    /// Ends the server, and starts it again with the data of the copy.
    ///
    /// # Panics
    /// Panics if there is no copy.
    pub fn return_to_copy(&mut self) {
        self.kill();
        fs::remove_dir_all(self.path("data")).expect("a folder");
        copy(&self.path("copy"), &self.path("data"));
        self.launch();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.process.folder().join(name)
    }
}

/// Copies a file or a folder, with its attributes.
fn copy(from: &Path, to: &Path) {
    let [from, to] = [from, to].map(|path| path.to_str().expect("UTF-8").to_owned());
    run(&["cp".to_owned(), "-a".to_owned(), from, to]);
}
