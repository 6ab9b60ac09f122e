//! Converts a class of a scenario file.

use std::collections::HashMap;

use bywash_units::{TimeSpan, Utility};

use super::{RawBounds, RawClass, find, senseless};
use crate::class::Class;
use crate::distribution::Distribution;
use crate::error::ScenarioError;
use crate::problems::Problems;
use crate::text::span;
use crate::{servers, stations, threads};

pub(super) fn resolve_class(
    class: &RawClass,
    order: &str,
    index: &HashMap<String, usize>,
    stations: &[servers::Station],
) -> Result<Class, ScenarioError> {
    let mut problems = Problems::default();
    let name = &class.name;
    let request = problems.part(class.request.split_once(' ').ok_or_else(|| {
        ScenarioError::Invalid(format!("request of `{name}`: write METHOD PATH, as in GET /item"))
    }));
    let has_content = class.form.is_empty() || class.request.starts_with("POST ");
    problems.require(has_content, format!("form of `{name}`: only a POST can have one"));
    let known = class.status.is_none_or(|status| (200..600).contains(&status));
    problems.require(known, format!("status of `{name}` must be 200 to 599"));
    let worth = class.utility >= 0.0 && class.utility.is_finite();
    problems.require(worth, format!("utility of `{name}` must be a number, 0 or above"));
    let stop = class.terminate.as_ref().map(|bounds| bounds_of(name, bounds)).transpose();
    let stop = problems.part(stop);
    let shift = class.shift.as_ref().map(|shift| shift.resolve(name)).transpose();
    let shift = problems.part(shift);
    problems
        .require(class.service.ends(), format!("service of `{name}` must be above 0 and finite"));
    let why =
        format!("think of `{name}` must be finite: a client that waits forever makes no load");
    problems.require(class.think != Some(Distribution::Never), why);
    let station = problems.part(stations::of_class(stations, class.station.as_deref(), name));
    problems.part(threads::check(class.parallel, name));
    let requires = problems.parts(class.requires.iter().map(|other| find(index, other, name)));
    let class = request.map(|(method, path)| Class {
        name: name.clone(),
        method: method.into(),
        path: path.trim().into(),
        form: class.form.clone(),
        status: class.status,
        tier: class.tier,
        utility: Utility::new(class.utility),
        queue: class.queue,
        requires,
        service: class.service.clone(),
        shift: shift.flatten(),
        stop: stop.flatten(),
        revenue: Utility::new(if name == order { 1.0 } else { 0.0 }),
        fixed_value: None,
        think: class.think,
        patience: None,
        station: station.flatten(),
        parallel: class.parallel,
    });
    problems.whole(class)
}

fn bounds_of(class: &str, bounds: &RawBounds) -> Result<(TimeSpan, TimeSpan), ScenarioError> {
    let (min, max) = (span(&bounds.min)?, span(&bounds.max)?);
    if min > max {
        return senseless(format!("terminate of `{class}`: min {min} is above max {max}"));
    }
    Ok((min, max))
}
