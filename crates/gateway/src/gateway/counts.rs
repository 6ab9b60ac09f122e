//! The counts that a gateway has learned as JSON: for the disk, for the process that takes over, and
//! for the other gateways of its fleet.
//!
//! Classes are stored by name, because their numbers differ from process to process.

use bywash_engine::{ClassId, ClassSet, Counts};
use serde_json::{Map, Value, json};

use crate::driver::{ClassCounts, Counted};
use crate::settings::Settings;

/// Counts of classes by name.
pub(super) struct NamedCounts {
    /// The names of the classes, in the order of their numbers when the counts were written.
    names: Vec<String>,
    /// The counts, in which the classes have these numbers. There may be none for a class.
    counted: Counted,
}

/// Returns the counts as the fields of a JSON object.
pub(super) fn write(counted: &Counted, settings: &Settings) -> Map<String, Value> {
    let names: Vec<&str> = settings.config.classes.iter().map(|class| &*class.class.name).collect();
    let counts: Vec<Value> = counted.classes.iter().map(values_of).collect();
    Map::from_iter([
        ("classes".to_owned(), json!(names)),
        ("counts".to_owned(), json!(counts)),
        ("signals".to_owned(), json!(counted.signals)),
    ])
}

impl NamedCounts {
    /// Reads the fields that [`write()`] returned. Returns `None` if they are not in that format.
    pub(super) fn read(
        classes: &Value,
        counts: Option<&Value>,
        signals: Option<&Value>,
    ) -> Option<Self> {
        let name = |name: &Value| name.as_str().map(str::to_owned);
        let names: Vec<_> = classes.as_array()?.iter().map(name).collect::<Option<_>>()?;
        // Earlier versions of bywash wrote no counts and no signals.
        let counts: Option<Vec<_>> = counts.map_or(Some(Vec::new()), |counts| {
            counts.as_array()?.iter().map(read_values).collect::<Option<_>>()
        });
        let (counts, signals) = (counts?, signals.map_or(Some((0, Vec::new())), read_signals)?);
        let is_possible = names.len() <= ClassSet::MOST && counts.len() <= ClassSet::MOST;
        is_possible.then_some(Self { names, counted: Counted { classes: counts, signals } })
    }

    /// Returns the present number of each class, in the order of the numbers when the counts were
    /// written; `None` for a class that no longer exists.
    pub(super) fn numbers(&self, settings: &Settings) -> Vec<Option<ClassId>> {
        let classes = &settings.config.classes;
        let number = |name: &String| classes.iter().position(|class| class.class.name == *name);
        self.names.iter().map(|name| Some(ClassId(number(name)? as u8))).collect()
    }

    /// Returns the counts, in which classes have their present numbers. Counts of classes that no
    /// longer exist, and transitions to them, are left out.
    pub(super) fn numbered(&self, settings: &Settings) -> Counted {
        let (classes, numbers) = (settings.config.classes.len(), self.numbers(settings));
        let numbers = || numbers.iter().take(ClassSet::MOST);
        let moved = |(visits, next): &(f64, Vec<f64>)| {
            let mut row = vec![0.0; classes];
            for (class, count) in numbers().zip(next) {
                if let Some(class) = class {
                    row[class.index()] = *count;
                }
            }
            (*visits, row)
        };
        let mut counts = vec![ClassCounts::default(); classes];
        for (class, (known, published)) in numbers().zip(&self.counted.classes) {
            if let Some(class) = class {
                let (later, first) = (moved(&known.later), moved(&known.first));
                counts[class.index()] = (Counts { later, first, ..known.clone() }, *published);
            }
        }
        Counted { classes: counts, signals: self.counted.signals.clone() }
    }
}

fn values_of((counts, published): &ClassCounts) -> Value {
    let Counts { later, first, orders, revenue, begun_revenue, reached } = counts;
    let ((later, next), (first, first_next)) = (later, first);
    let (came, brought) = reached;
    json!([
        later,
        next,
        first,
        first_next,
        orders,
        revenue,
        begun_revenue,
        came,
        brought,
        published
    ])
}

fn read_values(value: &Value) -> Option<ClassCounts> {
    let number = |value: &Value| value.as_f64();
    let row = |value: &Value| value.as_array()?.iter().map(number).collect::<Option<Vec<_>>>();
    let counts = Counts {
        later: (number(&value[0])?, row(&value[1])?),
        first: (number(&value[2])?, row(&value[3])?),
        orders: number(&value[4])?,
        revenue: number(&value[5])?,
        begun_revenue: number(&value[6])?,
        reached: (number(&value[7])?, number(&value[8])?),
    };
    // The class may have no published values yet.
    Some((counts, number(&value[9][0]).zip(number(&value[9][1])).map(<[f64; 2]>::from)))
}

fn read_signals(value: &Value) -> Option<(u64, Vec<[f64; 3]>)> {
    let one = |of: &Value| Some([of[0].as_f64()?, of[1].as_f64()?, of[2].as_f64()?]);
    Some((value[0].as_u64()?, value[1].as_array()?.iter().map(one).collect::<Option<_>>()?))
}
