//! The gallery: the index of pages that show the cases of scenarios.

use std::fmt::Write as _;

use quorlock_sim::report::escaped;

const STYLE: &str = include_str!("gallery/index.css");
const SCRIPT: &str = include_str!("gallery/index.js");

/// A case of the gallery.
#[derive(Clone, PartialEq, Debug)]
pub struct Exhibit {
    /// The identifier of the scenario.
    pub id: String,
    /// The title of the scenario.
    pub title: String,
    /// The reason for the verdict.
    pub reason: String,
    /// The name of the case.
    pub case: String,
    /// The expected verdict.
    pub expected: String,
    /// Whether the result was as expected, in words.
    pub verdict: String,
    /// Whether the result was not as expected.
    pub is_wrong: bool,
    /// The number of runs.
    pub runs: u64,
    /// The page of the case.
    pub page: Result<Page, NoPage>,
}

/// The page of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The name of its file.
    pub file: String,
    /// The seed of the run that it shows.
    pub seed: u64,
}

/// The reason why a case has no page: its messages are bytes, which a page does not show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoPage;

/// Returns the name of the file of a case.
#[must_use]
pub fn file_name(id: &str, case: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '-',
    };
    let words: String = case.chars().map(plain).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    format!("{id}-{}.html", words.join("-"))
}

/// Returns the index as HTML, with the cases in their order.
#[must_use]
pub fn index(exhibits: &[Exhibit]) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Scenarios of Quorlock's simulator</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>Scenarios of Quorlock's simulator</h1>\n\
         <p>Each page shows one run over time: what clients believed, what nodes stored, every message, and the violation, if there is one. \
         It shows the first seed that breaks what the case expects, otherwise seed 0.</p>\n\
         <p><label>Show <input id=\"filter\" type=\"search\" placeholder=\"id, title, case or verdict\"></label> \
         <span id=\"count\"></span></p>\n</header>\n<main>\n"
    );
    for of_scenario in exhibits.chunk_by(|one, other| one.id == other.id) {
        scenario(&mut out, of_scenario);
    }
    let _ = write!(
        out,
        "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    out
}

fn scenario(out: &mut String, cases: &[Exhibit]) {
    let Some(first) = cases.first() else { return };
    let _ = write!(
        out,
        "<section>\n<h2><span class=\"id\">{}</span> {}</h2>\n<p class=\"reason\">{}</p>\n<table>\n\
         <thead><tr><th>case</th><th>expected</th><th>result</th><th>runs</th><th>seed shown</th></tr></thead>\n<tbody>\n",
        escaped(&first.id),
        escaped(&first.title),
        escaped(&first.reason)
    );
    for case in cases {
        let (name, seed) = match &case.page {
            Ok(Page { file, seed }) => (
                format!("<a href=\"{file}\">{}</a>", escaped(&case.case)),
                seed.to_string(),
            ),
            Err(NoPage) => (escaped(&case.case), "no page: sockets".to_owned()),
        };
        let class = match (case.is_wrong, case.expected.starts_with("breaks")) {
            (true, _) => "wrong",
            (false, true) => "breaks",
            (false, false) => "holds",
        };
        let _ = writeln!(
            out,
            "<tr><td>{name}</td><td><span class=\"{class}\">{}</span></td><td>{}</td><td>{}</td><td>{seed}</td></tr>",
            escaped(&case.expected),
            escaped(&case.verdict),
            case.runs
        );
    }
    out.push_str("</tbody>\n</table>\n</section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_have_only_plain_characters() {
        assert_eq!(
            file_name("S9", "product, one node"),
            "S9-product-one-node.html"
        );
        assert_eq!(file_name("V-A", "a/../b"), "V-A-a-b.html");
    }
}
