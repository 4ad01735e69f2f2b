//! `[[lock]]` in files of studies and deployments: what is different from the rest of the file, for each lock.

use toml::Spanned;
use toml::de::DeValue;

use crate::plan_file::document::{self, DocumentPart, Misfit};

/// Returns the tables of a list of `[[lock]]`, each of which has a name.
pub(super) fn items<'a>(
    text: &str,
    list: Option<Spanned<DeValue<'a>>>,
) -> Result<Vec<DocumentPart<'a>>, Misfit> {
    let Some(list) = list else {
        return Ok(Vec::new());
    };
    let span = list.span();
    let wrong = || Misfit::new(span.clone(), "write [[lock]] for each lock");
    let DeValue::Array(items) = list.into_inner() else {
        return Err(wrong());
    };
    let tables = items.into_iter().map(|item| {
        let span = item.span();
        let DeValue::Table(table) = item.into_inner() else {
            return Err(wrong());
        };
        let name = table.get("name").map(Spanned::get_ref);
        match matches!(name, Some(DeValue::String(_))) {
            true => Ok(table),
            false => {
                let end = document::end_of_own(text, &span, &table);
                let why = "a [[lock]] has a text as its `name`";
                Err(Misfit::new(end..end, why))
            }
        }
    });
    tables.collect()
}

/// Changes a document to that of a lock.
pub(super) fn with_changes<'a>(
    mut document: DocumentPart<'a>,
    mut part: DocumentPart<'a>,
) -> Result<DocumentPart<'a>, Misfit> {
    for key in ["name", "expect"] {
        part.remove(key);
    }
    document::merge(&mut document, part)?;
    Ok(document)
}
