//! Checks that each one-line fault of the product still applies, and that the page describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[expect(dead_code, reason = "the command writes what is only read here")]
#[path = "../../examples/product_faults/list.rs"]
mod list;
#[path = "../../examples/product_faults/splice.rs"]
mod splice;

use splice::{Change, splice};

type Failure = Box<dyn std::error::Error>;

fn source(file: &str) -> String {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(top.join(file)).expect("a file of the repository")
}

#[test]
fn each_fault_stands_once_in_a_function_and_has_a_name_of_its_own() {
    let faults = list::read().unwrap();
    let mut names = BTreeSet::new();
    let mut files: BTreeMap<&str, Vec<Change<'_>>> = BTreeMap::new();
    for (number, fault) in faults.iter().enumerate() {
        let count = source(&fault.file).matches(&fault.find).count();
        assert_eq!(count, 1, "{} in {}", fault.name, fault.file);
        assert_ne!(fault.find, fault.replace, "{}", fault.name);
        assert!(names.insert(&fault.name), "{}", fault.name);
        files.entry(&fault.file).or_default().push(Change {
            number,
            find: &fault.find,
            replace: &fault.replace,
        });
    }
    for (file, changes) in files {
        let spliced = splice(&source(file), &changes, "fault()").unwrap();
        for change in changes {
            assert!(
                spliced.contains(&format!("\n{} => {{", change.number)),
                "{file}"
            );
        }
    }
    assert!(60 <= faults.len(), "{} faults", faults.len());
    let excused = faults.iter().filter(|fault| fault.harmless.is_some());
    assert!(excused.count() <= 6);
}

#[test]
fn the_page_tells_what_notices_each_fault() {
    let faults = list::read().unwrap();
    let told = "run the example product_faults with --record";
    let page = std::fs::read_to_string(list::page()).unwrap();
    let (before, after) = list::around_table(&page).unwrap();
    let found = &page[before.len()..page.len() - after.len()];
    assert_eq!(found, list::table(&faults), "{told}");
}

#[test]
fn a_function_with_faults_has_its_body_once_for_each() {
    let source = "const fn one() -> u8 { // {\n    1 + 1\n}\nfn two() { '{'; }\n";
    let change = |number, replace| Change {
        number,
        find: "1 + 1",
        replace,
    };
    let spliced = splice(source, &[change(3, "1 + 2"), change(4, "1")], "chosen()").unwrap();
    assert_eq!(
        spliced,
        " fn one() -> u8 { match chosen() {\n3 => { // {\n    1 + 2\n}\n4 => { // {\n    1\n}\n_ => { // {\n    1 + 1\n}\n} }\nfn two() { '{'; }\n"
    );
    for (find, wrong) in [
        ("3", "not once"),
        ("()", "not once"),
        ("const fn one", "not in one"),
    ] {
        let change = Change {
            number: 0,
            find,
            replace: "x",
        };
        let error = splice(source, &[change], "chosen()").unwrap_err();
        assert!(error.contains(wrong), "{error}");
    }
}
