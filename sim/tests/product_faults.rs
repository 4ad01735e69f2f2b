//! The list of one-line faults of the product: each still applies.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
struct Fault {
    name: String,
    file: String,
    find: String,
    replace: String,
    harmless: Option<String>,
}

#[derive(Deserialize)]
struct Faults {
    fault: Vec<Fault>,
}

#[test]
fn each_fault_stands_once_in_its_file_and_has_a_name_of_its_own() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(top.join("product-faults.toml")).unwrap();
    let faults = toml::from_str::<Faults>(&text).unwrap().fault;
    let mut names = BTreeSet::new();
    for fault in &faults {
        let source = std::fs::read_to_string(top.join("..").join(&fault.file)).unwrap();
        let count = source.matches(&fault.find).count();
        assert_eq!(count, 1, "{} in {}", fault.name, fault.file);
        assert_ne!(fault.find, fault.replace, "{}", fault.name);
        assert!(names.insert(&fault.name), "{}", fault.name);
    }
    assert!(60 <= faults.len(), "{} faults", faults.len());
    let excused = faults.iter().filter(|fault| fault.harmless.is_some());
    assert!(excused.count() <= 6);
}
