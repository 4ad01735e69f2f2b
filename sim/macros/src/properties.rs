//! Finds the properties that a function states, by reading its tokens. Otherwise, a property that no run reaches would
//! stay unknown.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Lit, LitStr};

const MACROS: [&str; 3] = ["always", "sometimes", "eventually"];

/// Returns the names of the properties that these tokens state, in order.
pub(crate) fn stated(tokens: TokenStream) -> Vec<LitStr> {
    let mut found = Vec::new();
    look(tokens, &mut found);
    found
}

fn look(tokens: TokenStream, found: &mut Vec<LitStr>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            continue;
        };
        let before = |back: usize| place.checked_sub(back).and_then(|at| tokens.get(at));
        let is_stated = match (before(2), before(1)) {
            (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(mark))) => {
                mark.as_char() == '!' && MACROS.iter().any(|known| name == known)
            }
            _ => false,
        };
        if is_stated && group.delimiter() != Delimiter::None {
            found.extend(name(group.stream()));
        }
        look(group.stream(), found);
    }
}

/// Returns the first argument that is only a text.
fn name(arguments: TokenStream) -> Option<LitStr> {
    let tokens: Vec<TokenTree> = arguments.into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
    let mut parts = tokens.split(is_comma).skip(1);
    parts.find_map(|part| match part {
        [TokenTree::Literal(literal)] => match Lit::new(literal.clone()) {
            Lit::Str(text) => Some(text),
            _ => None,
        },
        _ => None,
    })
}
