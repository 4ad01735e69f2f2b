//! Tests that the compiler underlines only the wrong part of a test, with the message of the attribute.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Returns the compiled attribute: the library that was built last beside this test.
fn library() -> PathBuf {
    let folder = env::current_exe().expect("a step of the test");
    let folder = folder.parent().expect("a step of the test");
    let is_library = |path: &PathBuf| {
        let name = path
            .file_name()
            .expect("a step of the test")
            .to_string_lossy();
        name.contains("quorlock_sim_macros-") && name.ends_with(env::consts::DLL_SUFFIX)
    };
    let built = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified());
    let entries = fs::read_dir(folder).expect("a step of the test");
    let paths = entries
        .map(|entry| entry.expect("a step of the test").path())
        .filter(is_library);
    paths
        .max_by_key(|path| built(path).unwrap_or(SystemTime::UNIX_EPOCH))
        .expect("cargo builds the library before its tests")
}

/// Returns the first error of a source, as the compiler prints it: the message, and the source with the underlined part.
fn error_of(name: &str, source: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{name}.rs"));
    fs::write(&path, source).expect("a step of the test");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let ran = Command::new(rustc)
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=metadata",
            "--test",
        ])
        .arg("--extern")
        .arg(format!("quorlock_sim={}", library().display()))
        .arg("--out-dir")
        .arg(folder)
        .arg(&path)
        .output()
        .expect("a step of the test");
    assert!(!ran.status.success(), "it compiles: {source}");
    String::from_utf8(ran.stderr).expect("a step of the test")
}

/// A name, the arguments of the attribute, the function, what is said, and what is underlined.
type Wrong = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const WRONG: [Wrong; 7] = [
    (
        "unknown",
        "seed = 3",
        "async fn sells(ctx: Context) {}",
        "unknown argument `seed`",
        "seed",
    ),
    (
        "range",
        "seeds = 5, clients = 61",
        "async fn sells(ctx: Context) {}",
        "61 is not between 1 and 60",
        "61",
    ),
    (
        "twice",
        "seeds = 1, seeds = 2",
        "async fn sells(ctx: Context) {}",
        "`seeds` is there twice",
        "seeds",
    ),
    (
        "text",
        "faults = inside",
        "async fn sells(ctx: Context) {}",
        "\"inside\"",
        "inside",
    ),
    ("waits", "", "fn sells(ctx: Context) {}", "`async fn`", "fn"),
    (
        "returns",
        "",
        "async fn sells(ctx: Context) -> u8 { 3 }",
        "a client returns nothing",
        "u8",
    ),
    (
        "world",
        "world = Shop::open",
        "async fn sells(ctx: Context) {}",
        "world",
        "Shop::open",
    ),
];

#[test]
fn a_wrong_part_is_underlined_with_what_to_write() {
    for (name, attribute, item, says, underlined) in WRONG {
        let source = format!("#[quorlock_sim::test({attribute})]\n{item}\n");
        let error = error_of(name, &source);
        let first = error.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("error: ") && first.contains(says),
            "{error}"
        );
        let marks = error
            .lines()
            .find(|line| line.contains('^'))
            .expect("a step of the test");
        let place = marks.find('^').expect("a step of the test");
        let length = marks.matches('^').count();
        let shown = error
            .lines()
            .take_while(|line| *line != marks)
            .last()
            .expect("a step of the test");
        assert_eq!(&shown[place..place + length], underlined, "{error}");
        // Of two equal arguments, the second one is underlined.
        if name == "twice" {
            assert_eq!(shown.rfind(underlined), Some(place), "{error}");
        }
    }
}
