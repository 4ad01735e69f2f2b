//! The examples, started by the commands of the README.

use std::process::{Command, Output};
use std::thread;

use quorlock_tests::page::{block, masked};

const README: &str = include_str!("../../../README.md");

/// The command of each example, and a line that the example prints if it works.
const EXAMPLES: [(&str, &str); 5] = [
    (
        "quick_start",
        "Bob tries once: others hold it. That is an answer, not an error",
    ),
    ("red_lock", "two of five are no majority"),
    ("multi_lock", "not one was overwritten"),
    ("fenced_write", "the store refused it: token"),
    ("lost_lock", "they never both held it"),
];

/// Runs an example as a reader of the README does, in the folder of the checkout. All that the example depends on is
/// optimized as in tests, so that it need not be compiled again.
fn cargo_run(example: &str) -> Output {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--example", example]);
    command.args(["--config", "profile.dev.package.quorlock.opt-level=0"]);
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    // Cargo names the package to a test that it runs. The build script of `ring` would run again for another name, and what depends on it
    // would be compiled again in the same place, under tests that are running, here and after the next command from outside.
    for (variable, _) in std::env::vars_os() {
        let text = variable.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(variable);
        }
    }
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    command.output().expect("cargo runs")
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_example_tells_without_a_server_what_the_readme_says_of_it() {
    assert!(README.contains("```sh\ncargo run --example red_lock\n```"));
    let running = EXAMPLES.map(|(name, line)| {
        assert!(README.contains(name), "{name} is not in the README");
        (name, line, thread::spawn(move || printed(&cargo_run(name))))
    });
    for (name, line, story) in running {
        let story = story.join().expect("the example succeeds");
        assert!(story.contains(line), "{name}:\n{story}");
        if name == "red_lock" {
            let shown = block(README, "text red_lock");
            let (shown, _) = shown
                .split_once("  ...")
                .expect("dots after the shown lines");
            assert!(masked(&story).starts_with(&masked(shown)), "{story}");
        }
    }
}
