//! The records of the page `docs/src/records.md` are read as the page says.

use quorlock_core::node::record::Record;

const PAGE: &str = include_str!("../../../../docs/src/records.md");

/// Returns the texts of the fences with this name.
fn fences(name: &str) -> Vec<&'static str> {
    let mut fences = Vec::new();
    let mut rest = PAGE;
    let open = format!("\n```{name}\n");
    while let Some(at) = rest.find(&open) {
        let text = &rest[at + open.len()..];
        let end = text.find("```").expect("a fence ends");
        fences.push(&text[..end]);
        rest = &text[end..];
    }
    fences
}

/// The numbers of the writes are on the page too, so each record is written again byte for byte.
#[test]
fn each_record_of_the_page_is_read_and_written_again_as_it_is() {
    let records = fences("record");
    assert!(6 <= records.len(), "{}", records.len());
    for text in records {
        let (record, write) =
            Record::decode(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!(record.encode(write), text);
    }
}

/// Each kind of line is explained, and shown in a record.
#[test]
fn each_kind_of_line_is_on_the_page() {
    let shown: Vec<_> = fences("record")
        .iter()
        .flat_map(|text| text.lines().skip(1))
        .collect();
    for kind in [
        "clock",
        "plain",
        "strange",
        "read-write",
        "writer",
        "reader",
        "lease",
        "version",
        "braced",
        "token",
        "queue",
        "waiter",
        "marker",
        "published",
        "message",
    ] {
        assert!(
            PAGE.contains(&format!("| `{kind} ")) || PAGE.contains(&format!("| `{kind}`")),
            "{kind}"
        );
        assert!(
            shown
                .iter()
                .any(|line| line.split(' ').next() == Some(kind)),
            "{kind}"
        );
    }
}

/// The store of the page "Your own store" is short. It is compiled and run as a documentation test.
#[test]
fn a_store_of_your_own_takes_at_most_120_lines() {
    let page = include_str!("../../../../docs/src/stores.md");
    let (_, code) = page.rsplit_once("```rust\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    assert!(code.contains("impl Store for"));
    let lines = code.lines().filter(|line| !line.starts_with("# ")).count();
    assert!(lines <= 120, "{lines}");
}
