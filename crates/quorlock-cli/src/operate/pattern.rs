//! Patterns of Redis for names, which databases do not have: `*`, `?`, `[a-c]`, `[^a]`, and `\` before a literal character.

/// Returns whether a text is one of those that the pattern stands for.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => {
            (0..=text.len()).any(|at| matches(rest, text.get(at..).unwrap_or(b"")))
        }
        [b'?', rest @ ..] => text
            .split_first()
            .is_some_and(|(_, text)| matches(rest, text)),
        [b'[', class @ ..] => {
            let Some((first, text)) = text.split_first() else {
                return false;
            };
            let (is_in, rest) = in_class(class, *first);
            is_in && matches(rest, text)
        }
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => text
            .split_first()
            .is_some_and(|(first, text)| first == literal && matches(rest, text)),
    }
}

/// Returns whether a byte is in a class, and the text after the class's `]`.
fn in_class(class: &[u8], byte: u8) -> (bool, &[u8]) {
    let (mut rest, negated) = match class {
        [b'^', rest @ ..] => (rest, true),
        rest => (rest, false),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [] => break,
            [b']', rest @ ..] => return (found != negated, rest),
            [b'\\', literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
            [from, b'-', to, rest @ ..] => {
                found |= (*from.min(to)..=*from.max(to)).contains(&byte);
                rest
            }
            [literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
        };
    }
    (found != negated, rest)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_what_they_stand_for() {
        for (pattern, text) in [
            ("*", ""),
            ("a*c", "abbc"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[^a]x", "bx"),
            ("\\*", "*"),
            ("app:{*}", "app:{n}"),
        ] {
            assert!(
                matches(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
        for (pattern, text) in [
            ("", "a"),
            ("a*c", "abb"),
            ("?", ""),
            ("[ab]", "c"),
            ("\\*", "a"),
        ] {
            assert!(
                !matches(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
    }
}
