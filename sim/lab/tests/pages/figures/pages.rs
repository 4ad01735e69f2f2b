//! Pages, and the places of figures in them: `<!-- figure: file.key -->16.5 %<!-- end -->`, within one line or around
//! several lines.

use std::path::PathBuf;

use crate::figures::results::Figures;

/// Returns every page of the book, and the README.
pub(crate) fn all() -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a page");
        (path, text)
    };
    quorlock_testbed::files::pages()
        .into_iter()
        .map(read)
        .collect()
}

/// Returns the page with these figures in their places, and the errors in its marks. If a figure is missing, its place
/// stays as it is.
pub(crate) fn filled(page: &str, figures: &Figures) -> (String, Vec<String>) {
    let (mut out, mut wrong) = (String::new(), Vec::new());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("<!-- figure: ") {
        let parts = after.split_once(" -->");
        let parts = parts.and_then(|(name, rest)| Some((name, rest.split_once("<!-- end -->")?)));
        let Some((name, (old, after))) = parts else {
            wrong.push("a mark does not end".to_owned());
            return (out + rest, wrong);
        };
        let figure = figures.get(name);
        if figure.is_none() {
            wrong.push(format!("{name} is not in docs/results"));
        }
        let text = match figure {
            None => old.to_owned(),
            // The blank lines make the figure a separate block.
            Some(figure) if old.starts_with('\n') => format!("\n\n{}\n\n", figure.trim()),
            Some(figure) => figure.clone(),
        };
        out += &format!("{before}<!-- figure: {name} -->{text}<!-- end -->");
        rest = after;
    }
    (out + rest, wrong)
}

#[test]
fn figures_stand_in_a_line_or_in_lines_of_their_own() {
    let figures = Figures::from([("a.b".to_owned(), "7".to_owned())]);
    let line = "x <!-- figure: a.b -->6<!-- end --> y";
    assert_eq!(filled(line, &figures), (line.replace('6', "7"), vec![]));
    let lines = "<!-- figure: a.b -->\n\n6\n\n<!-- end -->";
    assert_eq!(filled(lines, &figures), (lines.replace('6', "7"), vec![]));
    for wrong in ["<!-- figure: a.c -->6<!-- end -->", "<!-- figure: a.b -->6"] {
        let (same, why) = filled(wrong, &figures);
        assert_eq!(same, wrong);
        assert_eq!(why.len(), 1);
    }
}
