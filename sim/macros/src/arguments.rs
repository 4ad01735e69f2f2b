//! The arguments of the attribute.

use proc_macro2::{Span, TokenStream};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprArray, ExprLit, Ident, Lit, LitStr, Result, Token};

/// The arguments of the attribute. Missing ones get the defaults of the library.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) seeds: Option<u64>,
    pub(crate) clients: Option<u16>,
    pub(crate) nodes: Option<u16>,
    pub(crate) faults: Option<LitStr>,
    pub(crate) outages: Outages,
    pub(crate) duration_millis: Option<u64>,
    pub(crate) world: Option<Expr>,
    pub(crate) finally: Option<Expr>,
    pub(crate) properties: Vec<LitStr>,
    pub(crate) check_determinism: bool,
}

/// Whether resources have outages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Outages {
    #[default]
    Drawn,
    None,
}

/// One argument: `key = value`.
struct Argument {
    key: Ident,
    value: Expr,
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key: Ident = input.parse()?;
        if !KEYS.contains(&key.to_string().as_str()) {
            let known = KEYS.join("`, `");
            let why = format!("unknown argument `{key}`: there are `{known}`");
            return Err(Error::new(key.span(), why));
        }
        input.parse::<Token![=]>()?;
        let value = input.parse()?;
        Ok(Argument { key, value })
    }
}

const KEYS: [&str; 10] = [
    "seeds",
    "clients",
    "nodes",
    "faults",
    "outages",
    "duration",
    "world",
    "finally",
    "properties",
    "check_determinism",
];

impl Arguments {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let list = Punctuated::<Argument, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut arguments = Arguments::default();
        let mut seen: Vec<String> = Vec::new();
        for Argument { key, value } in list {
            let name = key.to_string();
            if seen.contains(&name) {
                let why = format!("`{name}` is there twice");
                return Err(Error::new(key.span(), why));
            }
            arguments.take(&name, value)?;
            seen.push(name);
        }
        Ok(arguments)
    }

    fn take(&mut self, key: &str, value: Expr) -> Result<()> {
        match key {
            "seeds" => self.seeds = Some(number(&value, 1, u64::MAX)?),
            "clients" => self.clients = Some(small(&value, 60)?),
            "nodes" => self.nodes = Some(small(&value, 15)?),
            "faults" => self.faults = Some(text(&value)?),
            "outages" => self.outages = outages(&text(&value)?)?,
            "duration" => self.duration_millis = Some(millis(&text(&value)?)?),
            "world" => self.world = Some(value),
            "finally" => self.finally = Some(value),
            "check_determinism" => self.check_determinism = truth(&value)?,
            _ => self.properties = texts(&value)?,
        }
        Ok(())
    }
}

fn literal(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

fn number(value: &Expr, min: u64, max: u64) -> Result<u64> {
    let Some(Lit::Int(number)) = literal(value) else {
        return Err(Error::new(value.span(), "expected a number, such as `3`"));
    };
    let read: u64 = number.base10_parse()?;
    if read < min || max < read {
        let why = match max {
            u64::MAX => format!("{read} is too few: it must be at least {min}"),
            max => format!("{read} is not between {min} and {max}"),
        };
        return Err(Error::new(number.span(), why));
    }
    Ok(read)
}

fn small(value: &Expr, max: u16) -> Result<u16> {
    let read = number(value, 1, u64::from(max))?;
    u16::try_from(read).map_err(|error| Error::new(value.span(), error))
}

fn text(value: &Expr) -> Result<LitStr> {
    match literal(value) {
        Some(Lit::Str(text)) => Ok(text.clone()),
        _ => Err(Error::new(
            value.span(),
            "expected a string, such as `\"inside\"`",
        )),
    }
}

fn truth(value: &Expr) -> Result<bool> {
    match literal(value) {
        Some(Lit::Bool(truth)) => Ok(truth.value),
        _ => Err(Error::new(value.span(), "expected `true` or `false`")),
    }
}

fn texts(value: &Expr) -> Result<Vec<LitStr>> {
    match value {
        Expr::Array(ExprArray { elems, .. }) => elems.iter().map(text).collect(),
        _ => Err(Error::new(
            value.span(),
            "expected a list of names, such as `[\"no piece is sold twice\"]`",
        )),
    }
}

fn outages(text: &LitStr) -> Result<Outages> {
    match text.value().as_str() {
        "drawn" => Ok(Outages::Drawn),
        "none" => Ok(Outages::None),
        _ => Err(wrong(text.span(), "expected `\"drawn\"` or `\"none\"`")),
    }
}

fn wrong(span: Span, why: &str) -> Error {
    Error::new(span, why)
}

/// Parses `"500ms"`, `"5s"` or `"2min"`, in milliseconds.
fn millis(text: &LitStr) -> Result<u64> {
    let value = text.value();
    let units = [("ms", 1), ("min", 60_000), ("s", 1_000)];
    let read = units.iter().find_map(|(unit, millis)| {
        let number: u64 = value.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(*millis)
    });
    let read = read.filter(|millis| (1..=86_400_000).contains(millis));
    let why = "expected a length of simulated time between 1 ms and a day, such as `\"5s\"`";
    read.ok_or_else(|| wrong(text.span(), why))
}
