//! Real MariaDB servers, which speak the protocol of MySQL.

use std::fs;
use std::path::Path;

use crate::lone::{Lone, is_lone};
use crate::run::{self, is_root, run, status_of};

const SERVER: &str = "/usr/sbin/mariadbd";

/// Returns why tests that need a server are ignored; `None` if one is installed or required.
#[must_use]
pub fn missing() -> Option<&'static str> {
    let reason = "needs MariaDB: run tests/stores.sh";
    run::missing("QUORLOCK_REQUIRE_MYSQL", Path::new(SERVER).exists(), reason)
}

/// The setting of a server that takes connections over TCP under TLS alone.
const ENCRYPTED: &str = "--require-secure-transport=1";

/// What is executed whenever a server starts. The user may do everything, as the one of many an application may.
const USERS: &str = "\
CREATE DATABASE IF NOT EXISTS locks;
CREATE USER IF NOT EXISTS locks@'127.0.0.1' IDENTIFIED BY 'right';
GRANT ALL ON *.* TO locks@'127.0.0.1' WITH GRANT OPTION;
";

/// A MariaDB server that only its owner uses, on a free port of the loopback interface. When this value is dropped, or when this
/// process is killed, the server ends and its folder is removed.
#[derive(Debug)]
pub struct Mysql {
    process: Lone,
    settings: Vec<String>,
}

is_lone!(Mysql);

impl Mysql {
    /// The password of the user `locks`.
    pub const PASSWORD: &str = "right";

    /// Makes a database and starts its server, which may have replicas.
    ///
    /// # Panics
    /// Panics if MariaDB is not installed, or the server does not come up.
    #[must_use]
    pub fn start() -> Mysql {
        Mysql::start_with(&["--server-id=1", "--log-bin=log", "--sync-binlog=1"])
    }

    /// The same with these settings, and otherwise those that every server has.
    ///
    /// # Panics
    /// Panics if MariaDB is not installed, or the server does not come up.
    #[must_use]
    pub fn start_with(settings: &[&str]) -> Mysql {
        let mut server = Mysql {
            process: Lone::new(),
            settings: settings.iter().map(ToString::to_string).collect(),
        };
        fs::write(server.process.path("users"), USERS).expect("a file");
        let words = ["--auth-root-authentication-method=normal", "--skip-test-db"];
        run(&server.command("mariadb-install-db", &words));
        server.launch();
        server
    }

    /// Makes a server that takes connections over TCP under TLS alone, with the files of a certificate, of its key and of the authority of
    /// its clients, in PEM.
    ///
    /// # Panics
    /// Panics if MariaDB is not installed, or the server does not come up.
    #[must_use]
    pub fn encrypted(certificate: &Path, key: &Path, authority: &Path) -> Mysql {
        let files = [("cert", certificate), ("key", key), ("ca", authority)];
        let [certificate, key, authority] =
            files.map(|(what, path)| format!("--ssl-{what}={}", path.display()));
        Mysql::start_with(&[&certificate, &key, &authority, ENCRYPTED])
    }

    /// Makes a replica of this server and starts it.
    ///
    /// # Panics
    /// Panics if the replica does not come up.
    #[must_use]
    pub fn replica(&self) -> Mysql {
        let replica = Mysql::start_with(&["--server-id=2", "--read-only=1"]);
        let (port, password) = (self.process.port, Self::PASSWORD);
        replica.execute(&format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'locks', \
             MASTER_PASSWORD = '{password}', MASTER_USE_GTID = slave_pos; START SLAVE"
        ));
        replica
    }

    /// Returns the address of the server, with its password.
    #[must_use]
    pub fn address(&self) -> String {
        let (password, port) = (Self::PASSWORD, self.process.port);
        format!("mysql://locks:{password}@127.0.0.1:{port}/locks")
    }

    /// Returns the path of the socket of the server.
    #[must_use]
    pub fn socket(&self) -> String {
        self.process.path("socket")
    }

    /// Starts the server, and waits until it takes connections.
    ///
    /// # Panics
    /// Panics if it does not come up. The message has its output.
    pub fn launch(&mut self) {
        let mut words = vec![format!("--port={}", self.process.port)];
        words.push(format!("--socket={}", self.socket()));
        words.push(format!("--init-file={}", self.process.path("users")));
        words.extend(["--bind-address=127.0.0.1", "--skip-name-resolve"].map(String::from));
        words.push("--innodb-buffer-pool-size=16M".to_owned());
        words.extend(self.settings.iter().cloned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let command = self.command(SERVER, &words);
        let ready = self.client("DO 0");
        self.process
            .start(&command, || status_of(&ready).is_ok_and(|is_up| is_up));
    }

    /// Makes this replica a primary.
    ///
    /// # Panics
    /// Panics if it is none.
    pub fn promote(&self) {
        self.execute("STOP SLAVE; SET GLOBAL read_only = 0");
    }

    /// Executes statements.
    ///
    /// # Panics
    /// Panics if one fails.
    pub fn execute(&self, sql: &str) {
        run(&self.client(sql));
    }

    /// Returns a command line with this server's folder. The files of the machine's own server are not read.
    fn command(&self, program: &str, arguments: &[&str]) -> Vec<String> {
        let mut words = vec![program.to_owned(), "--no-defaults".to_owned()];
        words.push(format!("--datadir={}", self.process.path("data")));
        words.push("--innodb-log-file-size=4M".to_owned());
        // A server that starts removes the temporary tables of others in the same folder.
        words.push(format!("--tmpdir={}", self.process.folder().display()));
        if is_root() {
            words.push("--user=root".to_owned());
        }
        words.extend(arguments.iter().map(|word| (*word).to_owned()));
        words
    }

    fn client(&self, sql: &str) -> Vec<String> {
        let port = self.process.port.to_string();
        let password = format!("--password={}", Self::PASSWORD);
        let words = [
            "mariadb",
            "--no-defaults",
            "--host=127.0.0.1",
            "--port",
            &port,
            "--user=locks",
            &password,
            "--database=locks",
            "--execute",
            sql,
        ];
        let mut words = words.map(String::from).to_vec();
        if self.settings.iter().any(|setting| setting == ENCRYPTED) {
            words.push("--ssl".to_owned());
        }
        words
    }
}
