//! The strictest of several classes.
//!
//! A path that can be read in more than one way may be of several classes, one for each reading
//! ([`Classifier::classes`](super::Classifier::classes)). Nobody but the application knows which
//! reading is right, so such a request is treated, in each respect by itself, as the class would be
//! that is treated worst:
//!
//! | respect | strictest |
//! |---|---|
//! | rank, and what a success earns | the lowest class: [`lowest`] |
//! | proof | a success proves nothing and begins no session, as nobody knows which class was served |
//! | standing | the worst that its session has for any of the classes |
//! | enforced | if it is for any of them |
//! | may be stopped | if it may for any of them: [`stops_as`] |
//! | throttled | by the narrowest rule that any reading falls under, unless all are transactions |
//! | timeouts, patience, level | the shortest, the shortest, the worst |
//!
//! **Why no spelling gains.** Let C(p) be the set of classes of the readings of p. Each respect is a
//! minimum over C(p), so it can only fall when the set grows. Let p be a plain path and q another
//! spelling of it, that is: p is one of the readings of q. The class of each reading is in the set,
//! the class `other` included where no pattern matches, so C(q) ⊇ C(p), and q is treated in no
//! respect better than p. This holds for the path as it stands too: it is always the first
//! reading. So a request never gains over what its spelling would get from an application that
//! takes it literally.
//!
//! **A slash at the end** is no reading by itself: `/a` and `/a/` are both plain. For `/a/` the class
//! of `/a` is in the set as well if a pattern matches `/a`; for `/a`, that of `/a/` if a pattern
//! matches that and none matches `/a`. So what the file says of a spelling holds of it (a site all
//! of whose paths end with a slash), and what it does not say is covered by what it says of the
//! other form.
//!
//! **What is not compared.** Rank is compared by what the file says: tier, then utility. Under
//! `value-index` the rank of the lowest class is what was learned of it. Of two classes that may be
//! stopped after different times, [`stops_as`] takes the one with the shorter `run_max`, whose
//! `run_min` may be longer.

use crate::request::{Class, ClassId, ClassSet, Tier};

/// The class that ranks lowest: browsing before transactions, then the least utility, then what
/// earns least; of equals the first. `None`: the set is empty.
pub fn lowest<'c>(set: ClassSet, class: impl Fn(ClassId) -> &'c Class) -> Option<ClassId> {
    if set.is_one() {
        return set.iter().next();
    }
    let order = |a: &Class, b: &Class| {
        let transacts = |class: &Class| class.tier == Tier::Transact;
        let tiers = transacts(a).cmp(&transacts(b));
        let worth = || a.utility.get().total_cmp(&b.utility.get());
        tiers.then_with(worth).then_with(|| a.earns.get().total_cmp(&b.earns.get()))
    };
    set.iter().min_by(|a, b| order(class(*a), class(*b)))
}

/// The class by whose bounds and run times a request is stopped: of those that can be stopped the
/// one with the shortest `max`, `own` if none can be.
pub fn stops_as<'c>(own: ClassId, also: ClassSet, class: impl Fn(ClassId) -> &'c Class) -> ClassId {
    if also.is_empty() {
        return own;
    }
    let stops = also.with(own).iter().filter_map(|id| Some((id, class(id).stop?)));
    stops.min_by_key(|(_, bounds)| (bounds.max, bounds.min)).map_or(own, |(id, _)| id)
}
