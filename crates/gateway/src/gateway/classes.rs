//! Numbers the classes of a new configuration as the configuration before did.
//!
//! A class keeps its number for as long as the process lives, because requests, sessions and
//! counters refer to it by number. New classes get new numbers. A class that was removed from the
//! configuration file stays in the list as a class that no pattern matches.

use bywash_config::{ClassConfig, Config};
use bywash_engine::{ClassId, ClassSet};

use crate::error::TooManyClasses;

/// Returns `config` with its classes numbered as in `before`. Returns an error if removed and
/// present classes together are more than [`ClassSet::MOST`].
pub(crate) fn continuing(config: Config, before: &Config) -> Result<Config, TooManyClasses> {
    let mut classes = before.classes.clone();
    let place = |classes: &[ClassConfig], class: &ClassConfig| {
        classes.iter().position(|other| other.class.name == class.class.name)
    };
    let mut numbers = Vec::with_capacity(config.classes.len());
    for class in &config.classes {
        let number = place(&classes, class).unwrap_or(classes.len());
        match classes.get_mut(number) {
            Some(before) => before.clone_from(class),
            None => classes.push(class.clone()),
        }
        numbers.push(number);
    }
    for (number, class) in classes.iter_mut().enumerate() {
        class.is_removed = !numbers.contains(&number);
    }
    if classes.len() > ClassSet::MOST {
        return Err(TooManyClasses(classes.len()));
    }
    let renumber = |class: ClassId| ClassId(numbers[class.index()] as u8);
    for number in &numbers {
        let requires = &mut classes[*number].class.requires;
        *requires = requires.iter().map(renumber).collect();
    }
    let classifier = config.classifier.renumbered(renumber);
    Ok(Config { classes, classifier, ..config })
}
