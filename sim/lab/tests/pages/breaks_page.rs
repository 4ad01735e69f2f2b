//! The page of what still breaks. Each of its plans must produce the story and the picture next to it.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use quorlock_sim::report;
use quorlock_sim_check::story;
use quorlock_sim_lab::simulation::run_recorded;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, Plan};

const PAGE: &str = include_str!("../../../../docs/src/breaks.md");

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{begin}"));
    rest.split_once(end).unwrap_or_else(|| panic!("{end}")).0
}

#[test]
fn every_example_gives_its_story_and_its_picture_and_no_two_are_alike() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let mut traces = BTreeSet::new();
    let (mut pictures, mut stale) = (BTreeSet::new(), Vec::new());
    for section in PAGE.split("\n## ").skip(1) {
        let title = section.lines().next().unwrap_or_default();
        let plan: Plan = toml::from_str(between(section, "```toml\n", "```")).unwrap();
        assert_eq!(plan.variant, Variant::Product, "{title}");
        assert_eq!(plan.lock, LockKind::Redlock, "{title}");
        assert!(3 <= plan.nodes.count, "{title}: {} nodes", plan.nodes.count);
        let (run, recording) = run_recorded(&Rc::new(plan));
        assert!(traces.insert(run.trace), "{title}: shown twice");
        let told = story::tell(&run).join("\n") + "\n";
        let picture = between(section, "node had what](", ")");
        let drawn = std::fs::read_to_string(docs.join(picture)).unwrap();
        if told != between(section, "```text\n", "```") || drawn != report::figure(&run, &recording)
        {
            stale.push(title);
        }
        pictures.insert(docs.join(picture));
    }
    assert!(
        stale.is_empty(),
        "docs/regenerate.sh updates these: {stale:?}"
    );
    assert!(3 <= pictures.len(), "{pictures:?}");
    let files = std::fs::read_dir(docs.join("breaks")).unwrap();
    let files: BTreeSet<_> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files, pictures);
}
