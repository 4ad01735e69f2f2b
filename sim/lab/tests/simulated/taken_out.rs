//! Checks that the patches that revert fixes of the product still apply. With each of them, the simulator finds the bug.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn patches() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("faults");
    let files = std::fs::read_dir(folder).expect("sim/lab/faults");
    let paths = files.map(|file| file.expect("a file").path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "patch"))
        .collect()
}

#[test]
fn each_mend_can_be_taken_out_and_says_what_finds_that() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let patches = patches();
    assert!(!patches.is_empty());
    for path in patches {
        let text = std::fs::read_to_string(&path).expect("a patch");
        assert!(text.contains("\nFound by: "), "{}", path.display());
        let patch = std::fs::File::open(&path).expect("a patch");
        let output = Command::new("patch")
            .args(["--dry-run", "--force", "--fuzz=0", "-p1"])
            .current_dir(&top)
            .stdin(Stdio::from(patch))
            .output()
            .expect("patch(1)");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {told}", path.display());
    }
}
