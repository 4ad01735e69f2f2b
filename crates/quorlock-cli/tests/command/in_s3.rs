//! Locks in objects of S3.

use quorlock_testbed::s3::S3;
use quorlock_testbed::server_tests;

use super::stores::{at, fails, serves_every_command};

server_tests![S3: objects_of_s3_serve_every_command];

async fn objects_of_s3_serve_every_command() {
    let mut server = S3::start();
    let address = server.address();
    serves_every_command(&address);
    fails(at(&address).args(["init", "--print"]), 64, "no table");
    let missing = address.replace("locks?", "missing?");
    fails(at(&missing).args(["list"]), 78, "no such bucket");
    let mut without = at(&address);
    let without = without.env("AWS_SECRET_ACCESS_KEY", "wrong");
    fails(without.arg("list"), 78, "AWS_SECRET_ACCESS_KEY");
    fails(
        at(&address).args(["list", "--tls-ca", "/dev/null"]),
        78,
        "trusts the authorities of the operating system",
    );
    server.kill();
    fails(
        at(&address).args(["list"]),
        69,
        "check that the server runs",
    );
}
