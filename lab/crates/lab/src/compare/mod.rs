//! `bywash lab compare`: shows the differences between two results, and whether they are larger
//! than chance.
//!
//! Each visitor is drawn from the seed and the visitor's number alone. Two policies with the same
//! seeds therefore had exactly the same visitors, and random differences between seeds do not
//! affect the difference of the policies. In that case the standard error is computed from the
//! differences for each seed. If the seeds or the visitors differ, it is computed from the errors
//! of both sides.

mod difference;
mod side;

use bywash_command::Failure;
use bywash_command::streams::{print, print_json, say};
use bywash_terminal::{Align, Table};
use serde_json::{Value, json};

use self::difference::{Difference, Pair, Significance};
use self::side::Side;
use crate::args::Compare;

pub(super) fn compare(args: &Compare) -> Result<(), Failure> {
    let sides = side::both(&args.left, &args.right, &args.narrow)?;
    let pairs = matched(&sides);
    if pairs.is_empty() {
        return Err(Failure::usage(format!(
            "{} and {} have no combination of policy, ρ and closes in common: the first has {}, \
             the second {}",
            args.left,
            args.right,
            sides[0].described(),
            sides[1].described()
        )));
    }
    warn(&sides, &pairs);
    if args.json { print_json(&to_value(&sides, &pairs)) } else { print(&text(&pairs)) }
}

/// Returns the pairs of result rows that both sides have. Two rows match if they have the same
/// offered load and the same visibility of departures. They must also have the same label, unless
/// each side has only one policy.
fn matched(sides: &[Side; 2]) -> Vec<Pair<'_>> {
    let [left, right] = sides;
    let by_label = left.policies() > 1 || right.policies() > 1;
    let other = |cell: &bywash_scenario::ResultRow| {
        right.result.cells.iter().find(|other| {
            let same = cell.rho.total_cmp(&other.rho).is_eq() && cell.closes == other.closes;
            same && (!by_label || cell.policy == other.policy)
        })
    };
    let same_seeds = left.result.seeds == right.result.seeds;
    let pair = |left| other(left).map(|right| Pair { left, right, same_seeds });
    left.result.cells.iter().filter_map(pair).collect()
}

/// Prints the warnings that a reader must know before trusting the differences.
fn warn(sides: &[Side; 2], pairs: &[Pair<'_>]) {
    for side in sides {
        if let Some(why) = &side.result.invalid {
            say(format!(
                "{}: its figures must not be used: {}",
                side.name,
                super::presentable(why)
            ));
        }
        let unmatched = side.result.cells.len().saturating_sub(pairs.len());
        if unmatched > 0 {
            say(format!("{}: {unmatched} cells have no counterpart on the other side", side.name));
        }
    }
}

fn text(pairs: &[Pair<'_>]) -> String {
    let mut table = Table::new(&[
        ("policy", Align::Left),
        ("ρ", Align::Right),
        ("closes", Align::Left),
        ("figure", Align::Left),
        ("A", Align::Right),
        ("B", Align::Right),
        ("B − A", Align::Right),
        ("±", Align::Right),
        ("", Align::Left),
    ]);
    for (pair, difference) in all(pairs) {
        table.push(vec![
            pair.name(),
            pair.left.rho.to_string(),
            pair.left.closes.to_string(),
            format!("{} %", difference.measure.name),
            format!("{:.2}", difference.left),
            format!("{:.2}", difference.right),
            format!("{:+.2}", difference.by()),
            difference.error.map_or("–".into(), |error| format!("{:.2}", error.standard)),
            difference.significance().name().into(),
        ]);
    }
    format!("{table}\n{}\n", summary(pairs))
}

fn all<'p>(pairs: &'p [Pair<'p>]) -> impl Iterator<Item = (&'p Pair<'p>, Difference)> {
    pairs.iter().flat_map(|pair| pair.differences().map(move |difference| (pair, difference)))
}

fn summary(pairs: &[Pair<'_>]) -> String {
    let larger = all(pairs).filter(|(_, one)| one.significance() == Significance::Larger).count();
    let paired = pairs.iter().filter(|pair| pair.is_paired()).count();
    let how = match paired {
        0 => "the sides had different visitors, so the errors of both count",
        some if some == pairs.len() => "compared seed by seed: both sides had the same visitors",
        _ => "compared seed by seed where both sides had the same visitors",
    };
    format!(
        "{larger} of {} differences are larger than chance (Student's t, 95 %); {how}",
        all(pairs).count()
    )
}

fn to_value(sides: &[Side; 2], pairs: &[Pair<'_>]) -> Value {
    let difference = |(pair, one): (&Pair<'_>, Difference)| {
        json!({
            "a": pair.left.policy,
            "b": pair.right.policy,
            "rho": pair.left.rho,
            "closes": pair.left.closes,
            "figure": one.measure.key,
            "a_percent": one.left,
            "b_percent": one.right,
            "difference": one.by(),
            "error": one.error.map(|error| error.standard),
            "paired": pair.is_paired(),
            "verdict": one.significance().name(),
        })
    };
    json!({
        "a": sides[0].name,
        "b": sides[1].name,
        "differences": all(pairs).map(difference).collect::<Vec<_>>(),
    })
}
