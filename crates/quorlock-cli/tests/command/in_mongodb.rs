//! Locks in documents of MongoDB.

use quorlock_testbed::mongodb::Mongodb;
use quorlock_testbed::server_tests;

use super::stores::{at, fails, serves_every_command};

server_tests![MONGODB: documents_of_mongodb_serve_every_command];

async fn documents_of_mongodb_serve_every_command() {
    let mut server = Mongodb::start();
    let address = server.address();
    serves_every_command(&address);
    fails(at(&address).args(["init", "--print"]), 64, "no table");
    let with_login = address.replace("://", "://u:s3cret@");
    fails(at(&with_login).args(["list"]), 78, "authSource");
    fails(
        at(&address).args(["list", "--tls-ca", "/dev/null"]),
        78,
        "tlsCAFile",
    );
    server.kill();
    fails(
        at(&address).args(["list"]),
        69,
        "check that the server runs",
    );
}
