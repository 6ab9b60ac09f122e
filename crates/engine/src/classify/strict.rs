//! The strictest of several classes.
//!
//! A path that can be read in several ways may have several classes, one for each reading
//! ([`Classifier::classes`](super::Classifier::classes)). Only the application knows which reading
//! is right. So such a request gets, in each respect separately, the treatment of the class that is
//! treated worst:
//!
//! | respect | strictest |
//! |---|---|
//! | rank, and the revenue of a success | the lowest class: [`lowest`] |
//! | proof | a success proves nothing and begins no session, because the served class is unknown |
//! | standing | the worst that the session has for any of the classes |
//! | enforced | if any of the classes is enforced |
//! | may be stopped | if requests of any of the classes may be: [`stops_as`] |
//! | throttled | by the narrowest rule of any reading, unless all are transactions |
//! | timeouts, patience, level | the shortest, the shortest, the worst |
//!
//! **Why no spelling is treated better.** Let C(p) be the set of classes of the readings of p. The
//! treatment in each respect is a minimum over C(p), so it can only get worse when the set grows.
//! Let p be a plain path and q another spelling of it, that is: p is one of the readings of q. The
//! class of each reading is in the set, and it is `other` where no pattern matches. So C(q) ⊇ C(p),
//! and q is treated in no respect better than p. This also holds for the literal path, which is
//! always the first reading. Therefore no request is treated better than an application would treat
//! its literal spelling.
//!
//! **A slash at the end** makes no reading of its own: `/a` and `/a/` are both plain. For `/a/` the
//! class of `/a` is in the set as well if a pattern matches `/a`. For `/a`, the class of `/a/` is
//! in the set if a pattern matches `/a/` and none matches `/a`. So a spelling that the
//! configuration names has exactly the class that the configuration says, for example on a site
//! whose paths all end with a slash. A spelling that it does not name also has the class of the
//! other form.
//!
//! **Limits of the rule.** Rank is compared by configured values: tier, then utility. Under
//! `value-index` the rank of the lowest class is its learned rank. If two classes may be stopped
//! after different times, [`stops_as`] takes the one with the shorter `run_max`, whose `run_min`
//! may be longer.

use crate::request::{Class, ClassId, ClassSet, Tier};

/// Returns the class of a set that ranks lowest; `None` if the set is empty. Browsing ranks below
/// transactions. Within a tier, the lower utility ranks lower, and among equal utilities the lower
/// revenue. If several classes are equal, the first is returned.
pub fn lowest<'c>(set: ClassSet, class: impl Fn(ClassId) -> &'c Class) -> Option<ClassId> {
    if set.is_one() {
        return set.iter().next();
    }
    let order = |a: &Class, b: &Class| {
        let transacts = |class: &Class| class.tier == Tier::Transaction;
        let tiers = transacts(a).cmp(&transacts(b));
        let worth = || a.utility.get().total_cmp(&b.utility.get());
        tiers.then_with(worth).then_with(|| a.revenue.get().total_cmp(&b.revenue.get()))
    };
    set.iter().min_by(|a, b| order(class(*a), class(*b)))
}

/// Returns the class whose bounds decide when a request is stopped. This class is the one with the
/// shortest `max` among the classes whose requests may be stopped. If there is no such class,
/// returns `own`.
pub fn stops_as<'c>(own: ClassId, also: ClassSet, class: impl Fn(ClassId) -> &'c Class) -> ClassId {
    if also.is_empty() {
        return own;
    }
    let stops = also.with(own).iter().filter_map(|id| Some((id, class(id).stop?)));
    stops.min_by_key(|(_, bounds)| (bounds.max, bounds.min)).map_or(own, |(id, _)| id)
}
