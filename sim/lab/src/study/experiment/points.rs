//! The points of a study: all combinations of settings, or points that fill the space of some distributions.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::axis::{Axis, Quantity, Scale, Setting, between};
use super::drawn::{self, Distribution};
use crate::plan_file::document::{DocumentPart, Misfit};
use crate::study::rate::unit;
use quorlock_sim_plan::draw::{Draw, Purpose};

/// What is varied, and the combinations that are run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Space {
    /// What is varied, in the order of the file.
    pub(super) axes: Vec<Axis>,
    /// The settings of each point, one for each axis.
    pub(super) points: Vec<Vec<Setting>>,
}

/// How points fill a space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Filling {
    /// The sequence of Sobol, with the scrambling of Owen.
    Sobol,
    /// A Latin hypercube: each axis is cut into as many strips as there are points, and each strip has one.
    LatinHypercube,
}

/// The largest number of points.
const MOST: usize = 10_000;

impl Space {
    /// Reads the table `grid`, which stands at `span`: every combination of the settings is a point.
    pub(super) fn grid(table: &DocumentPart<'_>, span: &Range<usize>) -> Result<Self, Misfit> {
        let mut axes = Vec::new();
        for leaf in leaves(table) {
            let (settings, scale) = settings(leaf.value)?;
            axes.push(leaf.axis(settings, scale)?);
        }
        let mut points = vec![Vec::new()];
        for axis in &axes {
            let longer = points.iter().flat_map(|point| {
                let each = axis.settings.iter().cloned();
                each.map(move |setting| [point.as_slice(), &[setting]].concat())
            });
            points = longer.take(MOST + 1).collect();
        }
        match points.len() {
            ..=MOST => Ok(Space { axes, points }),
            _ => Err(Misfit::new(
                span.clone(),
                format!("grid: at most {MOST} combinations"),
            )),
        }
    }

    /// Reads the table of points that fill a space, which stands at `span`: their number, and a distribution for each axis.
    pub(super) fn filled(
        table: &DocumentPart<'_>,
        span: &Range<usize>,
        filling: Filling,
    ) -> Result<Self, Misfit> {
        let mut table = table.clone();
        let number = table.remove("points").and_then(|points| {
            let number = points.get_ref().as_integer()?.as_str().parse().ok()?;
            (1..=MOST).contains(&number).then_some(number)
        });
        let number = number.ok_or_else(|| {
            let why = format!("write points = 1 to {MOST} into this table");
            Misfit::new(span.clone(), why)
        })?;
        let mut axes = Vec::new();
        for (index, leaf) in leaves(&table).into_iter().enumerate() {
            let (distribution, scale) = leaf.distribution()?;
            let shares = filling.shares(index, number);
            let settings = shares.map(|share| distribution.quantile(share).setting());
            axes.push(leaf.axis(settings.collect(), scale)?);
        }
        let point = |nth| {
            let settings = axes
                .iter()
                .filter_map(move |axis: &Axis| axis.settings.get(nth).cloned());
            settings.collect()
        };
        let points = (0..number).map(point).collect();
        Ok(Space { axes, points })
    }
}

impl Filling {
    /// Returns where the points are on an axis, from 0 to 1.
    fn shares(self, axis: usize, points: usize) -> impl Iterator<Item = f64> {
        let dimension = u32::try_from(axis).unwrap_or(0);
        let mut draw = Draw::new(0, Purpose::Points, axis as u64);
        let mut strips: Vec<usize> = (0..points).collect();
        for last in (1..points).rev() {
            strips.swap(last, draw.index(last + 1));
        }
        strips
            .into_iter()
            .zip(0..)
            .map(move |(strip, nth)| match self {
                Filling::Sobol => f64::from(sobol_burley::sample(nth, dimension, 0)),
                Filling::LatinHypercube => (strip as f64 + unit(&mut draw)) / points as f64,
            })
    }
}

/// A key of the table with its value. Keys may have points, with quotes around them or without.
struct Leaf<'t, 'a> {
    path: String,
    begins: usize,
    value: &'t Spanned<DeValue<'a>>,
}

/// The keys of an axis that is written as a table.
const OPTIONS: [&str; 8] = [
    "as", "also", "values", "from", "to", "points", "scale", "draw",
];

/// Returns the axes of a table, in the order in which they are written.
fn leaves<'t, 'a>(table: &'t DocumentPart<'a>) -> Vec<Leaf<'t, 'a>> {
    let mut found = Vec::new();
    for (key, value) in table {
        let path = key.get_ref().to_string();
        let inner = value.get_ref().as_table();
        let is_option = |key: &str| OPTIONS.contains(&key);
        match inner.filter(|inner| !inner.keys().any(|key| is_option(key.get_ref()))) {
            Some(inner) => found.extend(leaves(inner).into_iter().map(|leaf| Leaf {
                path: format!("{path}.{}", leaf.path),
                ..leaf
            })),
            None => found.push(Leaf {
                path,
                begins: key.span().start,
                value,
            }),
        }
    }
    found.sort_by_key(|leaf| leaf.begins);
    found
}

impl Leaf<'_, '_> {
    fn axis(&self, settings: Vec<Setting>, scale: Scale) -> Result<Axis, Misfit> {
        let table = self.value.get_ref().as_table();
        let option = |key: &str| table.and_then(|table| table.get(key));
        let mut paths = vec![self.path.clone()];
        if let Some(also) = option("also") {
            let wrong = || {
                Misfit::new(
                    also.span(),
                    "also: a list of places, such as [\"plan.clients\"]",
                )
            };
            let items = also.get_ref().as_array().ok_or_else(wrong)?;
            for item in items {
                paths.push(item.get_ref().as_str().ok_or_else(wrong)?.to_owned());
            }
        }
        let last = self.path.rsplit('.').next().unwrap_or(&self.path);
        let name = option("as").and_then(|name| name.get_ref().as_str());
        if settings.is_empty() {
            let why = format!("{}: write at least one value", self.path);
            return Err(Misfit::new(self.value.span(), why));
        }
        Ok(Axis {
            name: name.unwrap_or(last).to_owned(),
            paths,
            span: self.value.span(),
            settings,
            scale,
        })
    }

