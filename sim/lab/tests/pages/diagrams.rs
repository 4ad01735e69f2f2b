//! The diagrams of the book. Each is the picture of the plan next to it.

use std::path::Path;
use std::rc::Rc;

use quorlock_sim::report;
use quorlock_sim_lab::plan_file;
use quorlock_sim_lab::simulation::run_recorded;

#[test]
fn every_diagram_is_the_picture_of_its_plan() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/diagrams");
    let files = std::fs::read_dir(folder).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let plans = paths.filter(|path| path.extension().is_some_and(|kind| kind == "toml"));
    let (mut count, mut stale) = (0, Vec::new());
    for path in plans {
        count += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let plan = plan_file::parse(&path, &text).unwrap();
        let shown = plan_file::picture(&path, &text)
            .unwrap()
            .expect("a picture");
        let (run, recording) = run_recorded(&Rc::new(plan));
        let drawn = std::fs::read_to_string(path.with_extension("svg")).unwrap_or_default();
        if drawn != report::picture(&run, &recording, &shown) {
            stale.push(path);
        }
    }
    assert!(
        stale.is_empty(),
        "docs/regenerate.sh draws these again: look at them, whether the notes are still true: {stale:?}"
    );
    assert!(6 <= count, "{count}");
}
