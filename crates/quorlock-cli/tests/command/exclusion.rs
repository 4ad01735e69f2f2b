//! A hundred commands at once.

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;

use super::support::{Folder, all_end_well, run};

server_tests![
    a_hundred_wrappers_of_one_name_never_overlap,
    what_others_hold_is_left_alone
];

/// A folder cannot be created twice, so a second command inside ends with 99.
const ALONE: &str = "mkdir inside || exit 99
echo $QUORLOCK_FENCING_TOKEN >>tokens
rmdir inside";

async fn a_hundred_wrappers_of_one_name_never_overlap() {
    let server = Server::start();
    let folder = all_end_well(100, &server, &["--lease", "20s", "a"], ALONE);
    let tokens = folder.read("tokens");
    let tokens: Vec<u64> = tokens.lines().map(|token| token.parse().unwrap()).collect();
    assert_eq!(tokens.len(), 100);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}

async fn what_others_hold_is_left_alone() {
    let server = Server::start();
    let folder = Folder::new();
    let inside = format!(
        "{q} run b -- sh -c 'exit 4'; echo $? >code; {q} run -n a -- true; echo $? >>code",
        q = env!("CARGO_BIN_EXE_quorlock")
    );
    let mut command = run(&server, &["a"], &inside);
    let code = command.current_dir(folder.path()).status().unwrap().code();
    assert_eq!((code, folder.read("code").as_str()), (Some(0), "4\n75\n"));
}