    fn distribution(&self) -> Result<(Distribution, Scale), Misfit> {
        let mut own = DocumentPart::new();
        match self.value.get_ref() {
            DeValue::String(text) => {
                let read = Distribution::read(text, None);
                let wrong = |why: String| Misfit::new(self.value.span(), why);
                let read = read.map_err(|error| wrong(format!("{}: {error}", self.path)))?;
                return Ok((read, Scale::of(read)));
            }
            DeValue::Table(table) => {
                for key in ["draw", "at_most"] {
                    own.extend(
                        table
                            .get_key_value(key)
                            .map(|(key, value)| (key.clone(), value.clone())),
                    );
                }
            }
            _ => {}
        }
        let read = drawn::distribution(&own)?;
        Ok((read, Scale::of(read)))
    }
}

impl Scale {
    fn of(distribution: Distribution) -> Self {
        match distribution {
            Distribution::LogUniform(..) => Scale::Log,
            Distribution::Uniform(..) | Distribution::Cut(..) => Scale::Linear,
        }
    }
}

/// Reads the settings of an axis of a grid: a list, or a table with `values`, or with `from`, `to` and `points`.
fn settings(value: &Spanned<DeValue<'_>>) -> Result<(Vec<Setting>, Scale), Misfit> {
    let wrong = || {
        let why = "write a list, or { from = \"0s\", to = \"2s\", points = 5 }";
        Misfit::new(value.span(), why)
    };
    let table = match value.get_ref() {
        DeValue::Array(items) => {
            let read = items.iter().map(setting).collect::<Option<Vec<Setting>>>();
            return Ok((read.ok_or_else(wrong)?, Scale::Linear));
        }
        DeValue::Table(table) => table,
        _ => return Err(wrong()),
    };
    let scale = match table
        .get("scale")
        .and_then(|scale| scale.get_ref().as_str())
    {
        Some("log") => Scale::Log,
        _ => Scale::Linear,
    };
    if let Some(values) = table.get("values") {
        return Ok((settings(values)?.0, scale));
    }
    let bound = |key: &str| {
        let setting = setting(table.get(key)?)?;
        Quantity::read(&setting.text)
    };
    let points = table.get("points").and_then(|points| {
        let points = points.get_ref().as_integer()?.as_str().parse().ok()?;
        (2..=MOST).contains(&points).then_some(points)
    });
    let (from, until) = bound("from").zip(bound("to")).ok_or_else(wrong)?;
    let is_fit = match scale {
        Scale::Linear => true,
        Scale::Log => 0.0 < from.amount() && 0.0 < until.amount(),
    };
    match points.filter(|_| is_fit && from.is_like(until)) {
        Some(points) => Ok((between(from, until, points, scale), scale)),
        None => Err(wrong()),
    }
}

fn setting(value: &Spanned<DeValue<'_>>) -> Option<Setting> {
    Some(match value.get_ref() {
        DeValue::String(text) => Setting::read(text, &format!("{text:?}")),
        DeValue::Integer(number) => Setting::read(number.as_str(), number.as_str()),
        DeValue::Float(number) => Setting::read(number.as_str(), number.as_str()),
        DeValue::Boolean(is_on) => Setting::read(&is_on.to_string(), &is_on.to_string()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_file::document::parse;

    fn texts(space: &Space) -> Vec<String> {
        let points = space.points.iter().map(|point| {
            let texts: Vec<&str> = point.iter().map(|setting| setting.text.as_str()).collect();
            texts.join(" ")
        });
        points.collect()
    }

    #[test]
    fn a_grid_has_every_combination_in_the_order_of_the_file() {
        let text = "plan.workload.lease = [\"300ms\", \"1s\"]\n\
                    \"plan.clients\" = { from = 2, to = 4, points = 2, as = \"rivals\" }\n";
        let space = Space::grid(&parse(text).unwrap(), &(0..0)).unwrap();
        assert_eq!(texts(&space), ["300ms 2", "300ms 4", "1s 2", "1s 4"]);
        let names: Vec<&str> = space.axes.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(names, ["lease", "rivals"]);
        assert_eq!(space.axes[0].paths, ["plan.workload.lease"]);
        for wrong in [
            "a = 7",
            "a = []",
            "a = { from = 1, to = \"1s\", points = 3 }",
        ] {
            assert!(
                Space::grid(&parse(wrong).unwrap(), &(0..0)).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn points_that_fill_a_space_have_one_in_each_strip() {
        let text = "points = 16\nplan.a = \"uniform(0, 15)\"\nplan.b = \"uniform(0, 15)\"\n";
        for filling in [Filling::Sobol, Filling::LatinHypercube] {
            let space = Space::filled(&parse(text).unwrap(), &(0..0), filling).unwrap();
            for axis in &space.axes {
                let mut numbers: Vec<f64> = axis.settings.iter().filter_map(|s| s.number).collect();
                numbers.sort_by(f64::total_cmp);
                let all: Vec<f64> = (0..16).map(f64::from).collect();
                assert_eq!(numbers, all, "{filling:?}");
            }
            assert_ne!(space.axes[0].settings, space.axes[1].settings);
        }
    }
}
